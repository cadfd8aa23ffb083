package consensus

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// Metric is a metric of this server's part in the agreement, by its name in the table of
// package api/metrics.
type Metric struct {
	Key   string
	Value any // int64, float64, histogram.Counts, or map[state.ServerID]float64 by the other server
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
		{"raft_commit_seconds", n.commits.Counts()},
		{"raft_apply_seconds", n.applies.Counts()},
		{"forward_queue_seconds", n.queue.Waits()},
		{"peer_connections_refused_total", n.mux.Refused()},
		{"snapshot_failures_total", n.snapshots.failed.Load()},
		{"snapshot_last_success_timestamp_seconds", n.snapshots.last.Load()},
	}
	all = append(all, n.check.metrics()...)
	if log := n.cfg.Storage.Raftlog; log != nil {
		s := log.Stats()
		all = append(all,
			Metric{"raft_log_bytes", s.Bytes},
			Metric{"raft_log_segments", int64(s.Segments)},
			Metric{"raft_log_first_index", int64(s.FirstIndex)},
			Metric{"raft_log_last_index", int64(s.LastIndex)},
			Metric{"log_fsyncs_total", int64(s.Syncs)},
			Metric{"log_fsync_seconds", s.SyncTimes},
			Metric{"log_fsync_last_seconds", s.SyncLast.Seconds()},
			Metric{"log_fsync_max_seconds", s.SyncMax.Seconds()},
		)
	}
	leaders, _ := n.leadership.Changes()
	var ended int64
	election := n.leadership.Elections.Newest()
	if !election.Ended.IsZero() {
		ended = election.Ended.Unix()
	}
	all = append(all,
		Metric{"leader_changes_total", int64(leaders)},
		Metric{"election_last_timestamp_seconds", ended},
		Metric{"election_last_outage_seconds", election.Outage.Seconds()},
	)
	if n.Status().Role == RoleLeader {
		silent := map[state.ServerID]float64{}
		for id := range n.ensemble.Members() {
			if _, last := n.streams.Contact(id); !last.IsZero() {
				silent[id] = time.Since(last).Seconds()
			}
		}
		last, smallest, largest := n.forwarder.Stats.Sizes()
		all = append(all,
			Metric{"raft_follower_contact_seconds", silent},
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
