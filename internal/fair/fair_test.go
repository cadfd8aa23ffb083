package fair

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// members are so many members of a new group, which wait.
func members(o *Order, n int) (all []*Member) {
	g := new(Group)
	for range n {
		m := new(Member)
		m.Join(g)
		o.Push(m)
		all = append(all, m)
	}
	return all
}

// Of three clients, one with a hundred connections, all get the same, and so do the connections of each, whatever
// single requests cost.
func TestOrder_AllGetTheSame(t *testing.T) {
	const most = 100 // cost of a request
	random := rand.New(rand.NewPCG(seed.Of(t), 1))
	var o Order
	clients := [][]*Member{members(&o, 1), members(&o, 10), members(&o, 100)}
	for range 100_000 {
		m := o.Pop()
		o.Charge(m, 1+random.Int64N(most))
		o.Push(m)
	}
	differ := func(used []int64) int64 { return slices.Max(used) - slices.Min(used) }
	var sums []int64
	for _, c := range clients {
		var used []int64
		for _, m := range c {
			used = append(used, m.used)
		}
		if d := differ(used); d > 2*most {
			t.Errorf("%d connections of a client differ by %d, want at most two requests, %d", len(c), d, 2*most)
		}
		sums = append(sums, c[0].group.used)
	}
	if d := differ(sums); d > 2*most {
		t.Errorf("the clients got %d, which differ by %d, want at most two requests, %d", sums, d, 2*most)
	}
}

// Who asks for little is next, also if others have waited for longer, and saves nothing for later.
func TestOrder_LittleComesFirst(t *testing.T) {
	var o Order
	heavy := members(&o, 50)
	for range 5 * len(heavy) {
		m := o.Pop()
		o.Charge(m, 64)
		o.Push(m)
	}
	light := members(&o, 1)[0]
	for range 3 {
		if o.Pop() != light {
			t.Fatal("one that has used nothing is not next")
		}
		o.Charge(light, 1)
		o.Push(light)
	}
	for n := 0; ; n++ {
		m := o.Pop()
		o.Charge(m, 64)
		o.Push(m)
		if m != light {
			break
		}
		if n > 1 {
			t.Fatal("one that came late goes on and on, as if it had saved up what it did not use")
		}
	}
}

func TestOrder_HoldAndRemove(t *testing.T) {
	var o Order
	a, b := members(&o, 2), members(&o, 1)
	o.Hold(a[0].Group())
	if m := o.Pop(); m != b[0] {
		t.Fatal("a member of a held group was next, or none")
	}
	if o.Pop() != nil {
		t.Fatal("a member of a held group was next")
	}
	if !o.Remove(a[1]) || o.Remove(a[1]) || o.Remove(b[0]) {
		t.Error("Remove must report who has waited until now")
	}
	late := new(Member)
	late.Join(a[0].Group())
	o.Push(late)
	o.Resume(a[0].Group())
	if o.Pop() != a[0] || o.Pop() != late || o.Pop() != nil {
		t.Error("not all who wait in a group that is held no longer came, each once, in order")
	}
}

// However many take turns, no more than that many have one at a time, and each gets all of its own.
func TestTurns_AsManyAsThereAre(t *testing.T) {
	const turns, each = 3, 500
	all := NewTurns(turns)
	var working, most atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		g := new(Group)
		for range 4 {
			wg.Go(func() {
				m := new(Member)
				m.Join(g)
				for range each {
					all.Take(m)
					n := working.Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					working.Add(-1)
					all.Give(m, 1)
				}
			})
		}
	}
	wg.Wait()
	if n := most.Load(); n < 1 || n > turns {
		t.Errorf("%d had a turn at once, want at most %d", n, turns)
	}
	if n := all.free.Load(); n != turns || all.Waits() {
		t.Errorf("%d turns are left, want %d", n, turns)
	}
}
