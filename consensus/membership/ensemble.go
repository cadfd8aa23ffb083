package membership

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
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
	ElectionTimeout time.Duration
	Logger          *slog.Logger
	Fatal           func(error)
	Mux             *mux.Mux
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
	// Commit proposes a command and waits for its result.
	Commit func(context.Context, *state.Command) (znode.Error, error)
	// Connected counts the servers whose streams are connected here: those that vote, and the others.
	Connected func(voters map[state.ServerID]bool) (voting, others int)
	// LastContact returns whether a server's stream is connected, and when something last came on one.
	LastContact func(state.ServerID) (open bool, at time.Time)

	Context context.Context // ends with the node; its cause is what is returned then
	Go      func(func())    // runs a goroutine that Close of the node waits for
}

// Ensemble is the ensemble as one of its servers sees it: how it came to be, who is a member, and how
// that is changed.
type Ensemble struct {
	cfg       Config
	raft      atomic.Pointer[raft.Raft] // nil: not started
	identity  atomic.Pointer[storage.Identity]
	accepted  chan storage.Identity // capacity 1: another server has bootstrapped this one
	accepting sync.Mutex            // one request to bootstrap at a time
}

// New returns an Ensemble that does nothing before Serve and Bootstrap.
func New(cfg Config) *Ensemble {
	return &Ensemble{cfg: cfg, accepted: make(chan storage.Identity, 1)}
}

// Join notes to which ensemble this server belongs.
func (e *Ensemble) Join(id storage.Identity) { e.identity.Store(&id) }

// Identity returns to which ensemble this server belongs; nil: none yet.
func (e *Ensemble) Identity() *storage.Identity { return e.identity.Load() }

// Start begins to answer what only raft can, and finishes what Bootstrap has begun.
func (e *Ensemble) Start(r *raft.Raft) {
	e.raft.Store(r)
	id := *e.identity.Load()
	if id.Bootstrapping {
		e.cfg.Go(func() { e.finishBootstrap(id) })
	}
	if !e.standalone() {
		e.cfg.Go(func() { e.checkOthers(id) })
	}
}

func (e *Ensemble) standalone() bool { return len(e.cfg.Servers) == 1 }

func (e *Ensemble) self() Server {
	for _, s := range e.cfg.Servers {
		if s.ID == e.cfg.Self {
			return s
		}
	}
	return Server{}
}

// lowestVoter is the server that bootstraps the ensemble.
func (e *Ensemble) lowestVoter() state.ServerID {
	lowest := state.ServerID(0)
	for _, s := range e.cfg.Servers {
		if s.Voter && (lowest == 0 || s.ID < lowest) {
			lowest = s.ID
		}
	}
	return lowest
}

// leads returns raft if this server leads. Raft itself refuses what it is asked when that is no longer
// so.
func (e *Ensemble) leads() (*raft.Raft, error) {
	r := e.raft.Load()
	if r == nil || e.cfg.Leader() != e.cfg.Self {
		return nil, errNotLeader
	}
	return r, nil
}

// AddressOf returns a server's address in raft's configuration: its id. Where that
// is in the network every server reads in its own configuration, so that an
// address may change, and may differ from one server's view to another's.
func AddressOf(id state.ServerID) string { return strconv.FormatUint(uint64(id), 10) }

// VotersOf returns the servers of a configuration of raft's, and whether they vote.
func VotersOf(servers []raft.Server) map[state.ServerID]bool {
	voters := map[state.ServerID]bool{}
	for _, s := range servers {
		voters[state.ServerID(transport.ParseRaftID(s.ID))] = s.Suffrage == raft.Voter
	}
	return voters
}

// configured is raft's latest configuration, committed or not: the servers, and
// whether they vote.
func (e *Ensemble) configured() map[state.ServerID]bool {
	r := e.raft.Load()
	if r == nil {
		return nil
	}
	return VotersOf(r.GetConfiguration().Configuration().Servers)
}

// Voters returns the servers that vote in raft's latest configuration.
func (e *Ensemble) Voters() map[state.ServerID]bool {
	voters := e.configured()
	for id, v := range voters {
		if !v {
			delete(voters, id)
		}
	}
	return voters
}

func (e *Ensemble) suffrage(id state.ServerID) suffrage {
	switch votes, in := e.configured()[id]; {
	case !in:
		return notMember
	case votes:
		return voter
	default:
		return nonvoter
	}
}

// Members returns the servers of the ensemble, with what they have published.
func (e *Ensemble) Members() map[state.ServerID]state.Member {
	all := map[state.ServerID]state.Member{}
	published := e.cfg.Published()
	for id, votes := range e.configured() {
		m := published[id]
		m.ID, m.Voter = id, votes
		all[id] = m
	}
	return all
}
