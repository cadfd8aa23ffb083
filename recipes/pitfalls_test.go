package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// The pitfalls of docs/recipes.md that no other test covers.

// waitingClients starts n calls, each at a client of its own, and waits after each until
// a queue has one more.
func (k *kit) waitingClients(
	n int, line string, first int, call func(*client.Client) (*recipes.Grant, error),
) (waiters []<-chan outcome[*recipes.Grant], taps []*proxy.Proxy) {
	k.Helper()
	probe := k.connect()
	for i := range n {
		c, tap := k.connectTapped()
		waiters = append(waiters, start(func() (*recipes.Grant, error) { return call(c) }))
		taps = append(taps, tap)
		k.waitChildren(probe, k.path(line), first+i)
	}
	return waiters, taps
}

// wantNoEvents checks that clients have had no event of any watch.
func (k *kit) wantNoEvents(taps []*proxy.Proxy) {
	k.Helper()
	for i, tap := range taps {
		if n := tap.Events(); n != 0 {
			k.Errorf("client %d has %d events, want none: it was not its turn", i, n)
		}
	}
}

// A free permit of a semaphore wakes the holder of its mutex, which wakes the next in the
// queue, and no other.
func TestSemaphore_Release_WakesNoOtherWaiter(t *testing.T) {
	k := newKit(t)
	acquire := func(c *client.Client) (*recipes.Grant, error) {
		return recipes.NewSemaphore(c, k.path("s"), 1).Acquire(k.ctx)
	}
	holder, err := acquire(k.connect())
	k.must(err)
	waiters, taps := k.waitingClients(6, "s/locks", 1, acquire)
	k.must(holder.Release(k.ctx))
	next := receive(k, "the permit", waiters[0])
	k.must(next.err)
	k.waitChildren(k.connect(), k.path("s/leases"), 2) // the second has the mutex
	k.wantNoEvents(taps[2:])
	k.must(next.v.Release(k.ctx))
	for _, w := range waiters[1:] {
		got := receive(k, "the permit", w)
		k.must(got.err)
		k.must(got.v.Release(k.ctx))
	}
	k.wantNoLeftovers()
}

// The last reader that leaves wakes the first writer, and no other.
func TestRWMutex_Release_WakesOneWriter(t *testing.T) {
	k := newKit(t)
	l := recipes.NewRWMutex(k.connect(), k.path("rw"))
	var readers []*recipes.Grant
	for range 3 {
		g, err := l.RLock(k.ctx)
		k.must(err)
		readers = append(readers, g)
	}
	waiters, taps := k.waitingClients(4, "rw", 4, func(c *client.Client) (*recipes.Grant, error) {
		return recipes.NewRWMutex(c, k.path("rw")).Lock(k.ctx)
	})
	for _, g := range readers {
		k.must(g.Release(k.ctx))
	}
	first := receive(k, "the lock", waiters[0])
	k.must(first.err)
	k.wantNoEvents(taps[1:])
	k.must(first.v.Release(k.ctx))
	for _, w := range waiters[1:] {
		got := receive(k, "the lock", w)
		k.must(got.err)
		k.must(got.v.Release(k.ctx))
	}
	k.wantNoLeftovers()
}

// A broken connection is no reason to stop leading: a program that takes minutes to take over
// would otherwise be down for minutes at every hiccup (AURORA-1840).
func TestElection_Campaign_BlipsCostNoLeadership(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	_, leading := k.candidate(c, "leader", 1)
	term := k.term(leading)
	_, next := k.candidate(k.connect(), "next", 2)
	states := c.States()
	for range 10 {
		tap.Cut()
		for s := range states.C() {
			if s.State == client.StateReconnected {
				break
			}
		}
	}
	states.Cancel()
	k.must(term.Err())
	if len(next) != 0 {
		t.Error("another one leads after a connection has broken, want the same leader")
	}
	k.must(term.Resign(k.ctx))
	k.must(k.term(next).Resign(k.ctx))
	k.wantNoLeftovers()
}

// A client whose znode is deleted while it waits does not wait forever, nor does it take the
// turn of a deleted znode: it queues again (CURATOR-644, 645).
func TestMutex_Lock_WaitersZnodeDeleted(t *testing.T) {
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"))
	holder := k.lock(m)
	second := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 2)
	third := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 3)
	list, err := m.Participants(k.ctx)
	k.must(err)
	k.must(k.connect().Delete(k.ctx, list[1].Path, client.AnyVersion))
	wait.Until(k, "it queues again, behind the other", func() bool {
		now, err := m.Participants(k.ctx)
		k.must(err)
		return len(now) == 3 && now[1].Path == list[2].Path && now[2].Path != list[1].Path
	})
	k.must(holder.Release(k.ctx))
	got := receive(k, "the lock of the third", third)
	k.must(got.err)
	if len(second) != 0 {
		t.Error("the second has the lock, too; want the third alone")
	}
	k.must(got.v.Release(k.ctx))
	got = receive(k, "the lock of the second", second)
	k.must(got.err)
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}

// The server deletes a parent that has become empty, just before the znode is made in it.
func TestMutex_Lock_ParentGoesBeforeTheCreation(t *testing.T) {
	k := newKit(t)
	janitor, root := k.connect(), k.path("m")
	k.must(janitor.EnsurePath(k.ctx, root, client.Container))
	c, tap := k.connectTapped()
	var once sync.Once
	tap.Before(func(op proxy.Op) {
		if op == proxy.OpCreate {
			once.Do(func() { k.must(janitor.Delete(k.ctx, root, client.AnyVersion)) })
		}
	})
	g := k.lock(recipes.NewMutex(c, root))
	if n := tap.Sent(proxy.OpContain); n != 1 {
		t.Errorf("the parent was made %d times, want once", n)
	}
	k.must(g.Release(k.ctx))
	k.wantNoLeftovers()
}

// A consumer of changes may wait, with the same client, for something that only later events
// can bring: nothing calls back from the goroutine that reads the connection.
func TestGroup_Watch_ConsumerMayWaitWithTheSameClient(t *testing.T) {
	k := newKit(t)
	c, other := k.connect(), k.connect()
	holder := k.lock(recipes.NewMutex(other, k.path("m")))
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	inside := make(chan struct{})
	done := start(func() (*recipes.Grant, error) {
		for _, err := range recipes.NewGroup(c, k.path("g")).Watch(ctx) {
			if err != nil {
				return nil, err
			}
			close(inside)
			return recipes.NewMutex(c, k.path("m")).Lock(ctx)
		}
		return nil, errors.New("there was no change")
	})
	receive(k, "the first change", inside)
	k.waitChildren(other, k.path("m"), 2)
	k.must(holder.Release(k.ctx))
	got := receive(k, "the lock", done)
	k.must(got.err)
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}
