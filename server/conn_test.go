package server

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

func TestConn_Requests_ExecutedAndAnsweredInOrder(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	c.create("/a", "1")
	c.get("/a", false)
	c.set("/a", "2")
	c.get("/a", false)
	c.get("/b", false)
	c.create("/b", "x")
	c.expect("before anything was applied")
	k.log.step(1)
	c.expect("after the first write", "create /a: OK", "get /a: 1")
	k.log.step(2)
	c.expect("after two more in one entry",
		"set /a: OK", "get /a: 2", "get /b: NONODE", "create /b: OK")
}

// A refused write is a place in the order like any other.
func TestConn_Requests_FailedWriteKeepsItsPlace(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	c.set("/a", "1")
	c.get("/a", false)
	c.create("/a", "2")
	c.create("/a", "3")
	c.get("/a", false)
	k.log.drain()
	c.expect("replies", "set /a: NONODE", "get /a: NONODE", "create /a: OK", "create /a: NODEEXISTS", "get /a: 2")
}

func TestConn_Read_InPlaceOnlyWhenNothingPends(t *testing.T) {
	k := newKit(t, nil)
	c, other := k.connect(), k.connect()
	c.get("/a", false)
	c.expect("nothing is pending", "get /a: NONODE")
	c.create("/a", "1")
	c.get("/a", false)
	c.expect("a write is pending")
	other.get("/a", false)
	other.expect("another connection's write is pending", "get /a: NONODE")
	k.log.step(1)
	c.expect("the write was applied", "create /a: OK", "get /a: 1")
	c.get("/a", false)
	c.expect("nothing is pending again", "get /a: 1")
}

func TestConn_Watch_EventBeforeWhatRevealsTheChange(t *testing.T) {
	t.Run("few", func(t *testing.T) { eventBefore(t, newKit(t, nil)) })
	t.Run("many", func(t *testing.T) { // and the goroutine that notifies them is at others
		k := newKit(t, func(c *Config) { c.WatchFanout = 2 })
		s := make(stuck)
		defer close(s)
		for range 2 {
			if err := k.srv.watches.Add(k.srv.watches.NewWatcher(s), "/stuck", watch.Data); err != nil {
				t.Fatal(err)
			}
		}
		k.srv.watches.Trigger(&znode.Event{Type: znode.EventDataChanged, Path: "/stuck"})
		eventBefore(t, k)
	})
}

// stuck is a watch.Sink that takes nothing until it is closed.
type stuck chan struct{}

func (s stuck) Notify(*watch.Notification) { <-s }

func eventBefore(t *testing.T, k *kit) {
	a, b := k.connect(), k.connect()
	a.create("/x", "1")
	k.log.drain()
	a.get("/x", true)
	b.get("/x", true)
	a.outbox()
	b.outbox()

	// The writer's own event comes before its reply; the reader's before a
	// queued read that shows the new data, and before one in place.
	b.set("/y", "")
	b.get("/x", false)
	a.set("/x", "2")
	a.get("/x", false)
	k.log.step(1)
	b.expect("a read before the change", "set /y: NONODE", "get /x: 1")
	b.create("/z", "") // is applied after the change
	b.get("/x", false)
	k.log.drain()
	a.expect("the writer", "event NodeDataChanged /x", "set /x: OK", "get /x: 2")
	b.expect("the reader", "event NodeDataChanged /x", "create /z: OK", "get /x: 2")
	a.set("/x", "3")
	k.log.drain()
	a.expect("a watch fires once", "set /x: OK")
	b.get("/x", false)
	b.expect("a watch fires once", "get /x: 3")
}

// A watch that a queued read leaves belongs to the state that the read shows.
func TestConn_Watch_OfQueuedReadMissesNothing(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	c.create("/x", "1")
	c.get("/x", true)
	c.set("/x", "2")
	c.set("/x", "3")
	k.log.step(3) // in one entry
	c.expect("outbox", "create /x: OK", "get /x: 1", "event NodeDataChanged /x", "set /x: OK", "set /x: OK")
}

func TestConn_Notify_WithoutReadPermissionSaysNothing(t *testing.T) {
	k := newKit(t, nil)
	owner := znode.ID{Scheme: "digest", ID: "owner:aGFzaA=="}
	c, stranger, later := k.connect(owner), k.connect(), k.connect()
	for _, x := range []*client{c, stranger, later} {
		// exists needs no permission, and sets a watch on a missing znode.
		o := &op{c: x, name: "exists", read: func(v *View) string {
			return fmt.Sprint(v.Watches().Add(x.Watcher(), "/secret", watch.Persistent))
		}}
		if err := x.Conn.Read(o); err != nil {
			t.Fatal(err)
		}
		x.outbox()
	}
	c.write("create", &state.Command{
		Op: state.OpCreate, Path: "/secret", ACL: []znode.ACL{{Perms: znode.PermAll, ID: owner}},
	})
	k.log.drain()
	c.expect("who may read", "event NodeCreated /secret", "create: OK")
	stranger.expect("who may not read")
	later.AddIdentity(owner)
	later.AddIdentity(owner) // changes nothing
	if n := len(later.Identities()); n != 2 {
		t.Errorf("%d identities, want 2: %v", n, later.Identities())
	}
	c.set("/secret", "new")
	k.log.drain()
	later.expect("who has proved to be the owner meanwhile", "event NodeDataChanged /secret")
	stranger.expect("who may not read")
}

func TestConn_Lost_DropsTheQueueAndKicks(t *testing.T) {
	k := newKit(t, nil)
	c, other := k.connect(), k.connect()
	c.create("/lost", "")
	c.get("/lost", false)
	c.create("/known", "")
	c.get("/known", false)
	other.create("/other", "")
	k.log.lose(1)
	c.expectKicks(ReasonReset)
	other.expectKicks()
	// The result of the second write arrives, but an answer to it would skip the first: the connection sends nothing
	// more.
	k.log.drain()
	c.expect("after the loss")
	other.expect("another connection", "create /other: OK")
	o := &op{c: c, name: "late", read: func(*View) string { return "" }}
	if err := c.Conn.Read(o); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Lost: %v, want ErrClosed", err)
	}
	if err := c.Conn.Write(&state.Command{Op: state.OpSync}, o); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Lost: %v, want ErrClosed", err)
	}
	if n := len(k.log.pending()); n != 0 {
		t.Errorf("%d commands were proposed on a broken connection", n)
	}
}

func TestConn_Write_RefusedProposalEndsTheConnection(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	c.create("/a", "1")
	k.log.stop()
	err := c.Conn.Write(&state.Command{Op: state.OpSync}, &op{c: c, name: "sync"})
	if err == nil {
		t.Error("a write that was not proposed succeeded")
	}
	c.expectKicks(ReasonStopping)
	k.log.drain()
	c.expect("what was proposed before", "create /a: OK")
	if err := c.Conn.Read(&op{c: c}); !errors.Is(err, ErrClosed) {
		t.Errorf("Read behind it: %v, want ErrClosed", err)
	}
}

func TestConn_Close_ForgetsWhatWasPending(t *testing.T) {
	k := newKit(t, nil)
	c, other := k.connect(), k.connect()
	s := c.open(4 * time.Second)
	other.create("/x", "")
	k.log.drain()
	c.get("/x", true)
	c.outbox()
	c.create("/mine", "")
	c.get("/mine", false)
	c.Close("")
	c.Close("") // a listener may do it twice
	other.set("/x", "2")
	k.log.drain()
	c.expect("after Close")
	if got, want := k.holds(), (holdings{connections: 1}); got != want {
		t.Errorf("the server holds %+v, want %+v", got, want)
	}
	other.get("/mine", false)
	other.expect("a write that was under way", "create /x: OK", "set /x: OK", "get /mine: ")
	if err := c.Conn.Read(&op{c: c}); !errors.Is(err, ErrClosed) {
		t.Errorf("Read: %v, want ErrClosed", err)
	}
	if k.log.machine.Sessions().Get(s.ID) == nil {
		t.Error("the session ended with its connection")
	}
}

// A session whose connection has ended before the reply belongs to no connection here.
func TestConn_Close_BeforeSessionIsOpen(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	if err := c.OpenSession(4*time.Second, &op{c: c, name: "open"}); err != nil {
		t.Fatal(err)
	}
	c.Close("")
	k.log.drain()
	c.expect("after Close")
	if got, n := k.holds(), k.log.machine.Sessions().Len(); got != (holdings{}) || n != 1 {
		t.Errorf("the server holds %+v, and there are %d sessions; want nothing, and one", got, n)
	}
}

func TestConn_Queue_FullBlocksUntilAnswersOrTheEnd(t *testing.T) {
	ends := map[string]func(k *kit, c *client){
		"answered": func(k *kit, _ *client) { k.log.step(1) },
		"closed":   func(_ *kit, c *client) { c.Close("") },
		"lost":     func(k *kit, _ *client) { k.log.lose(1) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, nil)
				c := k.connect()
				for i := range maxQueue {
					if i%2 == 0 {
						c.create(fmt.Sprint("/n", i), "")
					} else {
						c.get("/none", false)
					}
				}
				if n := c.queued(); n != maxQueue {
					t.Fatalf("%d requests are queued, want %d", n, maxQueue)
				}
				var blocked error
				over := false
				go func() {
					blocked = c.Conn.Read(&op{c: c, name: "one more", read: func(*View) string { return "" }})
					over = true
				}()
				synctest.Wait()
				if over || c.queued() != maxQueue {
					t.Fatalf("a request beyond the bound was taken: %v, %d queued", blocked, c.queued())
				}
				end(k, c)
				synctest.Wait()
				switch {
				case !over:
					t.Error("still blocked")
				case name == "answered" && blocked != nil:
					t.Errorf("blocked: %v, want no error", blocked)
				case name != "answered" && !errors.Is(blocked, ErrClosed):
					t.Errorf("%v, want ErrClosed", blocked)
				}
			})
		})
	}
}

// Most connections are idle: what they hold then is most of what a server with many clients needs.
func TestConn_Idle_HoldsOnlyWhatWaits(t *testing.T) {
	k := newKit(t, nil)
	c := k.connect()
	c.Work()
	c.create("/a", "1")
	c.Idle()
	k.log.drain()
	c.expect("the write of before", "create /a: OK")
	c.Conn.from()
	c.Idle()
	if c.places != nil || !reflect.ValueOf(c.queue).IsZero() || k.srv.Callers.turns.Waits() {
		t.Errorf("an idle connection holds places %v and the queue %+v", c.places, c.queue)
	}
	c.Work()
	c.set("/a", "2")
	k.log.drain()
	c.expect("busy again", "set /a: OK")
}

// Who can make up a name for each connection must not get the share of another client for each.
func TestCallerOf(t *testing.T) {
	ip := func(address string) znode.ID { return znode.ID{Scheme: "ip", ID: address} }
	for want, ids := range map[string][]znode.ID{
		"":                   nil,
		"192.0.2.7":          {ip("192.0.2.7"), {Scheme: "digest", ID: "made-up:hash"}},
		"2001:db8:0:1::/64":  {ip("2001:db8:0:1:2:3:4:5")},
		"x509:CN=billing":    {ip("192.0.2.7"), {Scheme: "x509", ID: "CN=billing"}},
		"sasl:billing@REALM": {{Scheme: "sasl", ID: "billing@REALM"}, ip("192.0.2.7")},
	} {
		if got := callerOf(ids); got != want {
			t.Errorf("%v count for %q, want %q", ids, got, want)
		}
	}
}

// Connections count for the client that they have proved to be, and for none once they are closed.
func TestCallers_Connections(t *testing.T) {
	k := newKit(t, nil)
	a, b := k.connect(), k.connect()
	callers := k.srv.Callers
	uses := func(name string) int {
		callers.mu.Lock()
		defer callers.mu.Unlock()
		if x := callers.all[name]; x != nil {
			return x.uses
		}
		return 0
	}
	if n := uses("127.0.0.1"); n != 2 {
		t.Errorf("%d connections count for their address, want 2", n)
	}
	a.Conn.AddIdentity(znode.ID{Scheme: "digest", ID: "made-up:hash"})
	b.Conn.AddIdentity(znode.ID{Scheme: "sasl", ID: "billing"})
	if n, m := uses("127.0.0.1"), uses("sasl:billing"); n != 1 || m != 1 {
		t.Errorf("%d connections count for their address and %d for a user, want 1 and 1", n, m)
	}
	a.Conn.Work()
	closed := make(chan struct{})
	go func() { // as the writer of a connection that breaks does, while the reader has its turn
		a.Conn.Close("test")
		close(closed)
	}()
	a.Conn.AddIdentity(znode.ID{Scheme: "sasl", ID: "late"})
	a.Conn.Work()
	<-closed
	a.Conn.Rest()
	b.Conn.Work() // a's turn is over
	b.Conn.Close("test")
	if len(callers.all) != 0 || callers.turns.Waits() {
		t.Errorf("after all connections are closed there are %d clients", len(callers.all))
	}
}

// A client may ask for as much as in a second at once, and then for so much in each second; a request that is refused
// does not count.
func TestBudget(t *testing.T) {
	now := time.Now()
	rates := Rates{Requests: 10, Bytes: 1000}
	var b budget
	for i := range 10 {
		if wait := b.take(now, rates, 1, 0); wait > 0 {
			t.Fatalf("request %d of the 10 in a second must wait for %v", i+1, wait)
		}
	}
	for range 2 {
		if wait := b.take(now, rates, 1, 0); wait != 100*time.Millisecond {
			t.Errorf("one more must wait for %v, want 100ms", wait)
		}
	}
	if wait := b.take(now.Add(100*time.Millisecond), rates, 1, 0); wait != 0 {
		t.Errorf("after 100 ms one more must wait for %v", wait)
	}
	later := now.Add(time.Minute)
	if !b.isPaid(later) {
		t.Error("after a minute something is owed")
	}
	if wait := b.take(later, rates, 3000, time.Hour); wait != 2*time.Second {
		t.Errorf("3,000 bytes at 1,000 a second must wait for %v, want 2s", wait)
	}
	if wait := b.take(later, Rates{}, 1<<40, 0); wait != 0 {
		t.Errorf("without a bound one must wait for %v", wait)
	}
}

// A client that sends more than it may is held back, which is counted, on all its connections.
func TestConn_Pace(t *testing.T) {
	k := newKit(t, func(c *Config) { c.Rates.Requests = 1 })
	a, b := k.connect(), k.connect()
	gone := make(chan struct{})
	close(gone)
	if !a.Pace(1, gone) {
		t.Error("the first request waits")
	}
	if b.Pace(1, gone) {
		t.Error("the second in a second does not wait")
	}
	ids := []znode.ID{{Scheme: "ip", ID: "127.0.0.1"}}
	if wait := k.srv.Callers.Pace(ids, 1); wait <= time.Second {
		t.Errorf("over HTTP the third waits for %v, want more than a second", wait)
	}
	ids[0].ID = "192.0.2.7"
	for range 2 {
		if wait := k.srv.Callers.Pace(ids, 1); wait != 0 {
			break
		}
		k.srv.Callers.sweep(time.Now())
	}
	if wait := k.srv.Callers.Pace(ids, 1); wait == 0 {
		t.Error("what a client without a connection has asked for was forgotten")
	}
	held := k.srv.Usage().Top(insight.ByHeld, 1)
	if len(held.Addresses) != 1 || held.Addresses[0].Name != "127.0.0.1" || held.Total < 1_000_000-100_000 {
		t.Errorf("held back were %+v, want 127.0.0.1 for about a second", held)
	}
}
