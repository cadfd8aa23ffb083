package recipes_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// taker is implemented by the three kinds of queues.
type taker interface {
	Take(context.Context) (*recipes.Item, error)
	TryTake(context.Context) (*recipes.Item, error)
}

// takerWatches is how many watches of a waiter the server reports: the one on its own
// place. It does not report those on the lists.
const takerWatches = 1

// takeAll takes and completes all available items.
func (k *kit) takeAll(q taker) string {
	k.Helper()
	var all []string
	for {
		item, err := q.TryTake(k.ctx)
		if err != nil {
			k.wantErr(err, recipes.ErrEmpty)
			return strings.Join(all, " ")
		}
		all = append(all, string(item.Data))
		k.must(item.Complete(k.ctx))
	}
}

func TestQueue_Take_FirstInFirstOut(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	q := recipes.NewQueue(c, k.path("deep/q"))
	if got := k.takeAll(q); got != "" {
		t.Errorf("an empty queue has %q, want nothing", got)
	}
	for i := range 12 {
		k.must(q.Put(k.ctx, fmt.Append(nil, i)))
	}
	n, err := q.Len(k.ctx)
	k.must(err)
	if n != 12 {
		t.Errorf("the length is %d, want 12", n)
	}
	if got := k.takeAll(recipes.NewQueue(k.connect(), k.path("deep/q"))); got != "0 1 2 3 4 5 6 7 8 9 10 11" {
		t.Errorf("the items are %s, want 0 to 11 in order", got)
	}
	for _, dir := range []string{"deep/q", "deep/q-claims", "deep/q-tickets", "deep/q-waiters"} {
		k.waitChildren(c, k.path(dir), 0)
	}
	k.wantNoLeftovers()
}

// The znodes are Curator's.
func TestQueue_Put_CuratorLayout(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	k.must(recipes.NewQueue(c, k.path("q")).Put(k.ctx, []byte("hello")))
	data, stat, err := c.Get(k.ctx, k.path("q/queue-0000000000"))
	k.must(err)
	if string(data) != "\x00\x01\x00\x01\x01\x00\x00\x00\x05hello\x02" || stat.EphemeralOwner != 0 {
		t.Errorf("the data is %q, the owner %v; want Curator's format, and none", data, stat.EphemeralOwner)
	}
	// Two in one znode (putMulti), and one by hand.
	_, _, err = c.Create(k.ctx, k.path("q/queue-"), []byte("\x00\x01\x00\x01"+
		"\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x02bc\x02"), client.PersistentSequential)
	k.must(err)
	_, _, err = c.Create(k.ctx, k.path("q/queue-"), []byte("by hand"), client.PersistentSequential)
	k.must(err)
	_, _, err = c.Create(k.ctx, k.path("q/foreign"), nil, client.Persistent)
	k.must(err)
	q := recipes.NewQueue(c, k.path("q"), recipes.WithClaimPath(k.path("locks")))
	item, err := q.Take(k.ctx)
	k.must(err)
	exists, _, err := c.Exists(k.ctx, k.path("locks/queue-0000000000"))
	k.must(err)
	if !exists {
		t.Error("there is no claim at locks/queue-0000000000, want it where Curator has it")
	}
	k.must(item.Complete(k.ctx))
	item, err = q.Take(k.ctx)
	k.must(err)
	if string(item.Data) != "a" || len(item.More) != 1 || string(item.More[0]) != "bc" {
		t.Errorf("the items are %q and %q, want a and bc", item.Data, item.More)
	}
	k.must(item.Complete(k.ctx))
	if got := k.takeAll(q); got != "by hand" {
		t.Errorf("the last item is %q, want \"by hand\"", got)
	}
}

// The answer to a put is lost, whether it has happened or not: the item is there
// once.
func TestQueue_Put_ReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	q := recipes.NewQueue(c, k.path("q"))
	for i := range 4 {
		if i%2 == 0 {
			tap.LoseReply(proxy.OpMulti)
		} else {
			cut := false
			tap.Before(func(op proxy.Op) { // lost on the way
				if op == proxy.OpMulti && !cut {
					cut = true
					tap.Cut()
				}
			})
		}
		k.must(q.Put(k.ctx, fmt.Append(nil, i)))
		tap.Before(nil)
	}
	if got := k.takeAll(q); got != "0 1 2 3" {
		t.Errorf("the items are %q, want 0 to 3, each once", got)
	}
}

// The answers to the claim and to its end are lost.
func TestQueue_Take_RepliesLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	q := recipes.NewQueue(c, k.path("q"))
	for i := range 3 {
		k.must(q.Put(k.ctx, fmt.Append(nil, i)))
	}
	k.must(c.EnsurePath(k.ctx, k.path("q-claims"), client.Persistent))
	tap.LoseReply(proxy.OpCreate)
	item, err := q.TryTake(k.ctx)
	k.must(err)
	if string(item.Data) != "0" {
		t.Errorf("the first item is %q, want 0", item.Data)
	}
	tap.LoseReply(proxy.OpMulti)
	k.must(item.Complete(k.ctx))
	item, err = q.TryTake(k.ctx)
	k.must(err)
	tap.LoseReply(proxy.OpDelete)
	k.must(item.Release(k.ctx))
	k.wantErr(item.Complete(k.ctx), recipes.ErrReleased)
	if tap.Lost() != 3 {
		t.Errorf("%d replies were lost, want 3", tap.Lost())
	}
	if got := k.takeAll(q); got != "1 2" {
		t.Errorf("the other items are %q, want 1 and 2", got)
	}
	k.wantNoLeftovers()
}

// A consumer dies before it is done. Another one gets the item, at its old place,
// with a higher token; the first one's Complete fails.
func TestQueue_Take_ConsumerDies(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	q := recipes.NewQueue(c, k.path("q"))
	k.must(q.Put(k.ctx, []byte("a")))
	item, err := q.Take(k.ctx)
	k.must(err)
	work, cancel := item.Context(k.ctx)
	defer cancel()
	other := recipes.NewQueue(k.connect(), k.path("q"))
	waiting := start(func() (*recipes.Item, error) { return other.Take(k.ctx) })
	wait.Until(k, "the other waits", func() bool { return shared.Watches(k.root) == takerWatches })
	zktest.Expire(k, c, shared.Address)
	receive(k, "the end of the work", work.Done())
	receive(k, "the end of the claim", item.Done())
	k.wantErr(item.Err(), recipes.ErrLost)
	again := receive(k, "the item", waiting)
	k.must(again.err)
	if string(again.v.Data) != "a" || again.v.FencingToken() <= item.FencingToken() || again.v.Path() != item.Path() {
		t.Errorf("got %q with token %v, want a with more than %v",
			again.v.Data, again.v.FencingToken(), item.FencingToken())
	}
	k.wantErr(item.Complete(k.ctx), recipes.ErrLost)
	k.must(item.Release(k.ctx))
	k.wantErr(item.Err(), recipes.ErrReleased)
	k.must(again.v.Complete(k.ctx))
	k.wantNoLeftovers()
}

// Of those who wait only one watches: a put wakes one, and they get the items in the
// order in which they came.
func TestQueue_Take_WakesOneConsumer(t *testing.T) {
	k := newKit(t)
	const consumers = 8
	var taps []*proxy.Proxy
	var clients []*client.Client
	var waiting []<-chan outcome[*recipes.Item]
	producer := recipes.NewQueue(k.connect(), k.path("q"))
	for i := range consumers {
		c, tap := k.connectTapped()
		q := recipes.NewQueue(c, k.path("q"))
		clients, taps = append(clients, c), append(taps, tap)
		waiting = append(waiting, start(func() (*recipes.Item, error) { return q.Take(k.ctx) }))
		// The first watches its own place (and both lists), the others theirs and
		// the one in front.
		wait.Until(k, "it waits", func() bool { return shared.Watches(k.root) == takerWatches+2*i })
	}
	for i, w := range waiting {
		var before []int
		for _, tap := range taps {
			before = append(before, tap.Events())
		}
		k.must(producer.Put(k.ctx, fmt.Append(nil, i)))
		got := receive(k, "the item", w)
		k.must(got.err)
		if string(got.v.Data) != fmt.Sprint(i) {
			t.Errorf("consumer %d got %q, want %d", i, got.v.Data, i)
		}
		for j, tap := range taps[i+1:] {
			k.must(clients[i+1+j].Sync(k.ctx, "/"))
			want := 0
			if j == 0 {
				want = 1 // the queue of the waiters
			}
			if n := tap.Events() - before[i+1+j]; n > want {
				t.Errorf("put %d: consumer %d had %d events, want at most %d", i, i+1+j, n, want)
			}
		}
		if i+1 < consumers {
			wait.Until(k, "the next watches", func() bool {
				return shared.Watches(k.root) == takerWatches+2*(consumers-2-i)
			})
		}
		k.must(got.v.Complete(k.ctx))
	}
	k.wantNoLeftovers()
}

// A wait that is given up leaves nothing, and loses nothing.
func TestQueue_Take_ContextEnds(t *testing.T) {
	k := newKit(t)
	q := recipes.NewQueue(k.connect(), k.path("q"))
	ctx, cancel := context.WithCancel(k.ctx)
	waiting := start(func() (*recipes.Item, error) { return q.Take(ctx) })
	wait.Until(k, "it waits", func() bool { return shared.Watches(k.root) == takerWatches })
	cancel()
	k.wantErr(receive(k, "the end", waiting).err, context.Canceled)
	k.wantNoLeftovers()
	k.must(q.Put(k.ctx, []byte("a")))
	if got := k.takeAll(q); got != "a" {
		t.Errorf("the items are %q, want a", got)
	}
}

func TestPriorityQueue_Take_LowestFirst(t *testing.T) {
	k := newKit(t)
	q := recipes.NewPriorityQueue(k.connect(), k.path("q"))
	for i, p := range []int32{5, -1, math.MaxInt32, 5, math.MinInt32, 0, -1} {
		k.must(q.Put(k.ctx, p, fmt.Appendf(nil, "%d.%d", p, i)))
	}
	exists, _, err := k.connect().Exists(k.ctx, k.path("q/queue-1000000050000000000"))
	k.must(err)
	if !exists {
		t.Error("there is no queue-1000000050000000000, want Curator's name")
	}
	item, err := q.Take(k.ctx)
	k.must(err)
	if item.Priority() != math.MinInt32 {
		t.Errorf("the first priority is %d, want %d", item.Priority(), math.MinInt32)
	}
	k.must(item.Complete(k.ctx))
	n, err := q.Len(k.ctx)
	k.must(err)
	if n != 6 {
		t.Errorf("the length is %d, want 6", n)
	}
	if got := k.takeAll(q); got != "-1.1 -1.6 0.5 5.0 5.3 2147483647.2" {
		t.Errorf("the items are %s, want them by priority", got)
	}
	k.wantNoLeftovers()
}

func TestDelayQueue_Take_WhenDue(t *testing.T) {
	k := newKit(t)
	q := recipes.NewDelayQueue(k.connect(), k.path("q"))
	k.must(q.Put(k.ctx, time.Now().Add(time.Hour), []byte("much later")))
	k.must(q.Put(k.ctx, time.UnixMilli(0x12345), []byte("at once")))
	k.wantErr(q.Put(k.ctx, time.UnixMilli(0), nil), client.ErrBadArguments)
	exists, _, err := k.connect().Exists(k.ctx, k.path("q/queue-|00012345|0000000001"))
	k.must(err)
	if !exists {
		t.Error("there is no queue-|00012345|0000000001, want Curator's name")
	}
	if got := k.takeAll(q); got != "at once" {
		t.Errorf("the items that are due are %q, want \"at once\"", got)
	}
	due := time.Now().Add(400 * time.Millisecond)
	k.must(q.Put(k.ctx, due, []byte("later")))
	item, err := q.Take(k.ctx)
	k.must(err)
	if string(item.Data) != "later" || item.Due().Before(due) || time.Now().Before(item.Due()) {
		t.Errorf("got %q, due at %v, at %v; want later, when it is due", item.Data, item.Due(), time.Now())
	}
	k.must(item.Complete(k.ctx))
	// While one waits for the late item an earlier one comes.
	waiting := start(func() (*recipes.Item, error) { return q.Take(k.ctx) })
	wait.Until(k, "it waits", func() bool { return shared.Watches(k.root) == takerWatches })
	k.must(q.Put(k.ctx, time.Now(), []byte("earlier")))
	got := receive(k, "the item", waiting)
	k.must(got.err)
	if string(got.v.Data) != "earlier" {
		t.Errorf("got %q, want earlier", got.v.Data)
	}
	k.must(got.v.Complete(k.ctx))
	n, err := q.Len(k.ctx)
	k.must(err)
	if n != 1 {
		t.Errorf("the length is %d, want 1", n)
	}
	k.wantNoLeftovers()
}
