package transport

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/appendrpc"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/fault"
)

const (
	// DefaultTimeout bounds one RPC of raft's. It covers the other server's disk sync; for a
	// snapshot raft scales it with the size.
	DefaultTimeout = 5 * time.Second
	// maxPool is how many idle connections raft keeps to each server: one for votes, one for a
	// transfer of leadership.
	maxPool = 2
)

// Options switches the three ideas off, each by itself. The zero value has all of them on.
type Options struct {
	NoPush     bool // followers learn of a commit by raft's own means (push.go)
	NoOverlap  bool // the leader's disk sync comes before replication (overlap.go)
	NoFailover bool // a dead leader is noticed by raft's timeouts only (failover.go)

	// StallLimit is how long the oldest record of the local log may wait for the disk before this
	// server stops acting as leader: then every AppendEntries fails, the lease runs out, and the
	// followers elect. 0 means DefaultStallLimit, negative means no limit.
	StallLimit time.Duration
	// Stagger is how much longer each further follower waits before it campaigns for a dead
	// leader's place. 0 means DefaultStagger.
	Stagger time.Duration
}

// Config is what a Transport is made of.
type Config struct {
	// Mux carries the connections. Required. The transport takes its stream layer.
	Mux *mux.Mux
	// LocalID is this server's id in raft's configuration. Required.
	LocalID raft.ServerID
	// Store is the log store whose syncs are overlapped. Nil means none: NoOverlap.
	Store Durable
	// Log is raft's log, to tell what this server already holds. Nil means that only what was applied
	// counts.
	Log raft.LogStore
	// Timeout replaces DefaultTimeout when it is positive.
	Timeout time.Duration
	// RaftLogger gets what raft.NetworkTransport has to say. Nil means none.
	RaftLogger hclog.Logger
	// Logger gets what the failure detector does. Nil means none.
	Logger *slog.Logger

	Options
}

// Transport is the raft.Transport that NewRaft gets; see the package comment. Until Attach it
// behaves like a raft.NetworkTransport without heartbeat handler and pipeline.
type Transport struct {
	*raft.NetworkTransport

	// set at construction
	logger  *slog.Logger
	mux     *mux.Mux
	rpcs    chan raft.RPC // to raft's main loop
	appends *appendrpc.Client
	push    *pusher   // nil: switched off
	overlap *overlap  // nil: switched off
	fail    *detector // nil: switched off
	hold    *holder
	behind  behind
	log     raft.LogStore // nil: unknown
	timeout time.Duration

	// own synchronisation
	raft      atomic.Pointer[raft.Raft]
	snapshots chan struct{} // has room for one, see onesnapshot.go
	done      chan struct{}
	once      sync.Once
	group     group
	count     counters
}

// New starts a transport over the mux. Close, which raft calls at its shutdown, stops it.
func New(cfg Config) *Transport {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.RaftLogger == nil {
		cfg.RaftLogger = hclog.NewNullLogger()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:          raftLayer{cfg.Mux},
			MaxPool:         maxPool,
			MaxRPCsInFlight: 1,
			Timeout:         cfg.Timeout,
			Logger:          cfg.RaftLogger,
		}),
		mux:     cfg.Mux,
		log:     cfg.Log,
		logger:  cfg.Logger,
		timeout: cfg.Timeout,
		rpcs:    make(chan raft.RPC),
		done:    make(chan struct{}),

		snapshots: make(chan struct{}, 1),
	}
	t.appends = appendrpc.NewClient(t.dialAppend, cfg.Timeout)
	t.hold = newHolder(t)
	if !cfg.NoPush {
		t.push = newPusher(t)
	}
	if !cfg.NoOverlap && cfg.Store != nil {
		t.overlap = newOverlap(t, cfg)
	}
	if cfg.NoFailover {
		cfg.Mux.SetRaft(t.serverAt, nil)
	} else {
		t.fail = newDetector(t, cfg)
		cfg.Mux.SetRaft(t.serverAt, t.fail.connEnded)
		t.group.run(t.fail.loop)
	}
	t.group.run(t.pump)
	t.group.run(t.acceptAppends)
	return t
}

// RaftID is the raft.ServerID of a server: its id in decimal. Servers of a configuration must be
// named this way, or the hello of a raft connection cannot say whom it wants.
func RaftID(id uint64) raft.ServerID { return raft.ServerID(strconv.FormatUint(id, 10)) }

// ParseRaftID is the inverse of RaftID; 0 for anything else.
func ParseRaftID(id raft.ServerID) uint64 {
	n, err := strconv.ParseUint(string(id), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// serverAt finds the id of the server that raft's latest configuration has at addr, 0 for none.
func (t *Transport) serverAt(addr string) uint64 {
	for _, s := range t.servers() {
		if string(s.Address) == addr {
			return ParseRaftID(s.ID)
		}
	}
	return 0
}

// servers is raft's latest configuration, committed or not. It reads an atomic copy and does not
// go through the main loop.
func (t *Transport) servers() []raft.Server {
	r := t.raft.Load()
	if r == nil {
		return nil
	}
	return r.GetConfiguration().Configuration().Servers
}

// member reports whether a server is in raft's latest configuration.
func (t *Transport) member(id raft.ServerID) bool {
	return slices.ContainsFunc(t.servers(), func(s raft.Server) bool { return s.ID == id })
}

// Attach gives the transport the raft that was made with it. Until then nothing is pushed,
// overlapped or injected.
func (t *Transport) Attach(r *raft.Raft) { t.raft.Store(r) }

// SetHeartbeatHandler does nothing: heartbeats take raft's main loop like every other RPC. The
// fast path would change term and state beside the main loop (hashicorp/raft issue 695), and the
// ideas of this package rely on their changing nowhere else.
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntriesPipeline is refused: a pipeline can wedge for good after one failed write at the
// follower (hashicorp/raft issue 612), and every answer has to pass AppendEntries.
func (t *Transport) AppendEntriesPipeline(
	raft.ServerID, raft.ServerAddress,
) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries is called by raft's replication and heartbeat goroutines.
func (t *Transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	select {
	case <-t.done:
		return raft.ErrTransportShutdown
	default:
	}
	n := len(req.Entries)
	heartbeat := n == 0 && req.PrevLogEntry == 0 && req.LeaderCommitIndex == 0
	for {
		t.count.appendEntries(n, heartbeat)
		if t.overlap != nil {
			if err := t.overlap.stalled(); err != nil {
				t.count.stalls.Add(1)
				return err
			}
		}
		if n > 0 && fault.On(fault.AckBeforeQuorum) {
			late := *req
			t.group.run(func() {
				_ = t.appends.Call(target, &late, &raft.AppendEntriesResponse{})
			})
			resp.Term, resp.Success, resp.LastLog = req.Term, true, req.Entries[n-1].Index
			return nil
		}
		if heartbeat {
			err := t.appends.Call(target, req, resp)
			if err == nil {
				t.hold.reached(id)
			}
			return err
		}
		err := t.replicate(id, target, req, resp)
		if err == nil {
			break
		}
		again := t.hold.failed(id, req.Term)
		if _, declined := errors.AsType[*appendrpc.DeclinedError](err); declined || !again {
			return err
		}
	}
	if resp.Success && n > 0 && t.overlap != nil {
		return t.overlap.waitAsLeader(req.Entries[n-1].Index)
	}
	return nil
}

// replicate sends what is not a heartbeat, once.
func (t *Transport) replicate(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	var f *follower
	if t.push != nil {
		f = t.push.sending(id, target, req)
	}
	err := t.appends.Call(target, req, resp)
	if f != nil {
		t.push.answered(f, req, resp, err)
	}
	t.behind.appended(id, len(req.Entries), err == nil && resp.Success)
	return err
}

// InstallSnapshot is called by raft's replication goroutines.
func (t *Transport) InstallSnapshot(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	t.behind.snapshot(id, req.Term)
	err := t.NetworkTransport.InstallSnapshot(id, target, req, resp, data)
	if err != nil || !resp.Success {
		t.behind.forget(id)
	}
	if err != nil {
		t.hold.failed(id, req.Term)
	}
	return err
}

// Consumer is where raft's main loop receives RPCs.
func (t *Transport) Consumer() <-chan raft.RPC { return t.rpcs }

// pump receives the RPCs of the NetworkTransport.
func (t *Transport) pump() {
	in := t.NetworkTransport.Consumer()
	for {
		select {
		case <-t.done:
			return
		case rpc := <-in:
			t.receive(rpc)
		}
	}
}

// receive hands an RPC of another server's to raft. On the way it withholds acknowledgements of what
// may not be on this server's disk, answers snapshots of what this server holds and pre-votes about
// a leader that it saw dead, and notes the votes that raft gives.
func (t *Transport) receive(rpc raft.RPC) {
	switch cmd := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		if n := len(cmd.Entries); n > 0 && t.overlap != nil {
			rpc.RespChan = t.overlap.withhold(rpc.RespChan, cmd.Entries[n-1].Index)
		}
	case *raft.InstallSnapshotRequest:
		if !t.answerSnapshot(rpc, cmd) {
			t.receiveSnapshot(rpc, cmd)
		}
		return
	case *raft.RequestPreVoteRequest:
		if t.fail != nil && t.fail.answerPreVote(rpc, cmd) {
			return
		}
	case *raft.RequestVoteRequest:
		if t.fail != nil {
			rpc.RespChan = t.fail.noteVote(rpc.RespChan)
		}
	}
	t.hand(rpc)
}

// hand gives rpc to raft's main loop, unless the transport is closed first.
func (t *Transport) hand(rpc raft.RPC) {
	select {
	case t.rpcs <- rpc:
	case <-t.done:
	}
}

// intercept runs f on the answer that raft gives, then passes it on to out.
func (t *Transport) intercept(
	out chan<- raft.RPCResponse, f func(*raft.RPCResponse),
) chan<- raft.RPCResponse {
	in := make(chan raft.RPCResponse, 1) // room for one: raft never waits for us
	t.group.run(func() {
		select {
		case r := <-in:
			f(&r)
			out <- r // room for one as well: made by raft.NetworkTransport for this RPC
		case <-t.done:
		}
	})
	return in
}

// Close stops the helpers, ends the raft connections of both directions and waits. raft calls it
// at the end of its shutdown; calling it again does nothing.
func (t *Transport) Close() error {
	t.once.Do(func() { close(t.done) })
	err := t.NetworkTransport.Close()
	t.group.wait()
	return err
}

// sleep waits for d; false when the transport was closed first.
func (t *Transport) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.done:
		return false
	}
}

// group tracks goroutines and refuses new ones once it is being waited for.
type group struct {
	wg sync.WaitGroup

	mu     sync.Mutex // protects the field below
	closed bool
}

func (g *group) run(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(f)
	return true
}

func (g *group) wait() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}
