package metrics

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Server is the part of *server.Server that is measured.
type Server interface {
	View(visit func(v *server.View))
	Status() consensus.Status
	Serving() bool
	Draining() bool
	Memory() server.Memory
}

// ContactNever is longer than any server runs: Status.Contact is longer when there has been
// no contact.
const ContactNever = 100 * 365 * 24 * time.Hour

// OfServer is the part of the tree, the sessions, the watches and the ensemble.
func OfServer(srv Server, started time.Time) Part {
	return func(emit func(name string, value any)) {
		emit("uptime", time.Since(started).Milliseconds())
		ofState(srv, emit)
		s := srv.Status()
		ofEnsemble(srv, &s, emit)
		if s.Role == consensus.RoleLeader {
			ofLeader(&s, emit)
		}
	}
}

func ofState(srv Server, emit func(name string, value any)) {
	var size znode.Size
	var watches watch.Summary
	var sessions, local int
	var zxid znode.Zxid
	srv.View(func(v *server.View) {
		size, watches, zxid = v.Tree().Size(), v.Watches().Summary(), v.Zxid()
		sessions, local = v.Machine().Sessions().Len(), v.Local().Len()
	})
	emit("znode_count", size.Znodes+1) // ZooKeeper counts the root as / and as the empty path
	emit("watch_count", watches.Total)
	emit("ephemerals_count", size.Ephemerals)
	emit("approximate_data_size", size.Bytes)
	memory := srv.Memory()
	emit("tree_memory_bytes", memory.Bytes)
	emit("tree_memory_limit_bytes", memory.Limit)
	emit("refused_writes_total", memory.Refused)
	emit("refused_acls_total", memory.LongACL)
	emit("global_sessions", sessions)
	emit("local_sessions", local)
	emit("last_zxid", int64(zxid))
}

func ofEnsemble(srv Server, s *consensus.Status, emit func(name string, value any)) {
	if s.Role != consensus.RoleStandalone {
		emit("quorum_size", s.Voters)
	}
	contact := s.Contact.Seconds()
	if s.Contact >= ContactNever {
		contact = -1
	}
	emit("serving", number(srv.Serving()))
	emit("draining", number(srv.Draining()))
	emit("halted", number(s.Halt != nil))
	emit("halt_reason", Info{"reason", haltReason(s)})
	emit("disk_fault", number(s.DiskFault != "" || s.DataLost != ""))
	emit("pending_commands", s.Pending)
	emit("raft_role", Info{"role", string(s.Role)})
	emit("raft_term", s.Term)
	emit("raft_leader", s.Leader.Number())
	emit("raft_last_index", s.LastIndex)
	emit("raft_applied_index", s.AppliedIndex)
	emit("raft_contact_seconds", contact)
}

// ofLeader is what ZooKeeper's leader alone has. A server here is either a voter or an
// observer, and a sync is an entry of the log that waits like any other, so two of them are
// always 0.
func ofLeader(s *consensus.Status, emit func(name string, value any)) {
	emit("learners", s.Followers+s.Observers)
	emit("synced_followers", s.Followers)
	emit("synced_non_voting_followers", 0)
	emit("synced_observers", s.Observers)
	emit("pending_syncs", 0)
	emit("failures_tolerated_now", max(s.Followers+1-(s.Voters/2+1), 0))
}

// PeerState is the role in the words of ZooKeeper's QuorumPeer.
func PeerState(r consensus.Role) string {
	switch r {
	case consensus.RoleLeader:
		return "leading - broadcast"
	case consensus.RoleFollower:
		return "following - broadcast"
	case consensus.RoleObserver:
		return "observing - broadcast"
	}
	return string(r)
}

// haltReason is the kind of reason for which a server is halted, or "none".
func haltReason(s *consensus.Status) string {
	if s.Halt == nil {
		return "none"
	}
	return string(s.Halt.Kind)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Totals are the metrics of all connections, present and past: since the start, or
// since they were reset.
type Totals struct {
	PacketsReceived, PacketsSent int64
	BytesReceived, BytesSent     int64
	// Latency is from the arrival of a request to its reply, of those answered.
	MinLatency, MaxLatency time.Duration
	AvgLatencyMillis       float64
	// ReplyBytes are the sizes of what was sent, -1 before the first: the last one of
	// the connection that was answered last, the smallest and the largest.
	LastReplyBytes, MinReplyBytes, MaxReplyBytes int64

	Connections int   // open now
	Outstanding int64 // requests that are not answered yet
	Rejected    int64 // connections over a limit
	AuthFailed  int64
}

// WholeMillis rounds a maximum up, so that no average, which has a fraction, is above it.
func WholeMillis(longest time.Duration) int64 {
	return (longest + time.Millisecond - 1).Milliseconds()
}

// Connection is one connection's metrics (ServerCnxn.getConnectionInfo).
type Connection struct {
	Remote      string // address and port
	Outstanding int    // requests that are not answered yet

	PacketsReceived, PacketsSent int64

	Session          znode.SessionID // 0: no handshake yet
	Timeout          time.Duration   // of the session
	Established      time.Time
	LastOp           string // NA before the first
	LastXid          int32  // -1 before the first
	LastZxid         znode.Zxid
	LastAnswer       time.Time // zero before the first
	LastLatency      time.Duration
	MinLatency       time.Duration
	MaxLatency       time.Duration
	AvgLatencyMillis float64
}
