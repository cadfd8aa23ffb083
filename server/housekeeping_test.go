package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// until advances virtual time, applies proposals, and lets each client send something every second.
func (k *kit) until(d time.Duration, alive ...*client) {
	const pace = 100 * time.Millisecond
	for t := time.Duration(0); t < d; t += pace {
		if t%time.Second == 0 {
			for _, c := range alive {
				c.Touch()
			}
		}
		clock.Sleep(pace)
		synctest.Wait()
		k.log.drain()
	}
}

func TestServer_Expire_SilentSessionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		silent, alive := k.connect(), k.connect()
		dead := silent.open(4 * time.Second)
		kept := alive.open(4 * time.Second)
		silent.ephemeral("/a")
		silent.create("/dir", "")
		silent.ephemeral("/dir/b")
		alive.ephemeral("/kept")
		k.log.drain()
		silent.outbox()
		watchAll := &op{c: alive, name: "watch", read: func(v *View) string {
			return fmt.Sprint(v.Watches().Add(alive.Watcher(), "/", watch.Recursive))
		}}
		if err := alive.Conn.Read(watchAll); err != nil {
			t.Fatal(err)
		}
		alive.outbox()
		alive.zxids = nil

		k.until(4*time.Second-time.Millisecond, alive)
		silent.expectKicks()
		k.until(1500*time.Millisecond, alive) // a tick, and the delay of looking
		silent.expectKicks(ReasonExpired)
		alive.expect("the other's end", "event NodeDeleted /a", "event NodeDeleted /dir/b")
		if z := alive.zxids; len(z) != 2 || z[0] != z[1] {
			t.Errorf("the ephemerals went in transactions %v, want one", z)
		}
		if k.log.machine.Sessions().Get(dead.ID) != nil || k.srv.Connection(dead.ID) != nil {
			t.Error("the expired session is still there")
		}
		k.until(time.Minute, alive)
		alive.expectKicks()
		if k.log.machine.Sessions().Get(kept.ID) == nil {
			t.Error("a session expired whose client is heard every second")
		}
	})
}

// Each of the sessions that expired at a time had a line of its own: 1,234 lines in one moment.
func TestRegression_ManyExpire_OneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := started(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
		const n = 1000
		for range n {
			k.connect().open(4 * time.Second)
		}
		clock.Sleep(startPoll) // then the server logs that it serves
		synctest.Wait()
		out.Reset()
		k.until(10 * time.Second)
		if left := k.log.machine.Sessions().Len(); left != 0 {
			t.Errorf("%d sessions are left", left)
		}
		text := out.String()
		if lines := strings.Count(text, "\n"); lines == 0 || lines > 10 || !strings.Contains(text, fmt.Sprint("count=", n)) {
			t.Errorf("%d lines: %s", lines, text)
		}
		if n := strings.Count(text, "0x"); n == 0 || n > 5*strings.Count(text, "\n") {
			t.Errorf("want some ids: %s", text)
		}
	})
}

func TestServer_Expire_OnlyByTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c := k.connect()
		s := c.open(4 * time.Second)
		k.until(3 * time.Second)
		k.srv.Handler().Lead(0)
		k.until(time.Hour)
		c.expectKicks()
		// A new leader has seen no heartbeats: it grants a full timeout.
		k.log.term = 2
		k.srv.Handler().Lead(2)
		k.until(4*time.Second - time.Millisecond)
		c.expectKicks()
		k.until(1500 * time.Millisecond)
		c.expectKicks(ReasonExpired)
		if k.log.machine.Sessions().Get(s.ID) != nil {
			t.Error("the session is still there")
		}
	})
}

// A leader's decisions count in its own term only.
func TestServer_Expire_OfAFormerTermIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c := k.connect()
		s := c.open(4 * time.Second)
		clock.Sleep(6 * time.Second)
		synctest.Wait()
		if ops := k.log.pending(); !slices.Equal(ops, []state.Op{state.OpExpireSession}) {
			t.Fatalf("proposed %v, want the expiry", ops)
		}
		k.log.term = 2 // another leads before the proposal is in the log
		k.log.drain()
		c.expectKicks()
		if k.log.machine.Sessions().Get(s.ID) == nil {
			t.Error("the session has gone")
		}
	})
}

// Heartbeats that arrive at another server come with Touched.
func TestServer_Touched_KeepsSessionsOfOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		for _, id := range []znode.SessionID{1, 2} {
			k.log.from(2, &state.Command{Op: state.OpCreateSession, Session: id, Timeout: 4 * time.Second})
		}
		for range 30 {
			k.srv.Handler().Touched(1, []znode.SessionID{2, 3}) // 3 there is not
			k.until(time.Second)
		}
		x := k.log.machine.Sessions()
		if x.Get(1) != nil || x.Get(2) == nil {
			t.Errorf("silent session: %v, heard session: %v", x.Get(1), x.Get(2))
		}
	})
}

// An attached session gets its new timeout, from the moment of the attach.
func TestServer_Expire_CountsFromTheAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		old, next := k.connect(), k.connect()
		s := old.open(4 * time.Second)
		old.Close("")
		k.until(3 * time.Second)
		s.Timeout = 10 * time.Second
		next.attach(&s, s.Password)
		k.until(10*time.Second - time.Millisecond)
		next.expectKicks()
		k.until(1500 * time.Millisecond)
		next.expectKicks(ReasonExpired)
	})
}

func TestServer_NoLeader_PatienceByTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil) // grace 10 s
		k.srv.Start(k.log, k.log)
		defer k.srv.Stop()
		fresh, short, long := k.connect(), k.connect(), k.connect()
		short.open(8 * time.Second)
		long.open(60 * time.Second)
		lost := func(d time.Duration) {
			k.log.setContact(d)
			k.until(500 * time.Millisecond)
		}
		lost(time.Second)
		if !k.srv.Serving() {
			t.Error("not serving after a second without a leader")
		}
		fresh.expectKicks()
		lost(1100 * time.Millisecond) // more than half the shortest timeout
		if k.srv.Serving() {
			t.Error("serving new clients without a leader")
		}
		if len(fresh.disconnected()) == 0 || fresh.disconnected()[0] != ReasonNoLeader {
			t.Errorf("a client without a session was disconnected because of %v", fresh.disconnected())
		}
		short.expectKicks()
		fresh.Close("")
		lost(4*time.Second + 1)
		if len(short.disconnected()) == 0 {
			t.Error("a client with a timeout of 8 s is kept 4 s without a leader")
		}
		long.expectKicks()
		short.Close("")
		lost(10 * time.Second)
		long.expectKicks()
		lost(10*time.Second + 1) // the grace, before half of 60 s
		if len(long.disconnected()) == 0 {
			t.Error("a client is kept for longer than the grace")
		}
	})
}

// A report names once each session whose client has sent something since the last report, also if its connection has
// ended, and no other session.
func TestServer_ReportHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		reports := make(chan []znode.SessionID, 100)
		k.log.mu.Lock()
		k.log.touch = func(ids []znode.SessionID) { reports <- ids }
		k.log.mu.Unlock()
		next := func(want ...znode.SessionID) {
			t.Helper()
			if got := <-reports; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
				t.Errorf("the report %x, want %x", got, want)
			}
		}
		talks, silent, leaves := k.connect(), k.connect(), k.connect()
		var ids []znode.SessionID
		for _, c := range []*client{talks, silent, leaves} {
			ids = append(ids, c.open(time.Minute).ID)
		}
		next() // nothing came since
		for range 3 {
			talks.Touch()
		}
		leaves.Touch()
		leaves.Close("")
		next(ids[0], ids[2])
		next()
		silent.Touch()
		next(ids[1])
		k.srv.Touch(ids[2])
		talks.Touch()
		next(ids[0], ids[2])
	})
}

// TestServer_Expire_NobodyWhileAnEntryIsApplied: an entry that takes longer than a session's timeout expires no
// session, although the server reads nothing from clients meanwhile. A session that was silent before stays silent.
func TestServer_Expire_NobodyWhileAnEntryIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		here := k.connect()
		s := here.open(4 * time.Second)
		// Sessions of an HTTP client, and of another server's client.
		for _, id := range []znode.SessionID{1, 2} {
			k.log.from(2, &state.Command{Op: state.OpCreateSession, Session: id, Timeout: 4 * time.Second})
		}
		alive := func(want ...znode.SessionID) {
			t.Helper()
			for _, id := range []znode.SessionID{s.ID, 1, 2} {
				is := k.log.machine.Sessions().Get(id) != nil
				should := false
				for _, x := range want {
					should = should || x == id
				}
				if is != should {
					t.Errorf("session %v: alive %v, want %v", id, is, should)
				}
			}
		}
		k.until(2*time.Second, here)
		k.srv.Handler().Touched(1, []znode.SessionID{1, 2})
		k.srv.Handler().BeginApply()
		clock.Sleep(30 * time.Second)
		synctest.Wait()
		if ops := k.log.pending(); len(ops) > 0 {
			t.Errorf("proposed %v meanwhile", ops)
		}
		k.srv.Handler().EndApply()
		k.until(2 * time.Second)
		alive(s.ID, 1, 2)
		k.srv.Handler().Touched(1, []znode.SessionID{1})
		k.until(3*time.Second, here)
		alive(s.ID, 1) // 2 was silent for longer than its timeout, but for the pause
		k.until(10 * time.Second)
		alive()
	})
}

// TestServer_ReportHeard_AnswersForClientsWhileAnEntryIsApplied: the leader may be
// through with the entry earlier, and must not take this server's clients for dead.
func TestServer_ReportHeard_AnswersForClientsWhileAnEntryIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c := k.connect()
		s := c.open(4 * time.Second)
		k.until(2 * time.Second)
		var reported atomic.Int64
		k.log.mu.Lock()
		k.log.touch = func(ids []znode.SessionID) {
			if slices.Contains(ids, s.ID) {
				reported.Add(1)
			}
		}
		k.log.mu.Unlock()
		k.until(time.Second)
		if n := reported.Load(); n != 0 {
			t.Errorf("a silent client was reported %d times", n)
		}
		k.srv.Handler().BeginApply()
		clock.Sleep(10 * time.Second)
		synctest.Wait()
		k.srv.Handler().EndApply()
		if n := reported.Load(); n < 30 { // four times a tick
			t.Errorf("reported %d times in 10 s", n)
		}
		before := reported.Load()
		k.until(time.Second)
		if n := reported.Load() - before; n != 0 {
			t.Errorf("reported %d times after it", n)
		}
	})
}
