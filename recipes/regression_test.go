package recipes_test

import (
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// The answer to the end of an item was lost, and the session before the repetition was
// sent: Done said ErrLost, that somebody else gets the item, which was gone for good.
// Found by TestSoak_ConnectionsCutAndServersStopped as a lost item.
func TestRegression_Item_DoneReplyLostWithSession(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	q := recipes.NewQueue(c, k.path("q"))
	k.no(q.Put(k.ctx, []byte("a")))
	item, err := q.Take(k.ctx)
	k.no(err)
	tap.LoseReplyAndBlock(zktest.OpMulti)
	k.is(item.Done(k.ctx), client.ErrOutcomeUnknown)
	n, err := recipes.NewQueue(k.connect(), k.path("q")).Len(k.ctx)
	k.no(err)
	if n != 0 {
		t.Errorf("the queue has %d items, want none: the transaction has happened", n)
	}
	tap.Unblock()
	k.nothingLeft()
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
		k.is(g.Err(), recipes.ErrLost)
		k.is(g.Release(k.ctx), recipes.ErrLost)
	}
	k.nothingLeft()
}

// The deletion of a ticket was sent once, and nobody looked what came of it: if the
// connection broke just then, the ticket stayed for as long as the session lived.
// Found by TestSoak_ServersKilledAndPaused as a znode that was left.
func TestRegression_Counter_TicketDeletionLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	var cut sync.Once
	tap.Before(func(op zktest.Op) {
		if op == zktest.OpDelete {
			cut.Do(tap.Cut) // the request goes nowhere
		}
	})
	_, err := recipes.NewCounter(c, k.path("n")).Add(k.ctx, 1)
	k.no(err)
	k.waitChildren(k.connect(), k.path("n"), 0)
	if tap.Sent(zktest.OpDelete) < 2 {
		t.Errorf("%d deletions were tried: the first was not lost", tap.Sent(zktest.OpDelete))
	}
	k.nothingLeft()
}
