package consensus

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Handler gets what is applied, and what this server becomes. Everything but Lead, Touched and Halted is called on the
// goroutine that applies the log, and nothing may block.
type Handler interface {
	// BeginApply and EndApply enclose the changes of the state machine.
	BeginApply()
	EndApply()
	// Entry comes after BeginApply with the times of the entry that is applied. They are valid until EndApply; Sent
	// changes from result to result.
	Entry(t *forward.Times)
	// StateReplaced replaces the state machine.
	StateReplaced(m *state.Machine)
	Changes

	// Lead reports that this server leads since the given term, or, with 0, that
	// it does not any more.
	Lead(term uint64)
	// Touched reports, on the leader, sessions whose clients a server has heard. It
	// comes several times per tick, also when there are none.
	Touched(by state.ServerID, ids []znode.SessionID)
	// Halted reports, on any goroutine, that nothing more is applied here: Status.Halt says why.
	Halted()
}

// Changes are those of the state machine, as it reports them to its state.Observer; results go to their Waiters.
type Changes interface {
	Event(e *znode.Event)
	SessionOpened(s *session.Session)
	SessionAttached(s *session.Session, previous state.ServerID)
	SessionClosed(s *session.Session, ephemerals []string, expired bool)
	QuotaExceeded(path string)
}

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
	// Halt is why this server takes no part any more; nil: it does.
	Halt *Halt
	// Alarm is how the servers differ though they should not; empty: as far as is known they do not.
	Alarm string
}
