package transport

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// raftLink is shared by the parts of a Transport: raft, once it is attached, the way into its main
// loop, the goroutines and the counters.
type raftLink struct {
	// set at construction
	logger      *slog.Logger
	persistTerm func()        // see Config
	rpcs        chan raft.RPC // to raft's main loop
	done        chan struct{} // closed by close

	// own synchronisation
	raft  atomic.Pointer[raft.Raft]
	count counters
	wg    sync.WaitGroup

	mu     sync.Mutex // protects the field below
	closed bool
}

// servers is raft's latest configuration, committed or not. It reads an atomic copy and does not go
// through the main loop.
func (l *raftLink) servers() []raft.Server {
	r := l.raft.Load()
	if r == nil {
		return nil
	}
	return r.GetConfiguration().Configuration().Servers
}

// member reports whether a server is in raft's latest configuration.
func (l *raftLink) member(id raft.ServerID) bool {
	return slices.ContainsFunc(l.servers(), func(s raft.Server) bool { return s.ID == id })
}

// serverAt returns the id of the server that raft's latest configuration has at addr, mux.NoServer for none.
func (l *raftLink) serverAt(addr string) uint64 {
	for _, s := range l.servers() {
		if string(s.Address) == addr {
			return ParseRaftID(s.ID)
		}
	}
	return mux.NoServer
}

// deliver gives rpc to raft's main loop, unless the transport is closed first.
func (l *raftLink) deliver(rpc raft.RPC) {
	select {
	case l.rpcs <- rpc:
	case <-l.done:
	}
}

// intercept runs f on the answer that raft gives, then passes it on to out, once term and vote are on the disk.
func (l *raftLink) intercept(
	out chan<- raft.RPCResponse, f func(*raft.RPCResponse),
) chan<- raft.RPCResponse {
	in := make(chan raft.RPCResponse, 1) // room for one: raft never waits for us
	l.run(func() {
		select {
		case r := <-in:
			f(&r)
			l.persistTerm()
			out <- r // room for one as well: made by raft.NetworkTransport for this RPC
		case <-l.done:
		}
	})
	return in
}

// run runs f on a goroutine that close waits for. It returns false after close.
func (l *raftLink) run(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.wg.Go(f)
	return true
}

// stop makes all goroutines end. Calling it again does nothing.
func (l *raftLink) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
}

func (l *raftLink) stopped() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// sleep waits for d. It returns false when the transport was closed first.
func (l *raftLink) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}

// RaftID is the raft.ServerID of a server: its id in decimal. Servers of a configuration must be
// named this way, because the hello of a raft connection names the wanted server by its number.
func RaftID(id uint64) raft.ServerID { return raft.ServerID(strconv.FormatUint(id, 10)) }

// ParseRaftID is the inverse of RaftID; mux.NoServer for anything else.
func ParseRaftID(id raft.ServerID) uint64 {
	n, err := strconv.ParseUint(string(id), 10, 64)
	if err != nil {
		return mux.NoServer
	}
	return n
}
