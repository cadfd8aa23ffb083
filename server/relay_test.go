package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// leader plays the leader of the ensemble that is mirrored, and the mirror's driver at our leader: it takes relays in
// their order, and answers when the test says so.
type leader struct {
	k     *kit
	zxid  znode.Zxid
	after uint64
	woken atomic.Int64
	heard []znode.SessionID
}

// Wake implements Carrier.
func (l *leader) Wake() { l.woken.Add(1) }

// Touched implements Carrier.
func (l *leader) Touched(ids []znode.SessionID) { l.heard = append(l.heard, ids...) }

// relaying makes k's state a mirror of an ensemble that is in reach.
func (k *kit) relaying() *leader {
	k.tb.Helper()
	l := &leader{k: k, zxid: 5<<32 | 7}
	k.srv.Source.SetCarrier(l)
	k.mirror(zookeeper(k.tb, l.zxid))
	l.step(state.MirrorLost, nil)
	l.step(state.MirrorOnline, nil)
	return l
}

func (l *leader) step(s state.MirrorStep, data []byte) {
	l.k.tb.Helper()
	l.k.log.from(1, &state.Command{Op: state.OpMirror, Mirror: s, Term: 1, Data: data})
}

// commit commits a transaction.
func (l *leader) commit(session znode.SessionID, cxid, op int32, record []byte) {
	l.k.tb.Helper()
	l.zxid++
	b := jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, int64(session)), cxid), int64(l.zxid))
	b = jute.AppendInt32(jute.AppendInt64(b, 1), op)
	l.step(state.MirrorFollow, state.AppendTxn(nil, append(b, record...)))
}

// sent returns the oldest relay that was not sent yet; 0: there is none.
func (l *leader) sent() (number uint64, c *state.Command) {
	l.k.srv.View(func(v *View) {
		v.Machine().Relays(1, l.after, func(n uint64, x *state.Command) bool {
			number, c = n, x
			return false
		})
	})
	if c != nil {
		l.after = number
	}
	return number, c
}

// answer carries out the oldest relay.
func (l *leader) answer() {
	l.k.tb.Helper()
	number, c := l.sent()
	if c == nil {
		l.k.tb.Fatal("nothing was relayed")
	}
	l.carryOut(number, c)
}

func (l *leader) answerAll() {
	l.k.tb.Helper()
	for number, c := l.sent(); c != nil; number, c = l.sent() {
		l.carryOut(number, c)
	}
}

func (l *leader) carryOut(number uint64, c *state.Command) {
	l.k.tb.Helper()
	cxid := state.RelayCxid(number)
	switch c.Op {
	case state.OpCreateSession:
		l.commit(c.Session, cxid, -10, jute.AppendInt32(nil, int32(c.Timeout.Milliseconds())))
	case state.OpCloseSession:
		l.commit(c.Session, cxid, -11, nil)
	case state.OpCreate:
		b := jute.AppendVectorLen(jute.AppendBuffer(jute.AppendUstring(nil, c.Path), c.Data), 1)
		b = jute.AppendUstring(jute.AppendUstring(jute.AppendInt32(b, 31), "world"), "anyone")
		l.commit(c.Session, cxid, 1, jute.AppendInt32(jute.AppendBool(b, c.Mode.Ephemeral()), -1))
	case state.OpSetData:
		var stat znode.Stat
		code := znode.OK
		l.k.srv.View(func(v *View) { stat, code = v.Tree().Exists(c.Path, nil) })
		if code != znode.OK {
			l.commit(c.Session, cxid, -1, jute.AppendInt32(nil, int32(code)))
			return
		}
		b := jute.AppendBuffer(jute.AppendUstring(nil, c.Path), c.Data)
		l.commit(c.Session, cxid, 5, jute.AppendInt32(b, int32(stat.Version+1)))
	case state.OpSync, state.OpAttach:
		l.step(state.MirrorAnswer, state.AppendAnswer(nil, number, znode.OK))
	default:
		l.k.tb.Fatalf("the leader knows no %v", c.Op)
	}
}

// open opens a session for a client.
func (l *leader) open(c *client) session.Session {
	l.k.tb.Helper()
	var s session.Session
	o := &op{c: c, name: "open", done: func(_ *View, r *state.Result) { s = *r.Session }}
	if err := c.OpenSession(4*time.Second, o); err != nil {
		l.k.tb.Fatal(err)
	}
	l.k.log.drain()
	c.expect("before ZooKeeper has opened its session")
	l.answer()
	c.expect("opening a session", "open: OK")
	return s
}

// A client's requests are answered in their order although ZooKeeper carries out its writes: reads wait for those before
// them, and an event comes before the reply that could reveal its cause.
func TestConn_Relayed_Order(t *testing.T) {
	k := newKit(t, nil)
	l := k.relaying()
	c := k.connect()
	s := l.open(c)
	if s.ID == 0 || !s.Compatible() || l.woken.Load() == 0 {
		t.Errorf("session %+v, woken %d times; want a computed password, and the driver woken", s, l.woken.Load())
	}
	c.get("/b", false)
	c.create("/b", "1")
	c.get("/b", true)
	c.set("/none", "x")
	c.set("/b", "2")
	c.get("/b", false)
	c.write("sync", &state.Command{Op: state.OpSync})
	k.log.drain()
	c.expect("before ZooKeeper answers", "get /b: NONODE")
	l.answer()
	c.expect("the first write", "create /b: OK", "get /b: 1")
	l.commit(0x77, 1, 5, jute.AppendInt32(jute.AppendBuffer(jute.AppendUstring(nil, "/b"), []byte("of another")), 1))
	c.expect("a write of ZooKeeper's client", "event NodeDataChanged /b")
	l.answerAll()
	c.expect("the others", "set /none: NONODE", "set /b: OK", "get /b: 2", "sync: OK")
	c.get("/b", false)
	c.expect("a read with nothing before it", "get /b: 2")
	c.write("close", &state.Command{Op: state.OpCloseSession})
	k.log.drain()
	l.answer()
	c.expect("the end", "close: OK")
	if len(l.k.srv.Source.waiting) != 0 || l.k.srv.Source.count != 0 {
		t.Errorf("%d waiters, %d relays; want none", len(l.k.srv.Source.waiting), l.k.srv.Source.count)
	}
}

// A session that a ZooKeeper server has opened comes to us with its ephemerals; its former connection here ends.
func TestConn_Relayed_Attach(t *testing.T) {
	k := newKit(t, nil)
	l := k.relaying()
	s := &session.Session{ID: 0x77, Timeout: 5 * time.Second}
	wrong, right, again := k.connect(), k.connect(), k.connect()
	wrong.attach(s, session.Password{1})
	right.attach(s, session.CompatiblePassword(s.ID))
	k.log.drain()
	wrong.expect("a wrong password", "attach: SESSIONEXPIRED")
	right.expect("before ZooKeeper answers")
	l.answer()
	right.expect("the answer", "attach: OK")
	right.set("/ephemeral", "mine")
	again.attach(s, session.CompatiblePassword(s.ID))
	k.log.drain()
	l.answerAll()
	right.expect("its write", "set /ephemeral: OK")
	again.expect("another connection", "attach: OK")
	right.expectKicks(ReasonMoved)
	l.commit(0x77, 0, -11, nil)
	again.expectKicks(ReasonExpired)
}

// When the connection to ZooKeeper ends, the clients that wait for it lose theirs, and the others stay.
func TestConn_Relayed_Lost(t *testing.T) {
	k := newKit(t, nil)
	l := k.relaying()
	waits, idle := k.connect(), k.connect()
	l.open(waits)
	l.open(idle)
	waits.create("/b", "")
	waits.get("/b", false)
	k.log.drain()
	waits.create("/c", "") // in the log behind the loss
	l.step(state.MirrorLost, nil)
	waits.expectKicks(ReasonReset)
	k.log.drain()
	if number, c := l.sent(); c != nil {
		t.Errorf("relay %d may be sent: %v %s; want none", number, c.Op, c.Path)
	}
	waits.expect("what was lost")
	idle.expectKicks()
	idle.create("/b", "")
	k.log.drain()
	l.answer()
	idle.expect("the next connection", "create /b: OK")
	if got := k.srv.Source.count; got != 0 {
		t.Errorf("%d relays count, want 0", got)
	}
}

// When the mirror has a fault, the clients that wait lose their connection, and the others too, because what they read is
// no longer ZooKeeper's; none is taken, nor a write, until the mirror is begun again.
func TestConn_Relayed_Fault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		l := k.relaying()
		waits, idle := k.connect(), k.connect()
		l.open(waits)
		l.open(idle)
		waits.create("/b", "")
		k.log.drain()
		idle.create("/c", "") // in the log behind the fault
		k.log.from(2, &state.Command{Op: state.OpMirror, Mirror: state.MirrorFault, Data: state.AppendFault(nil, 1, "why")})
		waits.expectKicks(ReasonReset)
		idle.expectKicks()
		k.log.drain()
		idle.expectKicks(ReasonReset)
		if n, waiting := k.srv.Source.count, len(k.srv.Source.waiting); n != 0 || waiting != 0 || k.srv.Source.TakesClients() {
			t.Errorf("%d relays, %d waiters, clients are taken: %v; want none, and no clients", n, waiting, k.srv.Source.TakesClients())
		}
		if _, err := k.srv.Do(t.Context(), &state.Command{Op: state.OpDelete, Path: "/a"}); !errors.Is(err, ErrSourceLost) {
			t.Errorf("a write over HTTP: %v, want %v", err, ErrSourceLost)
		}
		reads := k.connect()
		clock.Sleep(time.Second)
		synctest.Wait()
		if got := reads.disconnected(); len(got) == 0 || got[0] != ReasonNoLeader {
			t.Errorf("a client that reads is disconnected because of %v, want %v", got, ReasonNoLeader)
		}
		l.step(state.MirrorAgain, nil)
		if k.srv.Source.TakesClients() {
			t.Error("clients are taken before a state is loaded again")
		}
	})
}

// A snapshot that replaces the state has the outcomes that were awaited.
func TestConn_Relayed_StateReplaced(t *testing.T) {
	k := newKit(t, nil)
	l := k.relaying()
	c := k.connect()
	l.open(c)
	c.create("/b", "")
	k.log.drain()
	k.srv.Handler().BeginApply()
	k.srv.Handler().StateReplaced(k.log.machine)
	k.srv.Handler().EndApply()
	if got := c.disconnected(); len(got) == 0 || got[0] != ReasonReset {
		t.Errorf("disconnected because of %v, want %v", got, ReasonReset)
	}
	l.answer()
	c.expect("what was lost")
}

// Clients are kept while ZooKeeper's leader is elected, and go if that takes long; new ones come once it is there.
func TestServer_Relayed_SourceLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		if k.mirror(zookeeper(t, 5<<32|7)); k.srv.Source.TakesClients() {
			t.Error("clients are taken before ZooKeeper's leader was found")
		}
		l := &leader{k: k, zxid: 5<<32 | 7}
		l.step(state.MirrorLost, nil)
		l.step(state.MirrorOnline, nil)
		c := k.connect()
		l.open(c)
		for _, tt := range []struct {
			after time.Duration
			takes bool
			kicks int
		}{{900 * time.Millisecond, true, 0}, {1200 * time.Millisecond, false, 1}} {
			l.step(state.MirrorOnline, nil)
			l.step(state.MirrorLost, nil)
			clock.Sleep(tt.after)
			if got := k.srv.Source.TakesClients(); got != tt.takes {
				t.Errorf("%v after the loss clients are taken: %v, want %v", tt.after, got, tt.takes)
			}
		}
		clock.Sleep(time.Second)
		synctest.Wait()
		c.expectKicks(ReasonNoLeader)
		if _, err := k.srv.Do(t.Context(), &state.Command{Op: state.OpDelete, Path: "/a"}); !errors.Is(err, ErrSourceLost) {
			t.Errorf("a write: %v, want %v", err, ErrSourceLost)
		}
		if err := k.srv.Barrier(t.Context()); !errors.Is(err, ErrSourceLost) {
			t.Errorf("a barrier: %v, want %v", err, ErrSourceLost)
		}
		l.step(state.MirrorOnline, nil)
		if !k.srv.Source.TakesClients() {
			t.Error("clients are not taken when ZooKeeper's leader is back")
		}
		l.step(state.MirrorStop, nil)
		if !k.srv.Source.TakesClients() {
			t.Error("clients are not taken after the mirror")
		}
	})
}

// What has no session is carried out in the server's own, which stays alive; its ephemerals would be no one's.
func TestServer_Relayed_WithoutSession(t *testing.T) {
	k := newKit(t, nil)
	l := k.relaying()
	do := func(c *state.Command) state.Result {
		t.Helper()
		var r state.Result
		done := make(chan struct{})
		var err error
		go func() {
			defer close(done)
			r, err = k.srv.Do(context.WithoutCancel(t.Context()), c)
		}()
		for {
			select {
			case <-done:
				if err != nil {
					t.Fatalf("%v: %v", c.Op, err)
				}
				return r
			default:
				k.log.drain()
				l.answerAll()
			}
		}
	}
	create := state.Command{Op: state.OpCreate, Path: "/b", ACL: znode.OpenACL}
	if r := do(&create); r.Code != znode.OK || r.Path != "/b" || r.Stat.Czxid != l.zxid || create.Session != 0 {
		t.Errorf("a create: %+v of session %v, want /b, and the command as it was", r, create.Session)
	}
	own := znode.SessionID(k.srv.Source.own.Load())
	if r := do(&state.Command{Op: state.OpSetData, Path: "/b", Version: -1}); r.Code != znode.OK || znode.SessionID(k.srv.Source.own.Load()) != own {
		t.Errorf("another write: %+v in session %v, want OK in %v", r, k.srv.Source.own.Load(), own)
	}
	for _, c := range []state.Command{
		{Op: state.OpCreate, Path: "/e", ACL: znode.OpenACL, Mode: znode.Ephemeral},
		{Op: state.OpMulti, Ops: []state.Command{{Op: state.OpCreate, Path: "/e", ACL: znode.OpenACL, Mode: znode.Ephemeral}}},
		{Op: state.OpDeleteAll, Path: "/b"},
	} {
		if r := do(&c); r.Code != znode.ErrNotReadOnly {
			t.Errorf("%v: %v, want %v", c.Op, r.Code, znode.ErrNotReadOnly)
		}
	}
	k.srv.Source.keepOwnSession()
	k.log.Touch(k.srv.conns.takeTouched(false))
	if got := fmt.Sprint(l.heard); !strings.Contains(got, own.String()) {
		t.Errorf("heard %s, want %v", got, own)
	}
	before := l.after
	done := make(chan error, 1)
	go func() { done <- k.srv.Barrier(context.WithoutCancel(t.Context())) }()
	for len(done) == 0 {
		k.log.drain()
		l.answerAll()
	}
	if err := <-done; err != nil || l.after == before {
		t.Errorf("a barrier: %v after relay %d, want ZooKeeper's sync", err, l.after)
	}
}

// A server's clients wait while too much of theirs is outstanding.
func TestConn_Relayed_Bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		l := k.relaying()
		c, other := k.connect(), k.connect()
		l.open(c)
		l.open(other)
		for range maxRelays {
			c.set("/container", "x")
		}
		blocked := make(chan error, 2)
		go func() { blocked <- other.Conn.Write(&state.Command{Op: state.OpSync}, &op{c: other, name: "sync"}) }()
		synctest.Wait()
		if len(blocked) != 0 {
			t.Error("one more than the bound was taken, want it to wait")
		}
		k.log.step(1)
		l.answer()
		synctest.Wait()
		if len(blocked) != 1 {
			t.Error("it still waits after an answer")
		}
		k.log.drain()
		l.answerAll()
		if got := k.srv.Source; got.count != 0 || got.bytes != 0 {
			t.Errorf("%d relays with %d bytes count, want none", got.count, got.bytes)
		}
	})
}
