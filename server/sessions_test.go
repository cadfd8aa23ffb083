package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
)

func TestServer_SessionWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		open := k.srv.NewSession(4 * time.Second)
		if err := k.srv.Propose(open, nobody{}); err != nil {
			t.Fatal(err)
		}
		k.log.drain()
		id := open.Session
		if d, ok := k.srv.CheckSession(id, open.Password); !ok || d != 4*time.Second {
			t.Errorf("CheckSession: %v, %t; want 4s, true", d, ok)
		}
		if _, ok := k.srv.CheckSession(id, session.Password{}); ok {
			t.Error("a wrong password passes")
		}
		ended, cancel := k.srv.SessionEnd(id)
		defer cancel()
		for range 10 {
			k.srv.Touch(id)
			k.until(3 * time.Second)
		}
		select {
		case <-ended:
			t.Fatal("ended although it was heard every three seconds")
		default:
		}
		k.until(6 * time.Second)
		<-ended
		again, cancel := k.srv.SessionEnd(id)
		defer cancel()
		<-again
		if got := k.holds(); got != (holdings{}) {
			t.Errorf("the server holds %+v, want nothing", got)
		}
	})
}

func TestConn_Session_OpenCarriesClampedTimeout(t *testing.T) {
	k := newKit(t, nil)
	for ask, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 5500 * time.Millisecond: 5500 * time.Millisecond,
		time.Hour: time.Minute, 3*time.Second + 1: 3 * time.Second,
	} {
		c := k.connect()
		if id, _ := c.Session(); id != 0 {
			t.Errorf("session %v before one was opened", id)
		}
		s := c.open(ask)
		id, timeout := c.Session()
		if s.Timeout != want || timeout != want || id != s.ID {
			t.Errorf("asked for %v: session %v, connection %v and %v; want %v",
				ask, s, id, timeout, want)
		}
		if byte(uint64(s.ID)>>56) != 1 {
			t.Errorf("session %v does not carry server 1 in its top byte", s.ID)
		}
	}
}

// Only clients of ZooKeeper's protocol get passwords that ZooKeeper accepts, and only where an operator wants it.
func TestConn_Session_CompatiblePasswords(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		k := newKit(t, func(c *Config) { c.CompatiblePasswords = wanted })
		if s := k.connect().open(4 * time.Second); s.Compatible() != wanted {
			t.Errorf("wanted %v: session %v has the password %x", wanted, s.ID, s.Password)
		}
		if x := k.srv.NewSession(4 * time.Second); x.Password == session.CompatiblePassword(x.Session) {
			t.Errorf("wanted %v: a session over HTTP has a password that can be computed", wanted)
		}
	}
}

func TestConn_Session_MoveKicksTheOldConnection(t *testing.T) {
	k := newKit(t, nil)
	old, next, thief := k.connect(), k.connect(), k.connect()
	s := old.open(4 * time.Second)

	thief.attach(&s, session.Password{1})
	k.log.drain()
	thief.expect("wrong password", "attach: SESSIONEXPIRED")
	old.expectKicks()

	next.attach(&s, s.Password)
	k.log.drain()
	next.expect("attached", "attach: OK")
	old.expectKicks(ReasonMoved)
	old.Close("")
	if k.srv.Connection(s.ID) != next.Conn {
		t.Error("closing the old connection unbound the new one")
	}

	// Another server takes the session: nothing that is under way here counts.
	next.ephemeral("/late")
	k.log.from(2, &state.Command{
		Op: state.OpAttach, Session: s.ID, Password: s.Password, Timeout: s.Timeout,
	})
	next.expectKicks(ReasonMoved)
	k.log.drain()
	next.expect("a write that comes too late", "create /late: SESSIONMOVED")
	if k.srv.Connection(s.ID) != nil {
		t.Error("the session is still bound here")
	}
}

// The connection that asks for the end of its session gets the reply; it is the
// listener that ends it then.
func TestConn_Session_CloseIsAnswered(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	s := c.open(4 * time.Second)
	c.ephemeral("/e")
	c.write("close", &state.Command{Op: state.OpCloseSession})
	c.get("/e", false)
	k.log.drain()
	c.expect("replies", "create /e: OK", "close: OK", "get /e: NONODE")
	c.expectKicks()
	if k.srv.Connection(s.ID) != nil {
		t.Error("the session is still bound")
	}
	c.create("/x", "")
	k.log.drain()
	c.expect("a write without a session", "create /x: SESSIONEXPIRED")
}
