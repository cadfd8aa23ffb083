package consensus

// Metric is a metric of this server's part in the agreement, by its name in the table of
// package api/metrics.
type Metric struct {
	Key   string
	Value any // int64 or float64
}

// Metrics lists what the transport and the log have counted since the start, and on an
// ensemble's leader what ZooKeeper's leader alone has.
func (n *Node) Metrics() []Metric {
	t := n.transport.Stats()
	all := []Metric{
		{"raft_append_entries_total", t.Entries},
		{"raft_heartbeats_total", t.Heartbeats},
		{"raft_commit_pushes_total", t.Pushes},
		{"raft_commit_push_failures_total", t.PushFailures},
		{"raft_disk_stalls_total", t.Stalls},
		{"raft_stale_snapshots_total", t.Stale},
		{"raft_fast_elections_total", t.Elections},
		{"raft_applied_index", int64(n.applied.Load())},
	}
	if log := n.cfg.Storage.Raftlog; log != nil {
		s := log.Stats()
		all = append(all,
			Metric{"raft_log_bytes", s.Bytes},
			Metric{"raft_log_segments", int64(s.Segments)},
			Metric{"raft_log_first_index", int64(s.FirstIndex)},
			Metric{"raft_log_last_index", int64(s.LastIndex)},
			Metric{"log_fsyncs_total", int64(s.Syncs)},
			Metric{"log_fsync_last_seconds", s.SyncLast.Seconds()},
			Metric{"log_fsync_max_seconds", s.SyncMax.Seconds()},
		)
	}
	if n.Status().Role == RoleLeader {
		last, smallest, largest := n.forwarder.Stats.Sizes()
		all = append(all,
			Metric{"leader_uptime", n.forwarder.Stats.Uptime().Milliseconds()},
			Metric{"last_proposal_size", last},
			Metric{"min_proposal_size", smallest},
			Metric{"max_proposal_size", largest},
		)
	}
	return all
}

// ProposalSizes returns the bytes of the last, the smallest and the largest entry that this
// server has proposed since it began to lead, or since ResetProposals; -1 before the first.
func (n *Node) ProposalSizes() (last, smallest, largest int64) { return n.forwarder.Stats.Sizes() }

// ResetProposals starts the statistics of ProposalSizes afresh.
func (n *Node) ResetProposals() { n.forwarder.Stats.ResetSizes() }
