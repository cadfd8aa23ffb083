package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/raftlog"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

var _ transport.AsyncLog = (*raftlog.Store)(nil) // or nothing would be overlapped

// testElection is short, so that tests are, and long against the pauses of a
// busy machine under the race detector.
const testElection = 250 * time.Millisecond

// testHandler is a Handler that only remembers.
type testHandler struct {
	restored atomic.Int64
	term     atomic.Uint64
	touched  atomic.Int64
	halted   atomic.Bool

	mu      sync.RWMutex // the view lock; protects the field below
	machine *state.Machine
}

func (h *testHandler) Entry(*forward.Times)                             {}
func (h *testHandler) BeginApply()                                      { h.mu.Lock() }
func (h *testHandler) EndApply()                                        { h.mu.Unlock() }
func (h *testHandler) StateReplaced(m *state.Machine)                   { h.machine = m; h.restored.Add(1) }
func (h *testHandler) Event(*znode.Event)                               {}
func (h *testHandler) SessionOpened(*session.Session)                   {}
func (h *testHandler) SessionAttached(*session.Session, state.ServerID) {}
func (h *testHandler) SessionClosed(*session.Session, []string, bool)   {}
func (h *testHandler) QuotaExceeded(string)                             {}
func (h *testHandler) Relayed(uint64, *state.Result)                    {}
func (h *testHandler) Halted()                                          { h.halted.Store(true) }
func (h *testHandler) Lead(term uint64)                                 { h.term.Store(term) }
func (h *testHandler) Touched(_ state.ServerID, ids []znode.SessionID) {
	h.touched.Add(int64(len(ids)))
}

func (h *testHandler) digest() (index uint64, digest uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Index(), h.machine.Digest()
}

func (h *testHandler) exists(path string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, code := h.machine.Tree().Exists(path, nil)
	return code == znode.OK
}

// testNode is a server of a testEnsemble.
type testNode struct {
	*Node
	handler *testHandler
	dir     string
	fs      *faultfs.FS // of raft's log; nil: the real one
	fatal   chan error
}

// testEnsemble is an ensemble of real stores and real sockets in one process.
// Servers are counted from 0, and so are their ids.
type testEnsemble struct {
	t       testing.TB
	net     *testNet
	servers []membership.Server
	nodes   []*testNode
	change  func(*Config)
	keyed   func(i int, c *peerkeys.Config) // nil: servers have no keys
}

// prepare makes an ensemble whose servers have not been started.
func prepare(t testing.TB, n int, change func(*Config)) *testEnsemble {
	e := &testEnsemble{t: t, change: change, net: &testNet{
		addr: map[string]int{}, cut: map[int]bool{}, conns: map[net.Conn][2]int{},
	}}
	for i, port := range ports.Take(t, n) {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		e.servers = append(e.servers, membership.Server{ID: state.ServerID(i), Addr: addr, Voter: true})
		e.net.addr[addr] = i
		e.nodes = append(e.nodes, &testNode{dir: t.TempDir(), fatal: make(chan error, 8)})
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.dump()
		}
		for i := range e.nodes {
			e.stop(i)
		}
	})
	return e
}

func newTestEnsemble(t testing.TB, n int, change func(*Config)) *testEnsemble {
	e := prepare(t, n, change)
	for i := range n {
		e.mustStart(i)
	}
	return e
}

func (e *testEnsemble) mustStart(i int) {
	e.t.Helper()
	if err := e.start(i); err != nil {
		e.t.Fatal(err)
	}
}

func (e *testEnsemble) start(i int) error {
	x := e.nodes[i]
	logger := slog.New(slog.NewTextHandler(testOutput(),
		&slog.HandlerOptions{Level: slog.LevelDebug})).With("server", i)
	fatal := func(err error) {
		select {
		case x.fatal <- err:
		default:
		}
	}
	store, err := storage.Open(storage.Config{Dir: x.dir, Logger: logger, OnFatal: fatal})
	if err != nil {
		return err
	}
	if x.fs != nil {
		if err := onFaultyDisk(&store, x.fs, logger, fatal); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", e.servers[i].Addr)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	x.handler = &testHandler{}
	cfg := Config{
		ID: e.servers[i].ID, Servers: e.servers, Listener: l, Dial: e.net.dial(i),
		Storage: store, Handler: x.handler, Logger: logger, Fatal: fatal,
		ElectionTimeout: testElection,
	}
	if len(e.servers) == 1 && e.keyed == nil {
		cfg.Listener = nil // standalone
		_ = l.Close()
	}
	if e.keyed != nil {
		k := peerkeys.Config{Dir: x.dir, Logger: logger}
		e.keyed(i, &k)
		cfg.Publish = &state.Member{ID: cfg.ID, Peer: e.servers[i].Addr + ":0"}
		if cfg.Keys, err = peerkeys.Open(k); err != nil {
			return errors.Join(err, store.Close())
		}
	}
	if e.change != nil {
		e.change(&cfg)
	}
	node, err := Open(cfg)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	x.Node = node
	return nil
}

// onFaultyDisk puts raft's log on a file system that fails on request.
func onFaultyDisk(s *storage.Store, disk *faultfs.FS, logger *slog.Logger, fatal func(error)) error {
	log, err := raftlog.Open("log", raftlog.Options{
		FS: disk, Logger: logger, OnFatal: fatal, SegmentSize: 1 << 20,
	})
	if err != nil {
		return err
	}
	closeRest := s.Close
	s.Log, s.Raftlog = log, log
	s.Close = func() error { return errors.Join(log.Close(), closeRest()) }
	return nil
}

func testOutput() io.Writer {
	if os.Getenv("ZK_LITE_TEST_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

// stop closes a server in good order.
func (e *testEnsemble) stop(i int) {
	if e.nodes[i].Node == nil {
		return
	}
	if err := e.nodes[i].Close(); err != nil {
		e.t.Errorf("closing server %d: %v", i+1, err)
	}
	e.nodes[i].Node = nil
}

// crash stops a server; the others hear nothing more of it.
func (e *testEnsemble) crash(i int) {
	e.net.setCut(i, true)
	e.stop(i)
	e.net.setCut(i, false)
}

// wipe gives a stopped server an empty disk.
func (e *testEnsemble) wipe(i int) {
	e.nodes[i].dir = filepath.Join(e.t.TempDir(), "new")
}

// leader waits for one that the others follow, leaving some servers aside, and those that are halted.
func (e *testEnsemble) leader(without ...int) int {
	e.t.Helper()
	found := -1
	wait.Until(e.t, "a leader", func() bool {
		found = -1
		for i, x := range e.nodes {
			if x.Node == nil || contains(without, i) {
				continue
			}
			s := x.Status()
			if s.Halt != nil {
				continue
			}
			if s.Leader == state.NoServer || found >= 0 && int(s.Leader) != found {
				return false
			}
			found = int(s.Leader)
		}
		return found >= 0 && !contains(without, found) && e.nodes[found].handler.term.Load() != 0
	})
	return found
}

// dump prints how the servers stand, for a failed test.
func (e *testEnsemble) dump() {
	for i, x := range e.nodes {
		if x.Node == nil {
			continue
		}
		s := x.Status()
		e.t.Logf("server %d: %+v, the handler has term %d", i, s, x.handler.term.Load())
		if s.Term > 0 { // raft runs
			e.t.Logf("server %d: %v", i, x.raft.Stats())
		}
	}
}

func contains(list []int, x int) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// waitFormed waits until the server that forms has heard from all.
func (e *testEnsemble) waitFormed() {
	e.t.Helper()
	wait.Until(e.t, "an ensemble that is formed", func() bool {
		for _, x := range e.nodes {
			if id := x.ensemble.Identity(); id == nil || id.Bootstrapping {
				return false
			}
		}
		return true
	})
}
