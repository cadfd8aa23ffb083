package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func readOnly(c *Config) { c.ReadOnly = true }

// connectReadOnly is a client with a session of read-only mode.
func (k *kit) connectReadOnly(timeout time.Duration) (*client, session.Session) {
	k.tb.Helper()
	c := &client{k: k, gone: make(chan struct{})}
	c.Conn = k.srv.ReadOnly.NewConn(c, []znode.ID{{Scheme: "ip", ID: "127.0.0.1"}})
	var s session.Session
	o := &op{c: c, name: "open", done: func(_ *View, r *state.Result) { s = *r.Session }}
	if err := c.OpenSession(timeout, o); err != nil {
		k.tb.Fatal(err)
	}
	c.expect("opening a session", "open: OK")
	return c, s
}

// A server serves read-only if it is to, was in touch with a majority for more than two seconds ago, and is whole.
func TestReadOnly_On(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, readOnly)
		k.setCaughtUp(false)
		is := func(want bool, when string) {
			t.Helper()
			if got := k.srv.ReadOnly.On(); got != want {
				t.Errorf("read-only mode is %v %s, want %v", got, when, want)
			}
			synctest.Wait()
		}
		contact := func(d time.Duration, want bool, when string) {
			t.Helper()
			k.log.setContact(d)
			is(want, when)
		}
		contact(membership.NoContact, false, "after a start, before any contact")
		contact(0, false, "at the first contact")
		k.log.step(1) // the sync with which it catches up
		is(false, "when it serves")
		contact(2*time.Second, false, "2 s after the last contact")
		contact(2*time.Second+1, true, "after more than that")
		contact(membership.NoContact, true, "without a leader")
		if got := k.srv.ReadOnly.Mode(); got != "read-only" {
			t.Errorf("mode %q, want read-only", got)
		}

		k.srv.draining.Store(true)
		is(false, "while it is drained")
		k.srv.draining.Store(false)
		set := func(h *consensus.Halt) {
			k.log.mu.Lock()
			k.log.status.Halt = h
			k.log.mu.Unlock()
		}
		set(&consensus.Halt{Reason: "another history"})
		is(false, "when it is halted")
		set(nil)
		is(true, "when it is not")
		k.srv.cfg.ReadOnly = false
		is(false, "without the setting")
		k.srv.cfg.ReadOnly = true

		contact(0, false, "in touch, before it has caught up")
		k.log.step(1)
		is(false, "when it serves again")
		if got := k.srv.ReadOnly.Mode(); got != "standalone" {
			t.Errorf("mode %q, want standalone", got)
		}
	})
}

// A mirror whose source is out of reach is in read-only mode, too, unless what it has is not loaded.
func TestReadOnly_On_Mirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, readOnly)
		k.srv.Serving()
		k.mirror(zookeeper(t, 5<<32|7))
		after := func(d time.Duration, want bool, when string) {
			t.Helper()
			clock.Sleep(d)
			if got := k.srv.ReadOnly.On(); got != want {
				t.Errorf("read-only mode is %v %s, want %v", got, when, want)
			}
		}
		l := &leader{k: k, zxid: 5<<32 | 7}
		after(time.Minute, false, "when the source was not in reach since the state was loaded")
		l.step(state.MirrorLost, nil)
		l.step(state.MirrorOnline, nil)
		after(time.Minute, false, "while the source is in reach")
		l.step(state.MirrorLost, nil)
		after(2*time.Second, false, "2 s after the source was lost")
		after(time.Second, true, "after more than that")
		l.step(state.MirrorOnline, nil)
		after(0, false, "when it is back")
	})
}

// A session of read-only mode needs no log, and nothing of what its client asks for gets into one.
func TestConn_ReadOnly_NothingIsProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, readOnly)
		writer := k.connect()
		own := writer.open(10 * time.Second)
		writer.create("/a", "1")
		k.log.drain()

		c, s := k.connectReadOnly(time.Hour)
		if s.ID == own.ID || s.Timeout != time.Minute || s.Password == (session.Password{}) {
			t.Errorf("session %+v, want one of its own, with the longest timeout and a password", s)
		}
		c.get("/a", true)
		c.set("/a", "2")
		c.write("sync", &state.Command{Op: state.OpSync})
		c.write("multi", &state.Command{Op: state.OpMulti, Ops: []state.Command{{Op: state.OpCheck, Path: "/a"}}})
		c.get("/a", false)
		c.expect("a client of read-only mode", "get /a: 1", "set /a: NOTREADONLY", "sync: NOTREADONLY",
			"multi: NOTREADONLY", "get /a: 1")
		k.log.from(2, &state.Command{Op: state.OpSetData, Path: "/a", Data: []byte("3"), Version: znode.AnyVersion,
			Identities: c.Identities()})
		c.get("/a", false)
		c.expect("a change that is applied", "event NodeDataChanged /a", "get /a: 3")
		c.write("close", &state.Command{Op: state.OpCloseSession})
		c.expect("the end", "close: OK")
		if got := k.log.pending(); len(got) > 0 {
			t.Errorf("proposed: %v, want nothing", got)
		}
		c.Close("")
		writer.Close("")
		if got := k.holds(); got != (holdings{}) || len(k.srv.conns.readOnly) > 0 {
			t.Errorf("left behind: %+v and %d connections", got, len(k.srv.conns.readOnly))
		}
	})
}

// Read-only clients stay while there is no leader, are not reported to one, end when they are silent for their timeout,
// and are sent away when the server serves again.
func TestServer_ReadOnly_Life(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, readOnly)
		var reported []znode.SessionID
		k.log.touch = func(ids []znode.SessionID) { reported = append(reported, ids...) }
		k.until(time.Second)
		k.log.setContact(membership.NoContact)
		k.until(time.Second)
		silent, _ := k.connectReadOnly(4 * time.Second)
		alive, s := k.connectReadOnly(4 * time.Second)
		k.until(4*time.Second-time.Millisecond, alive)
		silent.expectKicks()
		k.until(time.Second, alive)
		if got := silent.disconnected(); !slices.Contains(got, ReasonExpired) {
			t.Errorf("after its timeout: disconnected because of %v, want %v", got, ReasonExpired)
		}
		silent.Close("")
		k.until(time.Minute, alive)
		alive.expectKicks()
		if slices.Contains(reported, s.ID) {
			t.Error("a session of read-only mode was reported to the leader")
		}
		k.log.setContact(0)
		k.until(time.Second, alive)
		if got := alive.disconnected(); !slices.Contains(got, ReasonReadOnlyOver) {
			t.Errorf("when the server serves again: disconnected because of %v, want %v", got, ReasonReadOnlyOver)
		}
	})
}

// A client comes back to its local session, and learns that one of read-only mode has ended. It gets no answer if its
// session may go on elsewhere.
func TestConn_ReadOnly_Attach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, func(c *Config) { c.ReadOnly, c.LocalSessions, c.UpgradeLocalSessions = true, true, true })
		k.until(time.Second)
		c, upgraded := k.connect(), k.connect()
		local, replicated := c.open(10*time.Second), upgraded.open(10*time.Second)
		go upgraded.ephemeral("/mine")
		k.until(time.Second, c, upgraded)
		upgraded.expect("its upgrade", "create /mine: OK")
		k.log.setContact(membership.NoContact)
		k.until(10 * time.Second) // older than its timeout, but no client was served
		c.Close("")

		attach := func(s session.Session, password session.Password) (*client, error) {
			back := &client{k: k, gone: make(chan struct{})}
			back.Conn = k.srv.ReadOnly.NewConn(back, nil)
			return back, back.AttachSession(s.ID, password, s.Timeout, &op{c: back, name: "attach"})
		}
		for what, s := range map[string]session.Session{
			"a replicated session": replicated, "one of another server": {ID: 2<<56 | 1}, "one of another run": {ID: 1<<56 | 1},
		} {
			back, err := attach(s, s.Password)
			if back.expect(what); err == nil {
				t.Errorf("%s: no error, want the end of the connection", what)
			}
			back.Close("")
		}
		if back, err := attach(local, session.Password{}); err == nil {
			t.Errorf("a wrong password: answered %q, want the end of the connection", back.outbox())
		}
		back, err := attach(local, local.Password)
		if back.expect("its local session", "attach: OK"); err != nil {
			t.Error(err)
		}
		back.ephemeral("/no")
		back.expect("an ephemeral", "create /no: NOTREADONLY")
		own, s := k.connectReadOnly(4 * time.Second)
		own.Close("")
		late, err := attach(s, s.Password)
		if late.expect("a session of the mode that has ended", "attach: SESSIONEXPIRED"); err != nil {
			t.Error(err)
		}

		k.log.setContact(0)
		k.until(time.Second)
		back.Close("")
		again := k.connect()
		again.attach(&local, local.Password)
		k.until(time.Second, again)
		go again.ephemeral("/yes") // which waits for its upgrade
		k.until(time.Second, again)
		again.expect("after read-only mode", "attach: OK", "create /yes: OK")
	})
}

// Sessions that were opened in the first moment of read-only mode, before housekeeping had noticed that it is on, counted
// as ones that may go on elsewhere: their clients, when they came back, got no answer until there was a majority.
func TestRegression_ReadOnly_SessionBeforeHousekeeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, readOnly)
		for range 2 { // the mode begins twice
			k.until(time.Second)
			before := k.connect()
			former := before.open(10 * time.Second)
			k.log.setContact(membership.NoContact)
			first, s := k.connectReadOnly(4 * time.Second)
			attach := func(s session.Session) (*client, error) {
				back := &client{k: k, gone: make(chan struct{})}
				back.Conn = k.srv.ReadOnly.NewConn(back, nil)
				return back, back.AttachSession(s.ID, s.Password, s.Timeout, &op{c: back, name: "attach"})
			}
			for _, when := range []string{"at once", "after housekeeping"} {
				back, err := attach(s)
				if back.expect("a session of the mode "+when, "attach: SESSIONEXPIRED"); err != nil {
					t.Errorf("%s: %v", when, err)
				}
				back.Close("")
				other, err := attach(former)
				if other.expect("a session of before " + when); err == nil {
					t.Errorf("a session of before, %s: no error, want the end of the connection", when)
				}
				other.Close("")
				k.until(time.Second)
			}
			first.Close("")
			before.Close("")
			k.log.setContact(0)
		}
	})
}
