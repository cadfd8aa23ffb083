package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// origin plays a ZooKeeper ensemble: it commits transactions, and keeps them as its leader sends them.
type origin struct {
	t  testing.TB
	mu sync.Mutex
	r  *replica.Replica
	x  znode.Txn

	sent   [][]byte
	first  znode.Zxid  // of sent
	spoil  bool        // whether digests are wrong
	old    bool        // it is of ZooKeeper 3.4, which does not send its configuration
	silent atomic.Bool // requests get no answer
	cut    atomic.Bool // end the connection
	asked  []string    // what learners have sent, but for touches
	owners map[znode.SessionID]*connection

	follows []learner.Position // of every Follow
	ids     []int64            // of the learners
	// end returns why the n-th Follow, from 1, fails before it brings anything; nil: it does not.
	end func(n int) error
}

// originConfig is the origin's configuration.
const originConfig = "server.1=zk1:2888:3888:participant;2181\nserver.2=zk2:2888:3888:participant;2181\n" +
	"server.3=zk3:2888:3888:participant;2181\nserver.4=zk4:2888:3888:observer;2181\nversion=0"

const firstZxid = 5<<32 + 1

func newOrigin(t testing.TB) *origin {
	o := &origin{t: t, first: firstZxid, r: replica.New(znode.NewTree(), session.NewTable(), firstZxid-1)}
	o.commit(replica.OpCreateSession, "")
	o.commit(replica.OpCreate, "/a")
	return o
}

// commit commits a transaction: OpCreateSession, OpCreate or OpSetData.
func (o *origin) commit(op replica.Op, path string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var b []byte
	switch op {
	case replica.OpCreateSession:
		b = jute.AppendInt32(b, 6000)
	case replica.OpCreate:
		b = jute.AppendVectorLen(jute.AppendBuffer(jute.AppendUstring(b, path), []byte("data")), 1)
		b = jute.AppendUstring(jute.AppendUstring(jute.AppendInt32(b, 31), "world"), "anyone")
		b = jute.AppendInt32(jute.AppendBool(b, false), -1)
	case replica.OpSetData:
		stat, _ := o.r.Tree.Exists(path, []znode.ID{znode.SuperIDs})
		b = jute.AppendInt32(jute.AppendBuffer(jute.AppendUstring(b, path), make([]byte, 1000)), int32(stat.Version+1))
	}
	o.commitLocked(0x77, 1, op, b)
}

func (o *origin) commitLocked(session znode.SessionID, cxid int32, op replica.Op, record []byte) {
	o.t.Helper()
	b := jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, int64(session)), cxid), int64(o.r.Zxid+1))
	b = jute.AppendInt32(jute.AppendInt64(b, time.Now().UnixMilli()), int32(op))
	b = append(b, record...)
	txn, err := replica.ParseTxn(b)
	if err == nil {
		err = o.r.Apply(&o.x, txn, false)
	}
	if err != nil {
		o.t.Fatalf("committing %v of session %v: %v", op, session, err)
	}
	digest := o.r.Digest()
	if o.spoil {
		digest++
	}
	o.sent = append(o.sent, jute.AppendInt64(jute.AppendInt32(b, 2), int64(digest)))
}

// write commits n transactions.
func (o *origin) write(n int) {
	o.t.Helper()
	for range n {
		o.commit(replica.OpSetData, "/a")
	}
}

// snapshot returns a copy of the state.
func (o *origin) snapshot() *replica.Replica {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b bytes.Buffer
	err := o.r.Write(&b)
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := replica.Read(jute.NewStream(&b, 1<<20), o.r.Zxid)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

// after returns the transactions after one.
func (o *origin) after(z znode.Zxid) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.sent[min(z-o.first+1, znode.Zxid(len(o.sent))):])
}

func (o *origin) zxid() znode.Zxid {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.r.Zxid
}

// connection is a Learner.
type connection struct {
	*origin
	mu      sync.Mutex
	now     learner.Status
	answers []due
}

func (c *connection) Status() learner.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Follow implements Learner.
func (c *connection) Follow(ctx context.Context, from learner.Position, h learner.Handler) error {
	c.origin.mu.Lock()
	c.follows = append(c.follows, from)
	var err error
	if c.end != nil {
		err = c.end(len(c.follows))
	}
	c.origin.mu.Unlock()
	if err != nil {
		return err
	}
	kind := "DIFF"
	if from.Zxid == 0 {
		kind = "SNAP"
	}
	config := originConfig
	if c.old {
		config = ""
	}
	if err := h.Leader(learner.Leader{Server: "zk1:2888", Epoch: 5, Sync: kind, Config: config}); err != nil {
		return err
	}
	if from.Zxid == 0 {
		r := c.snapshot()
		from.Zxid = r.Zxid
		if err := h.Snapshot(r); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		for _, raw := range c.after(from.Zxid) {
			txn, err := replica.ParseTxn(raw)
			if err == nil {
				err = c.deliver(h, txn.Zxid-1)
			}
			if err == nil {
				err = h.Transaction(raw, txn)
			}
			if err != nil {
				return err
			}
			from.Zxid = txn.Zxid
		}
		c.mu.Lock()
		c.now = learner.Status{Server: "zk1:2888", Synced: true, Received: from.Zxid, Proposed: from.Zxid}
		c.mu.Unlock()
		if err := c.deliver(h, from.Zxid); err != nil {
			return err
		}
		if c.cut.Swap(false) {
			return errors.New("the leader has ended the connection")
		}
		wait(ctx, 10*time.Millisecond)
	}
	return context.Cause(ctx)
}

// ensemble plays ours: a log, and one machine that applies it.
type ensemble struct {
	t     testing.TB
	queue chan proposal

	mu       sync.Mutex
	room     int64
	gate     func(c *state.Command) // called before a command is applied; nil: not
	machine  *state.Machine
	mirrors  []*Mirror
	outcomes []string // of relays
	term     uint64
	leader   int // of the nodes
	index    uint64
	bytes    []int // of the MirrorFollow commands
	parts    int
	inFlight map[state.MirrorStep]int
	most     map[state.MirrorStep]int
}

type proposal struct {
	from *node
	seq  uint64
	c    state.Command
	w    forward.Waiter
}

// node is a server of the ensemble. It implements Log.
type node struct {
	*ensemble
	number int
	seq    uint64
}

func newEnsemble(t testing.TB) *ensemble {
	e := &ensemble{
		t: t, queue: make(chan proposal, 1000), room: 1 << 40, machine: state.New(), term: 1,
		inFlight: map[state.MirrorStep]int{}, most: map[state.MirrorStep]int{},
	}
	go func() {
		for p := range e.queue {
			e.mu.Lock()
			gate := e.gate
			e.mu.Unlock()
			if gate != nil {
				gate(&p.c)
			}
			e.apply(p)
		}
	}()
	return e
}

// result passes a command's result on.
type result struct {
	state.Unobserved
	e *ensemble
	w forward.Waiter
}

// Relayed implements state.Observer.
func (o result) Relayed(number uint64, r *state.Result) {
	if r == nil {
		for _, m := range o.e.mirrors {
			m.Wake()
		}
		return
	}
	o.e.outcomes = append(o.e.outcomes, fmt.Sprintf("%d %v %s", number, r.Op, r.Code.Name()))
}

func (o result) Result(_ state.Origin, _ uint64, r *state.Result) { o.w.Applied(r) }

func (e *ensemble) apply(p proposal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.c.Op == state.OpMirror {
		e.inFlight[p.c.Mirror]--
	}
	e.index++
	b := state.Batch{Origin: state.Origin{Server: state.ServerID(p.from.number + 1), Incarnation: 1}, First: p.seq, Count: 1}
	b.Commands = state.AppendCommand(nil, &p.c)
	entry := state.AppendEntry(nil, time.Now().UnixMilli(), []state.Batch{b})
	if err := e.machine.Apply(e.index, e.term, entry, result{e: e, w: p.w}); err != nil {
		e.t.Error(err)
	}
}

// lead makes a node the leader of the next term.
func (e *ensemble) lead(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leader, e.term = n, e.term+1
}

func (n *node) Leads() (term uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leader != n.number {
		return 0
	}
	return n.term
}

func (n *node) Mirror() (state.Mirror, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Mirror()
}

func (n *node) Held() Held {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Held{n.term, n.machine.Zxid(), n.machine.ZooKeeperDigest(), n.machine.Tree().Size().Znodes,
		n.machine.Sessions().Len()}
}

func (n *node) Ensemble() [16]byte { return [16]byte{0xff, 1: 7} }

func (n *node) Room(string) (free, used int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.room, 0
}

func (n *node) Propose(c *state.Command, w forward.Waiter) error {
	n.mu.Lock()
	n.seq++
	p := proposal{n, n.seq, *c, w}
	if c.Op == state.OpMirror {
		n.inFlight[c.Mirror]++
		n.most[c.Mirror] = max(n.most[c.Mirror], n.inFlight[c.Mirror])
		switch c.Mirror {
		case state.MirrorFollow:
			n.bytes = append(n.bytes, len(c.Data))
		case state.MirrorPart:
			n.parts++
		}
	}
	n.mu.Unlock()
	n.queue <- p
	return nil
}

type answer struct {
	r    state.Result
	done chan struct{}
}

func (a *answer) Applied(r *state.Result) {
	a.r = *r
	close(a.done)
}
func (a *answer) Lost() { close(a.done) }

func (n *node) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	if ctx.Err() != nil {
		return state.Result{}, context.Cause(ctx)
	}
	a := &answer{done: make(chan struct{})}
	if err := n.Propose(c, a); err != nil {
		return state.Result{}, err
	}
	select {
	case <-a.done:
		return a.r, nil
	case <-ctx.Done():
		return state.Result{}, context.Cause(ctx)
	}
}

// rig is an origin and an ensemble of servers with a Mirror each.
type rig struct {
	*origin
	*ensemble
	t       testing.TB
	log     lines
	clients uint64 // commands of ask
}

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// mirroring runs a test in a bubble, with so many servers, the first of which leads.
func mirroring(t *testing.T, servers int, from []string, test func(t *testing.T, g *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &rig{origin: newOrigin(t), ensemble: newEnsemble(t), t: t}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range servers {
			m := New(&node{ensemble: g.ensemble, number: i}, Config{
				From: from, Logger: slog.New(slog.NewTextHandler(&g.log, nil)),
				Limits: seed.Limits{MaxBuffer: 500, MaxTimeout: time.Hour, Digest: true, SHA1: true},
				Learner: func(servers []string, id int64) Learner {
					g.origin.mu.Lock()
					defer g.origin.mu.Unlock()
					g.ids = append(g.ids, id)
					return &connection{origin: g.origin}
				},
			})
			g.mirrors = append(g.mirrors, m)
			running.Go(func() { m.Run(ctx) })
		}
		test(t, g)
		cancel()
		running.Wait()
		close(g.queue)
	})
}

func (g *rig) begin(again bool) {
	g.t.Helper()
	if err := g.mirrors[0].Begin(g.t.Context(), []string{"zk1:2888", "zk2:2888"}, again); err != nil {
		g.t.Fatalf("beginning: %v, want nil", err)
	}
}

// edit changes what the goroutines of both sides read.
func (g *rig) edit(change func()) {
	g.ensemble.mu.Lock()
	defer g.ensemble.mu.Unlock()
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	change()
}

// settle waits until the ensemble has the origin's state.
func (g *rig) settle() {
	g.t.Helper()
	for range 600 {
		if now, on := g.mirror(); on && now.Loaded && now.Zxid == g.zxid() {
			synctest.Wait()
			g.same()
			return
		}
		clock.Sleep(100 * time.Millisecond)
	}
	now, on := g.mirror()
	g.t.Fatalf("after a minute: %+v, %v, want zxid %v; log:\n%v", now, on, g.zxid(), &g.log)
}

func (g *rig) mirror() (state.Mirror, bool) {
	g.ensemble.mu.Lock()
	defer g.ensemble.mu.Unlock()
	return g.machine.Mirror()
}

func (g *rig) same() {
	g.t.Helper()
	g.ensemble.mu.Lock()
	defer g.ensemble.mu.Unlock()
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	got := replica.New(g.machine.Tree(), g.machine.Sessions(), g.machine.Zxid())
	if got.Digest() != g.r.Digest() || g.machine.Sessions().Len() != g.r.Sessions.Len() {
		g.t.Errorf("digest %x, %d sessions, want %x, %d", got.Digest(), g.machine.Sessions().Len(), g.r.Digest(),
			g.r.Sessions.Len())
	}
}

// positions are those from which the mirrors have followed.
func (g *rig) positions() string {
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	var all []string
	for _, p := range g.follows {
		all = append(all, fmt.Sprint(p.Zxid))
	}
	return strings.Join(all, " ")
}
