package server

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// until lets virtual time pass, applying what is proposed, and has each client
// heard every second.
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
		if k.log.machine.Sessions().Get(dead.ID) != nil || k.srv.conns.of(dead.ID) != nil {
			t.Error("the expired session is still there")
		}
		k.until(time.Minute, alive)
		alive.expectKicks()
		if k.log.machine.Sessions().Get(kept.ID) == nil {
			t.Error("a session expired whose client is heard every second")
		}
	})
}

func TestServer_Expire_OnlyByTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c := k.connect()
		s := c.open(4 * time.Second)
		k.until(3 * time.Second)
		k.srv.handler.Lead(0)
		k.until(time.Hour)
		c.expectKicks()
		// A new leader knows of no heartbeats: it grants a full timeout.
		k.log.term = 2
		k.srv.handler.Lead(2)
		k.until(4*time.Second - time.Millisecond)
		c.expectKicks()
		k.until(1500 * time.Millisecond)
		c.expectKicks(ReasonExpired)
		if k.log.machine.Sessions().Get(s.ID) != nil {
			t.Error("the session is still there")
		}
	})
}

// What a leader decided counts in its term only.
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
			k.srv.handler.Touched([]znode.SessionID{2, 3}) // 3 there is not
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
		old.Close()
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
		k.srv.Start(k.log)
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
		if len(fresh.kicked()) == 0 || fresh.kicked()[0] != ReasonNoLeader {
			t.Errorf("a client without a session was kicked because of %v", fresh.kicked())
		}
		short.expectKicks()
		fresh.Close()
		lost(4*time.Second + 1)
		if len(short.kicked()) == 0 {
			t.Error("a client with a timeout of 8 s is kept 4 s without a leader")
		}
		long.expectKicks()
		short.Close()
		lost(10 * time.Second)
		long.expectKicks()
		lost(10*time.Second + 1) // the grace, before half of 60 s
		if len(long.kicked()) == 0 {
			t.Error("a client is kept for longer than the grace")
		}
	})
}

// reapKit has a reaper that works every 10 s.
func reapKit(t *testing.T, change func(*ReapConfig)) *kit {
	return started(t, func(c *Config) {
		c.Reap = ReapConfig{Interval: 10 * time.Second}
		if change != nil {
			change(&c.Reap)
		}
	})
}

func (k *kit) make(mode znode.Mode, ttl time.Duration, kind znode.CreateKind, paths ...string) {
	for _, p := range paths {
		k.log.from(1, &state.Command{
			Op: state.OpCreate, Path: p, Mode: mode, TTL: ttl.Milliseconds(), Kind: kind,
			ACL: znode.OpenACL, Flags: state.FlagExtendedTypes,
		})
	}
}

func (k *kit) exists(path string) (yes bool) {
	k.srv.View(func(v *View) {
		_, code := v.Tree().Exists(path, nil)
		yes = code == znode.OK
	})
	return yes
}

func (k *kit) expectPaths(when string, want map[string]bool) {
	k.tb.Helper()
	for path, there := range want {
		if k.exists(path) != there {
			k.tb.Errorf("%s: %s exists: %v, want %v", when, path, !there, there)
		}
	}
}

func TestServer_Reap_ContainersAfterUseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, nil)
		k.make(znode.Container, 0, znode.CreateContainer, "/never", "/emptied", "/used")
		k.make(znode.Persistent, 0, znode.CreatePlain, "/emptied/x", "/used/x", "/plain", "/plain/x")
		for _, p := range []string{"/emptied/x", "/plain/x"} {
			k.log.from(1, &state.Command{Op: state.OpDelete, Path: p, Version: -1})
		}
		k.until(9 * time.Second)
		k.expectPaths("before the first sweep", map[string]bool{"/emptied": true})
		k.until(2 * time.Second)
		after := map[string]bool{"/never": true, "/emptied": false, "/used": true, "/plain": true}
		k.expectPaths("after the first sweep", after)
		k.until(time.Hour)
		k.expectPaths("an hour later", after)
	})
}

func TestServer_Reap_NeverUsedContainersWhenSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, func(c *ReapConfig) { c.NeverUsed = time.Minute })
		k.make(znode.Container, 0, znode.CreateContainer, "/never")
		k.until(59 * time.Second)
		k.expectPaths("before its time", map[string]bool{"/never": true})
		k.until(12 * time.Second)
		k.expectPaths("after its time", map[string]bool{"/never": false})
	})
}

func TestServer_Reap_TTLAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, nil)
		k.make(znode.PersistentTTL, 30*time.Second, znode.CreateTTL, "/ttl", "/changed", "/parent")
		k.make(znode.Persistent, 0, znode.CreatePlain, "/parent/x")
		k.until(25 * time.Second)
		k.log.from(1, &state.Command{Op: state.OpSetData, Path: "/changed", Version: -1})
		k.expectPaths("before its time", map[string]bool{"/ttl": true})
		k.until(16 * time.Second)
		k.expectPaths("after its time", map[string]bool{"/ttl": false, "/changed": true, "/parent": true})
		k.until(30 * time.Second)
		k.expectPaths("after the time of the changed one", map[string]bool{"/changed": false, "/parent": true})
	})
}

func TestServer_Reap_BoundedAndByTheLeaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, func(c *ReapConfig) { c.MaxPerMinute = 30 }) // 5 a sweep
		k.srv.handler.Lead(0)
		for i := range 12 {
			k.make(znode.PersistentTTL, time.Second, znode.CreateTTL, fmt.Sprint("/ttl", i))
		}
		left := func() (n int) {
			for i := range 12 {
				if k.exists(fmt.Sprint("/ttl", i)) {
					n++
				}
			}
			return n
		}
		k.until(35 * time.Second)
		if n := left(); n != 12 {
			t.Errorf("a server that does not lead has reaped %d", 12-n)
		}
		k.srv.handler.Lead(1)
		for _, want := range []int{7, 2, 0} {
			k.until(10 * time.Second)
			if n := left(); n != want {
				t.Errorf("%d are left, want %d", n, want)
			}
		}
	})
}

// A report names each session once whose client was heard since the last one, also if its connection has gone,
// and no other.
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
		leaves.Close()
		next(ids[0], ids[2])
		next()
		silent.Touch()
		next(ids[1])
		k.srv.Touch(ids[2])
		talks.Touch()
		next(ids[0], ids[2])
	})
}
