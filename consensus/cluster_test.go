package consensus

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// testHandler is a Handler that only remembers.
type testHandler struct {
	mu      sync.RWMutex // the view lock
	machine *state.Machine
	term    atomic.Uint64
	touched atomic.Int64
}

func (h *testHandler) BeginApply()                                      { h.mu.Lock() }
func (h *testHandler) EndApply()                                        { h.mu.Unlock() }
func (h *testHandler) Restored(m *state.Machine)                        { h.machine = m }
func (h *testHandler) Event(*znode.Event)                               {}
func (h *testHandler) SessionOpened(*session.Session)                   {}
func (h *testHandler) SessionAttached(*session.Session, state.ServerID) {}
func (h *testHandler) SessionClosed(znode.SessionID, bool)              {}
func (h *testHandler) QuotaExceeded(string)                             {}
func (h *testHandler) Lead(term uint64)                                 { h.term.Store(term) }
func (h *testHandler) Touched(ids []znode.SessionID)                    { h.touched.Add(int64(len(ids))) }

func (h *testHandler) digest() (index uint64, digest uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.Index(), h.machine.Digest()
}

// testNode is a server of a testEnsemble.
type testNode struct {
	*Node
	handler *testHandler
	dir     string
	fatal   chan error
}

// testEnsemble is an ensemble of real stores and real sockets in one process.
type testEnsemble struct {
	t       *testing.T
	servers []Server
	nodes   []*testNode
	change  func(*Config)
}

func newTestEnsemble(t *testing.T, n int, change func(*Config)) *testEnsemble {
	e := &testEnsemble{t: t, change: change, nodes: make([]*testNode, n)}
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		e.servers = append(e.servers, Server{ID: state.ServerID(i + 1), Addr: l.Addr().String(), Voter: true})
		l.Close()
	}
	for i := range n {
		e.nodes[i] = &testNode{dir: t.TempDir(), fatal: make(chan error, 1)}
		if err := e.start(i); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := range e.nodes {
			e.stop(i)
		}
	})
	return e
}

func (e *testEnsemble) start(i int) error {
	x := e.nodes[i]
	logger := slog.New(slog.NewTextHandler(testOutput(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("server", i+1)
	storage, err := OpenStorage(StorageConfig{Dir: x.dir, Logger: logger, OnFatal: func(err error) { x.fatal <- err }})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", e.servers[i].Addr)
	if err != nil {
		return err
	}
	x.handler = &testHandler{}
	cfg := Config{
		ID: e.servers[i].ID, Servers: e.servers, Listener: l, Storage: storage, Handler: x.handler,
		Logger: logger, Fatal: func(err error) { x.fatal <- err },
	}
	if e.change != nil {
		e.change(&cfg)
	}
	x.Node, err = Open(cfg)
	return err
}

func testOutput() io.Writer {
	if os.Getenv("ZK_LITE_TEST_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

func (e *testEnsemble) stop(i int) {
	if e.nodes[i].Node == nil {
		return
	}
	if err := e.nodes[i].Close(); err != nil {
		e.t.Errorf("closing server %d: %v", i+1, err)
	}
	e.nodes[i].Node = nil
}

func (e *testEnsemble) wait(what string, cond func() bool) {
	e.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			e.t.Fatalf("still not: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (e *testEnsemble) leader() int {
	for i, x := range e.nodes {
		if x.Node != nil && x.handler.term.Load() != 0 {
			return i
		}
	}
	return -1
}

// waiter counts results.
type waiter struct {
	done chan state.Result
}

func (w waiter) Applied(r *state.Result) { w.done <- *r }
func (w waiter) Lost()                   { close(w.done) }

func create(path string) *state.Command {
	return &state.Command{Op: state.OpCreate, Path: path, Data: []byte("x"), ACL: znode.OpenACL}
}

func TestEnsemble_Form_WriteThroughEveryServer(t *testing.T) {
	e := newTestEnsemble(t, 3, nil)
	start := time.Now()
	for i, x := range e.nodes {
		w := waiter{make(chan state.Result, 1)}
		if err := x.Propose(create(fmt.Sprintf("/n%d", i)), w); err != nil {
			t.Fatal(err)
		}
		if r := <-w.done; r.Code != znode.OK {
			t.Fatal(r.Code)
		}
	}
	t.Logf("formed and wrote after %v", time.Since(start))
	e.agree()
}

func TestEnsemble_LeaderStops_PendingCommandsSurviveOnce(t *testing.T) {
	e := newTestEnsemble(t, 3, nil)
	e.wait("a leader", func() bool { return e.leader() >= 0 })
	old := e.leader()
	follower := (old + 1) % 3
	const n = 2000
	done := make(chan state.Result, n)
	for k := range n {
		if err := e.nodes[follower].Propose(create(fmt.Sprintf("/k%d", k)), waiter{done}); err != nil {
			t.Fatal(err)
		}
		if k == n/2 {
			go e.nodes[old].Transfer()
		}
	}
	for range n {
		if r := <-done; r.Code != znode.OK { // a command applied twice would say NODEEXISTS
			t.Fatal(r.Code)
		}
	}
	e.agree()
}

func TestEnsemble_RestartAll_KeepsEverything(t *testing.T) {
	e := newTestEnsemble(t, 3, func(c *Config) { c.SnapshotCommands = 100 })
	done := make(chan state.Result, 1000)
	for k := range 1000 {
		if err := e.nodes[k%3].Propose(create(fmt.Sprintf("/k%d", k)), waiter{done}); err != nil {
			t.Fatal(err)
		}
		if k%10 == 9 {
			for range 10 {
				<-done
			}
		}
	}
	e.agree()
	_, before := e.nodes[0].handler.digest()
	for i := range e.nodes {
		e.stop(i)
	}
	for i := range e.nodes {
		if err := e.start(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range e.nodes {
		e.wait("everything is back", func() bool { _, d := e.nodes[i].handler.digest(); return d == before })
	}
}

// agree waits until all servers have applied the same and compares digests.
func (e *testEnsemble) agree() {
	e.t.Helper()
	e.wait("equal indexes", func() bool {
		for _, x := range e.nodes {
			if x.applied.Load() != e.nodes[0].applied.Load() || x.forward.len() > 0 {
				return false
			}
		}
		return true
	})
	_, want := e.nodes[0].handler.digest()
	for i, x := range e.nodes[1:] {
		if _, got := x.handler.digest(); got != want {
			e.t.Errorf("digest of server %d is %x, of server 1 %x", i+2, got, want)
		}
	}
}

func TestEnsemble_WipedServer_IsRefused(t *testing.T) {
	e := newTestEnsemble(t, 3, nil)
	e.wait("formed", func() bool { id := e.nodes[0].identity.Load(); return id != nil && !id.Forming })
	e.wait("a leader", func() bool { return e.leader() >= 0 })
	for _, i := range []int{2, 0} {
		e.stop(i)
		e.nodes[i].dir = t.TempDir()
		if err := e.start(i); err != nil {
			t.Fatal(err)
		}
		err := <-e.nodes[i].fatal
		t.Log(err)
		e.stop(i)
		if i == 2 {
			e.wait("a leader", func() bool { return e.leader() >= 0 })
		}
	}
}
