package membership

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
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
	Mux             *mux.Mux
	Keys            *peerkeys.Keys // nil: servers are not told apart by keys
	Store           *storage.Store
	Disk            *storage.Monitor
	Transport       Transport
	Seed            string             // digest of this server's seed; empty: it has none
	Check           *selfcheck.Checker // answers servers that compare themselves with this one
	Leadership      *leadership.Publisher
	Applied         *Applied
	Queue           *forward.Queue   // takes commands
	Streams         *forward.Streams // of the other servers, while this one leads

	// Found is called when another server founds the ensemble with this one.
	Found func(conn *mux.Conn, req *Request) error
	// Removed is called once when this server learns that it is no longer a member, with what happened and what to do.
	Removed func(reason string)

	Context context.Context // ends with the node; its cause is what is returned then
	Tasks   *sync.WaitGroup // of the goroutines that Close of the node waits for
}

// Transport is raft's.
type Transport interface {
	raft.Transport
	// StopRetrying has it return failures to raft, which waits for its requests in a transfer.
	StopRetrying()
	// LeaderLog is the last entry that leaders have told this server to be in their logs, since its start.
	LeaderLog() uint64
}
