package recipes_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// rwQueue starts a call and waits until there are n znodes.
func (k *kit) rwQueue(
	c *client.Client, n int, lock func(context.Context) (*recipes.Grant, error),
) <-chan outcome[*recipes.Grant] {
	k.Helper()
	got := start(func() (*recipes.Grant, error) { return lock(k.ctx) })
	k.waitChildren(c, k.path("m"), n)
	return got
}

// Readers share, writers do not, and a reader does not overtake a writer.
func TestRWMutex_Lock_ReadersShareWritersDoNot(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m := recipes.NewRWMutex(c, k.path("m"))
	r1, err := m.RLock(k.ctx)
	k.no(err)
	r2, err := recipes.NewRWMutex(k.connect(), k.path("m")).RLock(k.ctx)
	k.no(err)
	_, err = m.TryLock(k.ctx)
	k.is(err, recipes.ErrNotAcquired)
	w := k.rwQueue(c, 3, m.Lock)
	_, err = m.TryRLock(k.ctx)
	k.is(err, recipes.ErrNotAcquired)
	r3 := k.rwQueue(c, 4, m.RLock)
	readers, err := m.Readers(k.ctx)
	k.no(err)
	writers, err := m.Writers(k.ctx)
	k.no(err)
	if len(readers) != 3 || len(writers) != 1 {
		t.Errorf("%d readers and %d writers, want 3 and 1", len(readers), len(writers))
	}
	k.no(r2.Release(k.ctx))
	if len(w) != 0 || len(r3) != 0 {
		t.Fatal("granted together with a reader")
	}
	k.no(r1.Release(k.ctx))
	writer := recv(k, "the writer", w)
	k.no(writer.err)
	if len(r3) != 0 {
		t.Fatal("a reader together with the writer")
	}
	k.no(writer.v.Release(k.ctx))
	reader := recv(k, "the reader", r3)
	k.no(reader.err)
	k.no(reader.v.Release(k.ctx))
	k.nothingLeft()
}

// From writer to reader without letting in the next writer. The token stays, so that
// it is lower than that of the next writer.
func TestRWMutex_Downgrade_KeepsThePlace(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m := recipes.NewRWMutex(c, k.path("m"))
	w, err := m.Lock(k.ctx)
	k.no(err)
	next := k.rwQueue(c, 2, m.Lock)
	r, err := m.Downgrade(k.ctx, w)
	k.no(err)
	k.is(w.Err(), recipes.ErrReleased)
	k.no(r.Err())
	if len(next) != 0 {
		t.Fatal("a writer together with the reader")
	}
	_, err = m.Downgrade(k.ctx, r)
	k.is(err, recipes.ErrNotHeld)
	k.no(r.Release(k.ctx))
	got := recv(k, "the next writer", next)
	k.no(got.err)
	if r.FencingToken() != w.FencingToken() || got.v.FencingToken() <= r.FencingToken() {
		t.Errorf("the tokens are %v, %v, %v", w.FencingToken(), r.FencingToken(), got.v.FencingToken())
	}
	k.no(got.v.Release(k.ctx))
	k.nothingLeft()
}

// There are never more holders than permits, all permits are used, and a wait wakes one.
func TestSemaphore_Acquire_WithoutPlaces(t *testing.T) {
	k := newKit(t)
	s := recipes.NewSemaphore(k.connect(), k.path("s"), 0)
	_, err := s.Acquire(k.ctx)
	k.is(err, client.ErrBadArguments)
	_, err = s.TryAcquire(k.ctx)
	k.is(err, client.ErrBadArguments)
	_, err = recipes.NewDoubleBarrier(k.connect(), k.path("b"), 0).Enter(k.ctx)
	k.is(err, client.ErrBadArguments)
}

func TestSemaphore_Acquire_PlacesAndOrder(t *testing.T) {
	k := newKit(t)
	const permits, waiters = 2, 5
	s := recipes.NewSemaphore(k.connect(), k.path("s"), permits)
	a, err := s.Acquire(k.ctx)
	k.no(err)
	b, err := s.TryAcquire(k.ctx)
	k.no(err)
	_, err = s.TryAcquire(k.ctx)
	k.is(err, recipes.ErrNotAcquired)
	holders := []*recipes.Grant{a, b}
	var waiting []<-chan outcome[*recipes.Grant]
	for i := range waiters {
		s := recipes.NewSemaphore(k.connect(), k.path("s"), permits, recipes.WithData(fmt.Append(nil, i)))
		waiting = append(waiting, start(func() (*recipes.Grant, error) { return s.Acquire(k.ctx) }))
		k.waitChildren(k.connect(), k.path("s/locks"), i+1)
	}
	for i, w := range waiting {
		for _, later := range waiting[i:] {
			if len(later) != 0 {
				t.Fatal("more holders than permits")
			}
		}
		k.no(holders[i%2].Release(k.ctx))
		got := recv(k, "a permit", w)
		k.no(got.err)
		if got.v.FencingToken() <= holders[(i+1)%2].FencingToken() {
			t.Errorf("token %v after %v", got.v.FencingToken(), holders[(i+1)%2].FencingToken())
		}
		holders[i%2] = got.v
	}
	list, err := s.Holders(k.ctx)
	k.no(err)
	if len(list) != permits {
		t.Errorf("%d holders, want %d", len(list), permits)
	}
	for _, h := range holders {
		k.no(h.Release(k.ctx))
	}
	k.nothingLeft()
}

// A holder and the waiter that has the mutex lose their sessions.
func TestSemaphore_Acquire_SessionsExpire(t *testing.T) {
	k := newKit(t)
	c, c2 := k.connect(), k.connect()
	g, err := recipes.NewSemaphore(c, k.path("s"), 1).Acquire(k.ctx)
	k.no(err)
	second := start(func() (*recipes.Grant, error) {
		return recipes.NewSemaphore(c2, k.path("s"), 1).Acquire(k.ctx)
	})
	k.waitChildren(c, k.path("s/leases"), 2)
	zktest.Expire(k, c2, shared.Address)
	k.waitChildren(c, k.path("s/leases"), 2) // it waits again
	if len(second) != 0 {
		t.Fatal("more holders than permits")
	}
	zktest.Expire(k, c, shared.Address)
	got := recv(k, "the permit", second)
	k.no(got.err)
	k.is(g.Err(), recipes.ErrLost)
	k.no(got.v.Release(k.ctx))
	k.is(g.Release(k.ctx), recipes.ErrLost)
	k.nothingLeft()
}
