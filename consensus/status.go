package consensus

import (
	"context"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/histogram"
)

// Role is what a server is in the ensemble.
type Role string

// The roles, spelt as the four-letter words print them.
const (
	RoleStandalone Role = "standalone"
	RoleLeader     Role = "leader"
	RoleFollower   Role = "follower"
	RoleObserver   Role = "observer"
	RoleNone       Role = "looking" // no leader is known
)

// Status is a server's place in the ensemble at one moment.
type Status struct {
	Ensemble [16]byte // zero: this server belongs to none yet
	Waiting  string   // for what, then
	Role     Role
	Leader   state.ServerID // NoServer: unknown
	Term     uint64
	// Contact is how long ago a leader, possibly this server, was last known to
	// have a majority.
	Contact      time.Duration
	Voters       int
	Followers    int // on the leader: voting followers whose streams are connected
	Observers    int // on the leader: observers whose streams are connected
	LastIndex    uint64
	AppliedIndex uint64
	Pending      int // commands of this server that await their result
	// DiskFault is why this server could not write its log, vote or term when
	// it last tried; empty while it can.
	DiskFault string
	// DataLost is how this server's data is not where its next start looks for it; empty: it is.
	DataLost string
	// SnapshotFault is why this server could not write a snapshot when it last tried; empty if it could.
	SnapshotFault string
	// LeaderChanged is when this server last saw another leader, none, or another term; zero: never.
	LeaderChanged time.Time
	// Election is the newest one since this server's start.
	Election leadership.Election
	// Halt is why this server no longer takes part; nil: it does.
	Halt *Halt
	// Alarm is how the servers differ though they should not; empty: as far as is known they do not.
	Alarm string
}

// Status returns this server's place in the ensemble.
func (n *Node) Status() Status {
	s := Status{
		Role: RoleNone, Leader: state.NoServer, Contact: membership.NoContact,
		Pending: n.queue.Len(), DiskFault: n.disk.Fault(), Waiting: n.founder.Waiting(),
		DataLost: n.disk.Lost(), Alarm: n.check.Alarm(),
	}
	if id := n.ensemble.Identity(); id != nil {
		s.Ensemble = id.Ensemble
	}
	if fault := n.snapshots.fault.Load(); fault != nil {
		s.SnapshotFault = *fault
	}
	if s.Halt = n.halted.Load(); s.Halt != nil {
		s.AppliedIndex = n.applied.Index.Load()
		return s
	}
	if !n.started() {
		for _, x := range n.cfg.Servers {
			if x.Voter {
				s.Voters++
			}
		}
		return s
	}
	voters := n.ensemble.Voters()
	now := n.leadership.Now()
	_, s.LeaderChanged = n.leadership.Changes()
	s.Election = n.leadership.Elections.Newest()
	s.Leader, s.Term, s.Voters = now.Leader, now.Term, len(voters)
	s.LastIndex, s.AppliedIndex = n.raft.LastIndex(), n.applied.Index.Load()
	if ago, ever := n.forwarder.Contact(); ever {
		s.Contact = max(ago, n.disk.UnwritableFor())
	}
	switch {
	case now.Role == leadership.Leader:
		s.Role, s.Contact = RoleLeader, n.disk.UnwritableFor()
		if n.cfg.standalone() && len(voters) == 1 {
			s.Role = RoleStandalone
		}
		s.Followers, s.Observers = n.streams.Count(voters)
	case s.Leader == state.NoServer:
	case voters[n.cfg.ID]:
		s.Role = RoleFollower
	default:
		s.Role = RoleObserver
	}
	return s
}

// busyPoll is how often Alive looks whether raft's main loop has a reason for its silence.
const busyPoll = time.Second

// Alive returns nil when raft's main loop has answered. It may be silent, for however long, while it waits for the
// disk or while a snapshot is written or installed: a restart would not make that end sooner. An ensemble that has not
// been bootstrapped has no main loop yet. Otherwise Alive waits; the error is that of ctx, or ErrStopped.
func (n *Node) Alive(ctx context.Context) error {
	busy := func() bool { return n.disk.Waiting() > 0 || n.disk.Fault() != "" || n.transport.SnapshotUnderWay() }
	if !n.started() || busy() { // so no question is left behind each time
		return nil
	}
	answered := make(chan struct{})
	go func() { // not one of the tasks, which Close awaits: raft leaves a question open that comes as it shuts down
		_ = n.raft.VerifyLeader().Error() // that this server does not lead is an answer
		close(answered)
	}()
	tick := time.NewTicker(busyPoll)
	defer tick.Stop()
	for {
		select {
		case <-answered:
			return nil
		case <-tick.C:
			if busy() {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ctx.Done():
			return forward.ErrStopped
		}
	}
}

// Metric is a metric of this server's part in the agreement, by its name in the table of
// package api/metrics.
type Metric struct {
	Key   string
	Value any // int64, float64, histogram.Counts, histogram.Summary, or map[state.ServerID]float64 by the other server
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
		{"forward_queue_seconds", n.queue.Waits.Counts()},
		{"peer_connections_refused_total", n.mux.Refused.Load()},
		{"snapshot_failures_total", n.snapshots.failed.Load()},
		{"snapshot_last_success_timestamp_seconds", n.snapshots.last.Load()},
	}
	n.check.Metrics(func(key string, value any) { all = append(all, Metric{key, value}) })
	if log := n.cfg.Storage.Raftlog; log != nil {
		s := log.Stats()
		all = append(all,
			Metric{"raft_log_bytes", s.Bytes},
			Metric{"raft_log_segments", int64(s.Segments)},
			Metric{"raft_log_first_index", int64(s.FirstIndex)},
			Metric{"raft_log_last_index", int64(s.LastIndex)},
			Metric{"log_fsyncs_total", int64(s.Syncs)},
			Metric{"log_fsync_seconds", s.SyncTimes}, Metric{"fsynctime", histogram.Summary(s.SyncTimes)},
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

// Proposals are the statistics of the entries that this server has proposed since it began to lead.
func (n *Node) Proposals() *forward.Stats { return &n.forwarder.Stats }
