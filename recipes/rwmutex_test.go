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
	k.must(err)
	r2, err := recipes.NewRWMutex(k.connect(), k.path("m")).RLock(k.ctx)
	k.must(err)
	_, err = m.TryLock(k.ctx)
	k.wantErr(err, recipes.ErrNotAcquired)
	w := k.rwQueue(c, 3, m.Lock)
	_, err = m.TryRLock(k.ctx)
	k.wantErr(err, recipes.ErrNotAcquired)
	r3 := k.rwQueue(c, 4, m.RLock)
	readers, err := m.Readers(k.ctx)
	k.must(err)
	writers, err := m.Writers(k.ctx)
	k.must(err)
	if len(readers) != 3 || len(writers) != 1 {
		t.Errorf("%d readers and %d writers, want 3 and 1", len(readers), len(writers))
	}
	k.must(r2.Release(k.ctx))
	if len(w) != 0 || len(r3) != 0 {
		t.Fatal("granted together with a reader, want the writer and the later reader to wait")
	}
	k.must(r1.Release(k.ctx))
	writer := receive(k, "the writer", w)
	k.must(writer.err)
	if len(r3) != 0 {
		t.Fatal("a reader is granted together with the writer, want it to wait")
	}
	k.must(writer.v.Release(k.ctx))
	reader := receive(k, "the reader", r3)
	k.must(reader.err)
	k.must(reader.v.Release(k.ctx))
	k.wantNoLeftovers()
}

// From writer to reader without letting in the next writer. The token stays, so that
// it is lower than that of the next writer.
func TestRWMutex_Downgrade_KeepsThePlace(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m := recipes.NewRWMutex(c, k.path("m"))
	w, err := m.Lock(k.ctx)
	k.must(err)
	next := k.rwQueue(c, 2, m.Lock)
	r, err := m.Downgrade(k.ctx, w)
	k.must(err)
	k.wantErr(w.Err(), recipes.ErrReleased)
	k.must(r.Err())
	if len(next) != 0 {
		t.Fatal("a writer is granted together with the reader, want it to wait")
	}
	_, err = m.Downgrade(k.ctx, r)
	k.wantErr(err, recipes.ErrNotHeld)
	k.must(r.Release(k.ctx))
	got := receive(k, "the next writer", next)
	k.must(got.err)
	if r.FencingToken() != w.FencingToken() || got.v.FencingToken() <= r.FencingToken() {
		t.Errorf("the tokens are %v, %v, %v; want two equal ones and a higher one",
			w.FencingToken(), r.FencingToken(), got.v.FencingToken())
	}
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}

// There are never more holders than permits, all permits are used, and a wait wakes one.
func TestSemaphore_Acquire_WithoutPlaces(t *testing.T) {
	k := newKit(t)
	s := recipes.NewSemaphore(k.connect(), k.path("s"), 0)
	_, err := s.Acquire(k.ctx)
	k.wantErr(err, client.ErrBadArguments)
	_, err = s.TryAcquire(k.ctx)
	k.wantErr(err, client.ErrBadArguments)
	_, err = recipes.NewDoubleBarrier(k.connect(), k.path("b"), 0).Enter(k.ctx)
	k.wantErr(err, client.ErrBadArguments)
}

func TestSemaphore_Acquire_PlacesAndOrder(t *testing.T) {
	k := newKit(t)
	const permits, waiters = 2, 5
	s := recipes.NewSemaphore(k.connect(), k.path("s"), permits)
	a, err := s.Acquire(k.ctx)
	k.must(err)
	b, err := s.TryAcquire(k.ctx)
	k.must(err)
	_, err = s.TryAcquire(k.ctx)
	k.wantErr(err, recipes.ErrNotAcquired)
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
				t.Fatal("there are more holders than permits, want the others to wait")
			}
		}
		k.must(holders[i%2].Release(k.ctx))
		got := receive(k, "a permit", w)
		k.must(got.err)
		if got.v.FencingToken() <= holders[(i+1)%2].FencingToken() {
			t.Errorf("token %v, want more than %v", got.v.FencingToken(), holders[(i+1)%2].FencingToken())
		}
		holders[i%2] = got.v
	}
	list, err := s.Holders(k.ctx)
	k.must(err)
	if len(list) != permits {
		t.Errorf("%d holders, want %d", len(list), permits)
	}
	for _, h := range holders {
		k.must(h.Release(k.ctx))
	}
	k.wantNoLeftovers()
}

// A holder and the waiter that has the mutex lose their sessions.
func TestSemaphore_Acquire_SessionsExpire(t *testing.T) {
	k := newKit(t)
	c, c2 := k.connect(), k.connect()
	g, err := recipes.NewSemaphore(c, k.path("s"), 1).Acquire(k.ctx)
	k.must(err)
	second := start(func() (*recipes.Grant, error) {
		return recipes.NewSemaphore(c2, k.path("s"), 1).Acquire(k.ctx)
	})
	k.waitChildren(c, k.path("s/leases"), 2)
	zktest.Expire(k, c2, shared.Address)
	k.waitChildren(c, k.path("s/leases"), 2) // it waits again
	if len(second) != 0 {
		t.Fatal("there are more holders than permits, want the second to wait")
	}
	zktest.Expire(k, c, shared.Address)
	got := receive(k, "the permit", second)
	k.must(got.err)
	k.wantErr(g.Err(), recipes.ErrLost)
	k.must(got.v.Release(k.ctx))
	k.wantErr(g.Release(k.ctx), recipes.ErrLost)
	k.wantNoLeftovers()
}
