package recipes_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// The reply to Complete was lost, and then the session, before the repetition was sent:
// Complete returned ErrLost, as if another client would get the item, which was gone for good.
// Found by TestSoak_ConnectionsCutAndServersStopped as a lost item.
func TestRegression_Item_DoneReplyLostWithSession(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	q := recipes.NewQueue(c, k.path("q"))
	k.must(q.Put(k.ctx, []byte("a")))
	item, err := q.Take(k.ctx)
	k.must(err)
	tap.LoseReplyAndBlock(proxy.OpMulti)
	k.wantErr(item.Complete(k.ctx), client.ErrOutcomeUnknown)
	n, err := recipes.NewQueue(k.connect(), k.path("q")).Len(k.ctx)
	k.must(err)
	if n != 0 {
		t.Errorf("the queue has %d items, want none: the transaction has happened", n)
	}
	tap.Unblock()
	k.wantNoLeftovers()
}

// A lead function that returned because its context ended, at once when the session was
// lost, could return before the grant's goroutine had seen the loss. Run then took the
// end for a wanted one, and did not stand again. Found by the tests of Election.Run.
func TestRegression_Grant_ErrKnowsOfTheSessionFirst(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	for range 20 {
		g := k.lock(recipes.NewMutex(c, k.path("m")))
		zktest.Expire(k, c, shared.Address) // returns at the moment of the loss
		k.wantErr(g.Err(), recipes.ErrLost)
		k.wantErr(g.Release(k.ctx), recipes.ErrLost)
	}
	k.wantNoLeftovers()
}

// The deletion of a ticket was sent once, without checking its outcome: if the
// connection broke just then, the ticket stayed for as long as the session lived.
// Found by TestSoak_ServersKilledAndPaused as a znode that was left.
func TestRegression_Counter_TicketDeletionLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	var cut sync.Once
	tap.Before(func(op proxy.Op) {
		if op == proxy.OpDelete {
			cut.Do(tap.Cut) // the request goes nowhere
		}
	})
	_, err := recipes.NewCounter(c, k.path("n")).Add(k.ctx, 1)
	k.must(err)
	k.waitChildren(k.connect(), k.path("n"), 0)
	if tap.Sent(proxy.OpDelete) < 2 {
		t.Errorf("%d deletions were tried, want another after the lost one", tap.Sent(proxy.OpDelete))
	}
	k.wantNoLeftovers()
}

// A sync went in front of the reads that must not be behind. If the connection broke
// after it, the client repeated the read alone, at another server perhaps: a ticket that
// was there was not found, and the transaction repeated, which had happened. Found by
// reading, when TestSoak_ServersKilledAndPaused had found that Barrier.Wait had no sync
// at all and went past a barrier that a server had not heard of.
func TestRegression_Reads_SyncIsRepeatedWithTheRead(t *testing.T) {
	k := newKit(t)
	for name, read := range map[string]func(*client.Client) error{
		"Barrier.Wait": func(c *client.Client) error { return recipes.NewBarrier(c, k.path("none")).Wait(k.ctx) },
		"Counter.Get": func(c *client.Client) error {
			_, err := recipes.NewCounter(c, k.path("none")).Get(k.ctx)
			return err
		},
		"Group.Members": func(c *client.Client) error {
			_, err := recipes.NewGroup(c, k.path("none")).Members(k.ctx)
			return err
		},
		"Mutex.Participants": func(c *client.Client) error {
			_, err := recipes.NewMutex(c, k.path("none")).Participants(k.ctx)
			return err
		},
		"Queue.Len": func(c *client.Client) error {
			_, err := recipes.NewQueue(c, k.path("none")).Len(k.ctx)
			return err
		},
		"Registry.Services": func(c *client.Client) error {
			_, err := recipes.NewRegistry(c, k.path("none")).Services(k.ctx)
			return err
		},
		"a lost answer of Counter.Add": func(c *client.Client) error {
			_, err := recipes.NewCounter(c, k.path("n")).Add(k.ctx, 1)
			return err
		},
	} {
		c, tap := k.connectTapped()
		if strings.HasPrefix(name, "a lost answer") {
			tap.LoseReply(proxy.OpMulti)
		}
		tap.LoseReply(proxy.OpSync)
		k.must(read(c))
		if n := tap.Sent(proxy.OpSync); n != 2 {
			t.Errorf("%s: %d syncs were sent, want the lost one and another", name, n)
		}
	}
	n, err := recipes.NewCounter(k.connect(), k.path("n")).Get(k.ctx)
	k.must(err)
	if n != 1 {
		t.Errorf("the counter is %d after one addition, want 1", n)
	}
	k.wantNoLeftovers()
}

// A barrier that is there is waited for also if the sync and then the read were lost:
// the watch of the first read must not stay.
func TestRegression_Barrier_Wait_LeavesOneWatch(t *testing.T) {
	k := newKit(t)
	b := recipes.NewBarrier(k.connect(), k.path("b"))
	k.must(b.Set(k.ctx))
	c, tap := k.connectTapped()
	tap.LoseReply(proxy.OpSync)
	waiting := start(func() (struct{}, error) {
		return struct{}{}, recipes.NewBarrier(c, k.path("b")).Wait(k.ctx)
	})
	wait.Until(k, "somebody waits", func() bool {
		return tap.Sent(proxy.OpSync) == 2 && shared.Watches(k.path("b")) == 1
	})
	if len(waiting) > 0 {
		t.Error("Wait has returned, want it to wait for the barrier")
	}
	k.must(b.Remove(k.ctx))
	k.must(receive(k, "the end of the wait", waiting).err)
	k.wantNoLeftovers()
}
