package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/znode"
)

// A server that was stopped for longer than its sessions' timeouts (SIGSTOP, a paused virtual
// machine) found them all silent when it woke, and expired them before it had read a single
// heartbeat from the sockets. An ensemble has elected another leader meanwhile; a lone server
// has no other to correct it.
func TestRegression_ServerStoodStill_ExpiresNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c, dead := k.connect(), k.connect()
		c.open(4 * time.Second)
		dead.open(4 * time.Second)
		k.until(2*time.Second, c)
		asleep := make(chan struct{})
		k.log.mu.Lock()
		k.log.touch = func([]znode.SessionID) { <-asleep }
		k.log.mu.Unlock()
		clock.Sleep(time.Minute) // nothing runs on the server's clock
		k.log.mu.Lock()
		k.log.touch = nil
		k.log.mu.Unlock()
		close(asleep)
		k.until(time.Second)
		c.expectKicks()
		dead.expectKicks()
		k.until(10*time.Second, c) // it sends again
		c.expectKicks()
		dead.expectKicks(ReasonExpired)
	})
}

// While the log did not advance, the reaper proposed the same znodes again with every sweep, ten thousand a minute.
func TestRegression_Reap_OneSweepAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reapKit(t, nil)
		k.make(znode.PersistentTTL, time.Second, znode.CreateTTL, "/a", "/b")
		clock.Sleep(time.Hour)
		synctest.Wait()
		if ops := k.log.pending(); !slices.Equal(ops, []state.Op{state.OpReap, state.OpReap}) {
			t.Errorf("%d commands are pending, want one for each of the two znodes", len(ops))
		}
		k.log.lose(2)
		k.until(11 * time.Second)
		k.expectPaths("when the log moves again", map[string]bool{"/a": false, "/b": false})
	})
}

// A client that returned to the same server while its old connection's request to close the
// session was under way kept a connection without a session: its reads and pings were answered
// forever, and it never noticed.
func TestRegression_SessionClosedByAnotherConnection_EndsThisOne(t *testing.T) {
	k := newKit(t, nil)
	old, next := k.connect(), k.connect()
	s := old.open(4 * time.Second)
	next.attach(&s, s.Password)
	old.write("close", &state.Command{Op: state.OpCloseSession})
	k.log.drain()
	next.expect("attached", "attach: OK")
	old.expectKicks(ReasonMoved)
	next.expectKicks(ReasonClosed)
	if k.srv.Connection(s.ID) != nil {
		t.Error("the session is still bound")
	}
}

// The server forgot with a connection what its client had sent since the last report to the leader, and the session
// expired up to a third of its timeout early. The lab's scenario found it: the client of the killed leader still held
// its lock when the next one got it.
func TestRegression_HeardAndParted_GetsItsFullTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		c := k.connect()
		s := c.open(4 * time.Second)
		k.until(2 * time.Second)
		c.Touch()
		c.Close("")
		k.until(4 * time.Second)
		if k.log.machine.Sessions().Get(s.ID) == nil {
			t.Error("the session expired before its timeout")
		}
		k.until(2 * time.Second)
		if k.log.machine.Sessions().Get(s.ID) != nil {
			t.Error("the session has not expired")
		}
	})
}

// Server.Do gave out the session table's own entry, which the goroutine that
// applies the log went on changing: see TestServer_Do_ReturnsACopyOfTheResult.
