package recipes_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/recipes"
)

func TestCounter_Values(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	n := recipes.NewCounter(c, k.path("deep/n"))
	check := func(want int64) {
		t.Helper()
		v, err := n.Get(k.ctx)
		k.must(err)
		if v != want {
			t.Fatalf("the counter is %d, want %d", v, want)
		}
	}
	check(0)
	v, err := n.Add(k.ctx, 258)
	k.must(err)
	if v != 258 {
		t.Errorf("Add returned %d", v)
	}
	data, _, err := c.Get(k.ctx, k.path("deep/n"))
	k.must(err)
	if !bytes.Equal(data, []byte{0, 0, 0, 0, 0, 0, 1, 2}) { // DistributedAtomicLong's
		t.Errorf("the data is %x", data)
	}
	was, err := n.Set(k.ctx, math.MaxInt64)
	k.must(err)
	if was != 258 {
		t.Errorf("Set returned %d", was)
	}
	_, err = n.Add(k.ctx, 1)
	k.must(err)
	check(math.MinInt64)
	ok, err := n.CompareAndSwap(k.ctx, 5, 6)
	if ok || err != nil {
		t.Errorf("CompareAndSwap of another value: %v, %v", ok, err)
	}
	ok, err = n.CompareAndSwap(k.ctx, math.MinInt64, -6)
	if !ok || err != nil {
		t.Errorf("CompareAndSwap: %v, %v", ok, err)
	}
	check(-6)
	k.waitChildren(c, k.path("deep/n"), 0) // no ticket is left
	_, err = c.Set(k.ctx, k.path("deep/n"), []byte("7"), client.AnyVersion)
	k.must(err)
	_, err = n.Add(k.ctx, 1)
	k.wantErr(err, client.ErrMarshalling)
	k.wantNoLeftovers()
}

// The answer to a change is lost, whether it has happened or not: it happens once.
func TestCounter_Add_ReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	n := recipes.NewCounter(c, k.path("n"))
	for i := range 6 {
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
		v, err := n.Add(k.ctx, 1)
		k.must(err)
		if v != int64(i+1) {
			t.Fatalf("the counter is %d, want %d", v, i+1)
		}
		tap.Before(nil)
	}
	if tap.Lost() != 3 {
		t.Errorf("%d replies were lost, want 3", tap.Lost())
	}
	k.waitChildren(c, k.path("n"), 0)
	k.wantNoLeftovers()
}

func TestCounter_Add_Concurrent(t *testing.T) {
	k := newKit(t)
	const clients, adds = 4, 25
	var all []<-chan outcome[struct{}]
	for range clients {
		n := recipes.NewCounter(k.connect(), k.path("n"))
		all = append(all, do(func() error {
			for range adds {
				if _, err := n.Add(k.ctx, 1); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, a := range all {
		k.must(receive(k, "the additions", a).err)
	}
	v, err := recipes.NewCounter(k.connect(), k.path("n")).Get(k.ctx)
	k.must(err)
	if v != clients*adds {
		t.Errorf("the counter is %d, want %d", v, clients*adds)
	}
}
