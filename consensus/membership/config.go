package membership

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/znode"
)

// The errors of changes to the ensemble.
var (
	// ErrNoMember reports that a server is not in the ensemble, or not as a voter.
	ErrNoMember = errors.New("there is no such server in the ensemble")
	// ErrStandalone reports that a lone server without a peer port was asked.
	ErrStandalone = errors.New("this server is standalone: only an ensemble with a peer port can change")
	// ErrTooFew reports that a change would leave no connected majority.
	ErrTooFew = errors.New("too few voters would be connected")
	// ErrElsewhere reports that a server to be added is a member at another address,
	// and connected: to believe the new one would cost the ensemble a server.
	ErrElsewhere = errors.New("there is such a server, at another address")
	// ErrNoLeader reports that a change was not asked for, since no leader was reached: nothing has been done.
	ErrNoLeader = errors.New("no leader was reached, and nothing has been done")
	// ErrLevel reports that the ensemble cannot have a feature level.
	ErrLevel = errors.New("the feature level is not possible")
)

// errNotLeader reports that the leader has to be asked again: another server leads, or
// none, or it could not do it just now.
var errNotLeader = errors.New("no leader has carried it out")

// Server is one server of the configuration.
type Server struct {
	ID    state.ServerID
	Addr  string // host:port of the peer port
	Voter bool
}

// Config is what an Ensemble is made of.
type Config struct {
	Self            state.ServerID
	Servers         []Server // as configured
	Standalone      bool     // no other server can ever reach this one
	ElectionTimeout time.Duration
	Autopilot       Autopilot
	Logger          *slog.Logger
	Fatal           func(error)
	Mux             *mux.Mux
	Keys            *peerkeys.Keys // nil: servers are not told apart by keys
	Store           *storage.Store
	// RaftConfig and Transport are what raft is bootstrapped with.
	RaftConfig *raft.Config
	Transport  raft.Transport
	// StopRetrying has the transport return failures to raft, which waits for its requests in a transfer.
	StopRetrying func()

	// Leader returns who leads, as published; 0: nobody is known.
	Leader func() state.ServerID
	// Term returns the term, as published.
	Term func() uint64
	// Applied returns the index of the last entry that was applied here.
	Applied func() uint64
	// Published returns what the servers have published, as applied here.
	Published func() map[state.ServerID]state.Member
	// Configured returns the servers of the newest configuration that was applied here, and whether they vote.
	Configured func() map[state.ServerID]bool
	// Check answers a server that compares itself with this one, and asks for these indexes of the log.
	Check func(from state.ServerID, at []uint64) *selfcheck.Answer
	// Level returns the ensemble's feature level, as applied here.
	Level func() state.Level
	// Removed is called once when this server learns that it is no member any more, with what happened and what to do.
	Removed func(reason string)
	// Commit proposes a command and waits for its result.
	Commit func(context.Context, *state.Command) (znode.Error, error)
	// Connected counts the servers whose streams are connected here: those that vote, and the others.
	Connected func(voters map[state.ServerID]bool) (voting, others int)
	// LastContact returns whether a server's stream is connected, and when something last came on one.
	LastContact func(state.ServerID) (open bool, at time.Time)

	Context context.Context // ends with the node; its cause is what is returned then
	Go      func(func())    // runs a goroutine that Close of the node waits for
}
