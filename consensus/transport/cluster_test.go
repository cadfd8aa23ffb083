package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

var testEnsemble = [16]byte{1, 2, 3}

func rafts(addr string) raft.ServerAddress { return raft.ServerAddress(addr) }

// applied is one entry as a state machine saw it, and when.
type applied struct {
	index, term uint64
	data        string
	at          time.Time
}

// machine is a state machine that records what it applied. With a witness it also reports it.
type machine struct {
	t       *Transport
	store   *diskView
	witness *witness
	slow    chan struct{} // if not nil, closed when snapshots may be written

	mu   sync.Mutex
	seen []applied
	data []string // all entries, those from snapshots included
	last uint64
	want map[string]chan struct{} // closed when the entry is applied
}

// expect gives a channel that is closed when an entry with this data is applied.
func (m *machine) expect(data string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want == nil {
		m.want = map[string]chan struct{}{}
	}
	ch := make(chan struct{})
	m.want[data] = ch
	return ch
}

func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	m.mu.Lock()
	for _, l := range logs {
		m.last = l.Index
		if l.Type == raft.LogConfiguration {
			m.t.SetPeers(raft.DecodeConfiguration(l.Data).Servers)
			continue
		}
		a := applied{l.Index, l.Term, string(l.Data), time.Now()}
		m.seen = append(m.seen, a)
		m.data = append(m.data, a.data)
		if ch := m.want[a.data]; ch != nil {
			close(ch)
			delete(m.want, a.data)
		}
		if m.witness != nil {
			m.witness.see(a)
		}
	}
	last := m.last
	m.mu.Unlock()
	m.t.Committed(last)
	return make([]any, len(logs))
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.t.BeginSnapshot() {
		return nil, raft.ErrNothingNewToSnapshot
	}
	b, err := json.Marshal(m.data)
	return &machineSnapshot{b, m, m.last}, err
}

func (m *machine) Restore(r io.ReadCloser) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = nil
	return json.NewDecoder(r).Decode(&m.data)
}

func (m *machine) entries() []applied {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]applied(nil), m.seen...)
}

func (m *machine) has(data string) (applied, bool) {
	for _, a := range m.entries() {
		if a.data == data {
			return a, true
		}
	}
	return applied{}, false
}

type machineSnapshot struct {
	b     []byte
	m     *machine
	index uint64
}

func (s *machineSnapshot) Persist(k raft.SnapshotSink) error {
	if err := s.m.store.WaitDurable(s.index); err != nil {
		return err
	}
	if s.m.slow != nil {
		<-s.m.slow
	}
	if _, err := k.Write(s.b); err != nil {
		return err
	}
	return k.Close()
}
func (s *machineSnapshot) Release() { s.m.t.EndSnapshot() }

// server is one server of a test cluster; mux to raft belong to its current life.
type server struct {
	id   uint64
	addr string
	disk *disk
	// plain is set where raft runs without the Transport, see regression_test.go.
	plain *plain
	f     *pipenet.Network

	mu    sync.Mutex
	mux   *mux.Mux
	t     *Transport
	r     *raft.Raft
	fsm   *machine
	store *diskView
}

func (s *server) raft() *raft.Raft { s.mu.Lock(); defer s.mu.Unlock(); return s.r }

// cluster is a set of servers on a fabric; run it in a bubble.
type cluster struct {
	t       *testing.T
	f       *pipenet.Network
	servers []*server
	opt     clusterOptions
}

type clusterOptions struct {
	n        int // default 3
	seed     uint64
	syncTime func(*rand.Rand) time.Duration
	options  Options
	config   func(id uint64, c *raft.Config)
	// wire changes a transport before raft runs on it.
	wire func(s *server)
	// transport replaces what raft gets; nil: the Transport.
	transport func(s *server) raft.Transport
	witness   *witness
	// dialled changes a connection that a server has dialled.
	dialled func(s *server, c net.Conn) net.Conn
}

func testConfig(id uint64) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = RaftID(id)
	c.Logger = hclog.NewNullLogger()
	if os.Getenv("PEER_TEST_LOG") != "" {
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: string(c.LocalID), Level: hclog.Debug})
	}
	c.BatchApplyCh, c.NoLegacyTelemetry = true, true
	c.HeartbeatTimeout, c.ElectionTimeout = 500*time.Millisecond, 500*time.Millisecond
	c.LeaderLeaseTimeout, c.CommitTimeout = 250*time.Millisecond, 50*time.Millisecond
	c.SnapshotThreshold = 1 << 40
	return c
}

func newCluster(t *testing.T, opt clusterOptions) *cluster {
	t.Helper()
	if opt.n == 0 {
		opt.n = 3
	}
	c := &cluster{t: t, f: pipenet.New(), opt: opt}
	var cfg raft.Configuration
	for i := range opt.n {
		s := &server{id: uint64(i + 1), addr: fmt.Sprintf("s%d", i+1), f: c.f}
		s.disk = newDisk(opt.seed+s.id, opt.syncTime)
		c.servers = append(c.servers, s)
		cfg.Servers = append(cfg.Servers, raft.Server{ID: RaftID(s.id), Address: rafts(s.addr)})
	}
	for _, s := range c.servers {
		c.start(s, &cfg)
	}
	t.Cleanup(c.stop)
	return c
}

// start begins a life of s.
func (c *cluster) start(s *server, bootstrap *raft.Configuration) {
	s.mu.Lock()
	s.store = s.disk.open()
	dial := c.f.Dialer(s.addr)
	s.mux = mux.New(mux.Config{Listener: c.f.Listen(s.addr), Dial: func(ctx context.Context, to string) (net.Conn, error) {
		conn, err := dial(ctx, to)
		if err == nil && c.opt.dialled != nil {
			conn = c.opt.dialled(s, conn)
		}
		return conn, err
	}})
	s.mux.SetIdentity(testEnsemble, s.id)
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv("PEER_TEST_LOG") != "" {
		logger = slog.Default()
	}
	s.t = New(Config{
		Mux: s.mux, LocalID: RaftID(s.id), Log: s.store, Timeout: time.Second,
		Logger: logger, Options: c.opt.options,
	})
	s.fsm = &machine{t: s.t, store: s.store, witness: c.opt.witness}
	s.mu.Unlock() // the rest takes time, and a mutex must not be held over that in a bubble
	if c.opt.wire != nil {
		c.opt.wire(s)
	}
	conf := testConfig(s.id)
	if c.opt.config != nil {
		c.opt.config(s.id, conf)
	}
	var tr raft.Transport = s.t
	if c.opt.transport != nil {
		tr = c.opt.transport(s)
	}
	if bootstrap != nil {
		err := raft.BootstrapCluster(conf, s.store, s.store, s.store, tr, *bootstrap)
		if err != nil {
			c.t.Fatal(err)
		}
	}
	r, err := raft.NewRaft(conf, s.fsm, s.store, s.store, s.store, tr)
	if err != nil {
		c.t.Fatal(err)
	}
	s.t.Attach(r)
	s.mu.Lock()
	s.r = r
	s.mu.Unlock()
}

// end closes the parts of the server's current life and waits for them.
func (s *server) end() {
	s.mu.Lock()
	r := s.r
	s.r = nil
	s.mu.Unlock()
	if r == nil {
		return
	}
	stopped := r.Shutdown() // only the first call's future waits
	s.mux.Close()
	s.store.close()
	if s.plain != nil {
		s.plain.unwedge()
	}
	if err := stopped.Error(); err != nil {
		panic(err)
	}
	s.t.Close()
}

func (c *cluster) stop() {
	for _, s := range c.servers {
		s.end()
	}
}

// leader waits for a leader other than not whose state machine has caught up with its term.
func (c *cluster) leader(not ...*server) *server {
	c.t.Helper()
	for range 20000 {
		for _, s := range c.servers {
			if r := s.raft(); r != nil && r.State() == raft.Leader && !in(s, not) {
				return s
			}
		}
		clock.Sleep(time.Millisecond)
	}
	c.t.Fatal("no leader after 20 s")
	return nil
}

func (c *cluster) others(s *server) (o []*server) {
	for _, x := range c.servers {
		if x != s {
			o = append(o, x)
		}
	}
	return o
}

func in(s *server, list []*server) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (c *cluster) apply(s *server, data string) applied {
	c.t.Helper()
	if err := s.raft().Apply([]byte(data), 0).Error(); err != nil {
		c.t.Fatalf("apply %q: %v", data, err)
	}
	a, ok := s.fsm.has(data)
	if !ok {
		c.t.Fatalf("%q is acknowledged and not applied", data)
	}
	return a
}

// await waits for the bubble's clock until f holds.
func (c *cluster) await(what string, f func() bool) {
	c.t.Helper()
	for range 20000 {
		if f() {
			return
		}
		clock.Sleep(time.Millisecond)
	}
	c.t.Fatalf("after 20 s: not %s", what)
}

// witness checks State Machine Safety over all servers and all their lives.
type witness struct {
	mu   sync.Mutex
	seen map[uint64]string
	bad  []string
}

func (w *witness) see(a applied) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[uint64]string{}
	}
	s := fmt.Sprintf("%d/%s", a.term, a.data)
	if old, ok := w.seen[a.index]; ok && old != s {
		w.bad = append(w.bad, fmt.Sprintf("index %d: %s and %s", a.index, old, s))
	}
	w.seen[a.index] = s
}
