package server

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// local switches local sessions on, with their upgrade.
func local(c *Config) { c.LocalSessions, c.UpgradeLocalSessions = true, true }

// expectPending compares what was proposed and not applied.
func (k *kit) expectPending(what string, want ...state.Op) {
	k.tb.Helper()
	if got := k.log.pending(); !slices.Equal(got, want) {
		k.tb.Errorf("%s: %v wait in the log, want %v", what, got, want)
	}
}

// expectSessions compares the numbers of replicated and local sessions.
func (k *kit) expectSessions(what string, replicated, local int) {
	k.tb.Helper()
	if r, l := k.log.machine.Sessions().Len(), k.srv.local.Len(); r != replicated || l != local {
		k.tb.Errorf("%s: %d replicated sessions and %d local ones, want %d and %d", what, r, l, replicated, local)
	}
}

// Opening and closing a local session, and what it reads, put nothing into the log; its writes are those of no session,
// and all is answered in order.
func TestLocal_Session_IsNotInTheLog(t *testing.T) {
	k := newKit(t, local)
	c := k.connect()
	s := c.open(4 * time.Second)
	if s.Timeout != 4*time.Second || byte(uint64(s.ID)>>56) != 1 || s.Password == (session.Password{}) {
		t.Errorf("session %+v, want one of server 1 with a password, for 4s", s)
	}
	k.expectPending("open")
	k.expectSessions("open", 0, 1)
	c.create("/a", "x")
	c.get("/a", false)
	c.set("/a", "y")
	c.write("close", &state.Command{Op: state.OpCloseSession})
	c.expect("before the writes are applied")
	k.expectPending("a close", state.OpCreate, state.OpSetData)
	k.expectSessions("a close that waits", 0, 1)
	k.log.drain()
	c.expect("in order", "create /a: OK", "get /a: x", "set /a: OK", "close: OK")
	k.expectSessions("closed", 0, 0)
	if k.srv.Connection(s.ID) != nil {
		t.Error("the closed session is still bound")
	}
	c.Close("")
	k.expectPending("the end")
}

// What comes behind the end of the session has none, as behind that of any other.
func TestLocal_Close_LaterRequests(t *testing.T) {
	k := newKit(t, local)
	c := k.connect()
	c.open(4 * time.Second)
	c.create("/a", "")
	c.write("close", &state.Command{Op: state.OpCloseSession})
	c.create("/b", "")
	c.ephemeral("/e")
	k.log.drain()
	c.expect("behind a close", "create /a: OK", "close: OK", "create /b: SESSIONEXPIRED", "create /e: SESSIONEXPIRED")
	k.expectSessions("closed", 0, 0)
}

// The first ephemeral znode replicates the session, with its id, password and timeout, in a transaction of its own
// before; the second does not. Then it moves like any other.
func TestLocal_Upgrade_Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, local)
		c := k.connect()
		s := c.open(4 * time.Second)
		c.create("/a", "")
		k.log.drain()
		go func() {
			c.ephemeral("/e")
			c.write("multi", &state.Command{Op: state.OpMulti, Ops: []state.Command{
				{Op: state.OpCreate, Path: "/f", Mode: znode.Ephemeral, ACL: znode.OpenACL},
			}})
		}()
		synctest.Wait()
		k.expectPending("an ephemeral", state.OpCreateSession)
		k.expectSessions("under way", 0, 0)
		k.log.step(1)
		synctest.Wait()
		k.expectPending("upgraded", state.OpCreate, state.OpMulti)
		k.log.drain()
		c.expect("answers", "create /a: OK", "create /e: OK", "multi: OK")
		if z := c.zxids; z[2]-z[1] != 2 {
			t.Errorf("zxids %v, want one between /a and /e", z)
		}
		x := k.log.machine.Sessions().Get(s.ID)
		if x == nil || *x != s {
			t.Fatalf("session %+v is %+v after its upgrade", s, x)
		}
		if got := k.log.machine.Tree().Ephemerals(s.ID, ""); len(got) != 2 {
			t.Errorf("ephemerals %v, want /e and /f", got)
		}
		k.until(10*time.Second, c) // the leader's clock has it
		c.expectKicks()
		k.log.from(2, &state.Command{Op: state.OpAttach, Session: s.ID, Password: s.Password, Timeout: s.Timeout})
		c.expectKicks(ReasonMoved)
		k.log.from(2, &state.Command{Op: state.OpCloseSession, Session: s.ID})
		if got := k.log.machine.Tree().Size().Ephemerals; got != 0 {
			t.Errorf("%d ephemerals are left, want none", got)
		}
	})
}

// Without upgrades what needs one is refused in its place, a transaction as a whole, and the session goes on.
func TestLocal_Upgrade_Off(t *testing.T) {
	k := newKit(t, func(c *Config) { c.LocalSessions = true })
	c := k.connect()
	c.open(4 * time.Second)
	c.create("/a", "")
	c.ephemeral("/e")
	var codes []znode.Error
	multi := &op{c: c, name: "multi", done: func(_ *View, r *state.Result) {
		for _, one := range r.Multi {
			codes = append(codes, one.Code)
		}
	}}
	if err := c.Conn.Write(&state.Command{Op: state.OpMulti, Ops: []state.Command{
		{Op: state.OpCreate, Path: "/p", ACL: znode.OpenACL},
		{Op: state.OpCreate, Path: "/e", Mode: znode.EphemeralSequential, ACL: znode.OpenACL},
		{Op: state.OpDelete, Path: "/a"},
	}}, multi); err != nil {
		t.Fatal(err)
	}
	c.create("/b", "")
	k.expectPending("no ephemeral", state.OpCreate, state.OpCreate)
	k.log.drain()
	c.expect("in order", "create /a: OK", "create /e: EPHEMERALONLOCALSESSION", "multi: OK", "create /b: OK")
	if want := []znode.Error{znode.OK, znode.ErrEphemeralOnLocal, znode.ErrRuntimeInconsistency}; !slices.Equal(codes, want) {
		t.Errorf("the transaction's codes are %v, want %v", codes, want)
	}
	c.get("/p", false)
	c.expect("the transaction", "get /p: NONODE")
	k.expectSessions("after refusals", 0, 1)
}

// A client that comes back to this server finds its session, with its former connection's writes done. The log, which any
// other server asks, does not know it.
func TestLocal_Attach(t *testing.T) {
	k := newKit(t, local)
	old, next, thief, elsewhere := k.connect(), k.connect(), k.connect(), newKit(t, local).connect()
	s := old.open(4 * time.Second)
	old.create("/a", "x")

	thief.attach(&s, session.Password{1})
	next.attach(&s, s.Password)
	old.expectKicks(ReasonMoved)
	next.get("/a", false)
	next.expect("before the former connection's write is done")
	if err := old.Conn.Write(&state.Command{Op: state.OpDelete, Path: "/a"}, &op{c: old}); !errors.Is(err, ErrClosed) {
		t.Errorf("a write on the former connection: %v, want %v", err, ErrClosed)
	}
	k.expectPending("attached", state.OpCreate, state.OpAttach, state.OpSync)
	k.log.drain()
	thief.expect("a wrong password", "attach: SESSIONEXPIRED")
	next.expect("attached", "attach: OK", "get /a: x")
	old.Close("")
	if k.srv.Connection(s.ID) != next.Conn {
		t.Error("closing the former connection unbound the new one")
	}
	elsewhere.attach(&s, s.Password)
	elsewhere.k.log.drain()
	elsewhere.expect("another server", "attach: SESSIONEXPIRED")
	k.expectSessions("attached", 0, 1)
}

// A client comes back while its session is being replicated: it is found in the log, and replicated once.
func TestLocal_Attach_DuringTheUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, closes := range []bool{false, true} {
			k := newKit(t, local)
			old, next := k.connect(), k.connect()
			s := old.open(4 * time.Second)
			failed := make(chan error, 1)
			go func() {
				failed <- old.Conn.Write(&state.Command{Op: state.OpCreate, Path: "/e", Mode: znode.Ephemeral,
					ACL: znode.OpenACL}, &op{c: old, name: "create"})
			}()
			synctest.Wait()
			if closes {
				old.Close("")
				if err := <-failed; !errors.Is(err, ErrClosed) {
					t.Errorf("a create whose connection ends: %v, want %v", err, ErrClosed)
				}
			}
			next.attach(&s, s.Password)
			k.expectPending("both", state.OpCreateSession, state.OpAttach)
			k.log.drain()
			next.expect("attached", "attach: OK")
			if !closes {
				if err := <-failed; err != nil {
					t.Error(err)
				}
				k.log.drain() // as for every session, the former connection's last write may come through
				old.expectKicks(ReasonMoved)
			}
			next.ephemeral("/f")
			k.expectPending("an ephemeral of a session that is replicated", state.OpCreate)
			k.log.drain()
			next.expect("the ephemeral", "create /f: OK")
			k.expectSessions("at the end", 1, 0)
		}
	})
}

// A result that is lost leaves the session to the log.
func TestLocal_Upgrade_Lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, local)
		c := k.connect()
		c.open(4 * time.Second)
		failed := make(chan error, 1)
		go func() {
			failed <- c.Conn.Write(&state.Command{Op: state.OpCreate, Path: "/e", Mode: znode.Ephemeral}, &op{c: c})
		}()
		synctest.Wait()
		k.log.lose(1)
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("error %v, want %v", err, ErrClosed)
		}
		c.expectKicks(ReasonReset)
		k.expectSessions("lost", 0, 0)
	})
}

// This server's clock ends a local session, on a follower too. What its client sends keeps it alive; the time in which
// the server cannot read from clients, and one without a majority, do not count.
func TestLocal_Expire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, local)
		k.srv.Handler().Lead(0)
		silent, alive := k.connect(), k.connect()
		s := silent.open(4 * time.Second)
		alive.open(4 * time.Second)
		k.until(4*time.Second-time.Millisecond, alive)
		silent.expectKicks()
		k.until(1500*time.Millisecond, alive)
		silent.expectKicks(ReasonExpired)
		silent.Close("")
		k.expectSessions("one has expired", 0, 1)
		if x := k.srv.Expired().Sessions(0, 10); len(x) != 1 || x[0].Session != s.ID || x[0].Cause != "silent" {
			t.Errorf("expired are %+v, want %v, which was silent", x, s.ID)
		}
		back := k.connect()
		back.attach(&s, s.Password)
		k.log.drain()
		back.expect("an expired session", "attach: SESSIONEXPIRED")

		k.srv.Handler().BeginApply() // nothing can be read from clients meanwhile
		clock.Sleep(30 * time.Second)
		synctest.Wait()
		k.srv.Handler().EndApply()
		k.until(2 * time.Second)
		k.expectSessions("an entry was applied for long", 0, 1)
		k.log.setContact(time.Hour)
		k.until(time.Minute)
		k.expectSessions("without a majority", 0, 1)
		k.log.setContact(0)
		k.until(3 * time.Second)
		k.expectSessions("with a majority again", 0, 1)
		k.until(3 * time.Second)
		k.expectSessions("silent with a majority", 0, 0)
		k.expectPending("all that time")
	})
}

// Local sessions take room that the tree cannot have.
func TestLocal_Memory_IsCounted(t *testing.T) {
	k := newKit(t, local)
	c := k.connect()
	c.open(4 * time.Second)
	c.create("/a", "")
	k.log.drain()
	c.outbox()
	k.log.setLimit(k.log.machine.Memory() + 10*state.SessionMemory)
	for range 9 {
		k.connect().open(4 * time.Second)
	}
	c.create("/b", "")
	k.log.drain()
	c.expect("no room", "create /b: SYSTEMERROR")
}

// A write that is under way when its local session ends takes effect: the log does not know of the end.
func TestLocal_Expire_LateWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, local)
		c := k.connect()
		c.open(4 * time.Second)
		c.create("/late", "")
		k.srv.local.expire(time.Now().Add(time.Minute))
		c.expectKicks(ReasonExpired)
		c.Close("")
		k.log.drain()
		if _, code := k.log.machine.Tree().Exists("/late", nil); code != znode.OK {
			t.Errorf("the write of the session that has expired: %v, want OK", code)
		}
	})
}

// When a mirror is loaded, local sessions end, and there are no new ones while it is.
func TestLocal_Mirror_HasNone(t *testing.T) {
	k := newKit(t, local)
	c := k.connect()
	s := c.open(4 * time.Second)
	k.mirror(zookeeper(t, 100))
	if got := c.disconnected(); !slices.Contains(got, ReasonExpired) {
		t.Errorf("disconnected because of %v, want %v", got, ReasonExpired)
	}
	k.expectSessions("mirrored", k.log.machine.Sessions().Len(), 0)
	next := k.connect()
	if err := next.OpenSession(4*time.Second, &op{c: next, name: "open"}); err != nil {
		t.Fatal(err)
	}
	k.expectPending("a session while a mirror is loaded", state.OpCreateSession)
	if err := c.Conn.Write(&state.Command{Op: state.OpSync}, &op{c: c}); !errors.Is(err, ErrClosed) {
		t.Errorf("a request of session %v: %v, want %v", s.ID, err, ErrClosed)
	}
}
