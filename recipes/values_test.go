package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
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
		t.Errorf("Add returned %d, want 258", v)
	}
	data, _, err := c.Get(k.ctx, k.path("deep/n"))
	k.must(err)
	if !bytes.Equal(data, []byte{0, 0, 0, 0, 0, 0, 1, 2}) { // DistributedAtomicLong's
		t.Errorf("the data is %x, want 258 in eight bytes", data)
	}
	was, err := n.Set(k.ctx, math.MaxInt64)
	k.must(err)
	if was != 258 {
		t.Errorf("Set returned %d, want 258", was)
	}
	_, err = n.Add(k.ctx, 1)
	k.must(err)
	check(math.MinInt64)
	ok, err := n.CompareAndSwap(k.ctx, 5, 6)
	if ok || err != nil {
		t.Errorf("CompareAndSwap of another value: %t (%v), want false", ok, err)
	}
	ok, err = n.CompareAndSwap(k.ctx, math.MinInt64, -6)
	if !ok || err != nil {
		t.Errorf("CompareAndSwap of the value: %t (%v), want true", ok, err)
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

type settings struct{ Limit int }

func TestConfig_FollowsItsZnode(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	f, err := recipes.NewValue(k.ctx, c, k.path("deep/f"), recipes.JSON[settings]())
	k.must(err)
	until := func(what string, ok func(v settings, exists bool) bool) {
		t.Helper()
		for {
			changed := f.Changed()
			if ok(f.Get()) {
				return
			}
			receive(k, what, changed)
		}
	}
	until("none", func(_ settings, exists bool) bool { return !exists })
	set := func(n int) {
		t.Helper()
		k.must(f.Update(k.ctx, func(s settings) (settings, error) { s.Limit = n; return s, nil }))
		until("the value", func(s settings, exists bool) bool { return exists && s.Limit == n })
	}
	set(1)
	set(2)
	other := k.connect()
	_, err = other.Set(k.ctx, k.path("deep/f"), []byte("{"), client.AnyVersion)
	k.must(err)
	wait.Until(k, "the error shows", func() bool { return f.Err() != nil })
	if v, ok := f.Get(); !ok || v.Limit != 2 {
		t.Errorf("with bad data the value is %v, %v; want the last good one", v, ok)
	}
	if err := f.Update(k.ctx, func(s settings) (settings, error) { return s, nil }); err == nil {
		t.Error("bad data was overwritten, want an error")
	}
	stat, err := other.Set(k.ctx, k.path("deep/f"), []byte(`{"Limit":3}`), client.AnyVersion)
	k.must(err)
	until("the good data", func(s settings, _ bool) bool { return s.Limit == 3 })
	if f.Err() != nil || f.Stat().Version != stat.Version {
		t.Errorf("the error is %v, the version %d; want none, %d", f.Err(), f.Stat().Version, stat.Version)
	}
	tap.Cut()
	zktest.Expire(k, c, shared.Address)
	_, err = other.Set(k.ctx, k.path("deep/f"), []byte(`{"Limit":4}`), client.AnyVersion)
	k.must(err)
	until("the value after a lost session", func(s settings, _ bool) bool { return s.Limit == 4 })
	oops := errors.New("oops")
	k.wantErr(f.Update(k.ctx, func(s settings) (settings, error) { return s, oops }), oops)
	k.waitChildren(other, k.path("deep/f"), 0)
	k.must(other.Delete(k.ctx, k.path("deep/f"), client.AnyVersion))
	until("the deletion", func(_ settings, exists bool) bool { return !exists })
	f.Close()
	k.wantErr(f.Err(), context.Canceled)
	f.Close()
	k.wantNoLeftovers()
}

// Each value comes once, bad data as an error; a slow reader gets the newest alone.
func TestValue_Watch(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	f, err := recipes.NewValue(k.ctx, c, k.path("v"), recipes.JSON[settings]())
	k.must(err)
	other := k.connect()
	set := func(data string) { // and wait until it has been read
		t.Helper()
		stat, err := other.Set(k.ctx, k.path("v"), []byte(data), client.AnyVersion)
		k.must(err)
		good := data[len(data)-1] == '}'
		wait.Until(k, data+" is read", func() bool {
			return good && f.Stat().Mzxid == stat.Mzxid || !good && f.Err() != nil
		})
	}
	ctx, cancel := context.WithCancel(k.ctx)
	steps := []struct {
		want   int // 0: an error
		err    error
		change func()
	}{
		{0, client.ErrNoNode, func() {
			_, _, err := other.Create(k.ctx, k.path("v"), []byte(`{"Limit":1}`), client.Persistent)
			k.must(err)
		}},
		{1, nil, func() { set(`{"Limit":2}`); set(`{"Limit":3}`) }},
		{3, nil, func() { set(`{`) }},
		{0, nil, func() {
			set(`{"Limit":4}`)
			before := f.Changed()
			tap.Cut() // the watch is set again, and the value the same
			zktest.Expire(k, c, shared.Address)
			receive(k, "the value is read again", before)
		}},
		{4, nil, func() { set(`{"Limit":5}`) }},
		{5, nil, func() { k.must(other.Delete(k.ctx, k.path("v"), client.AnyVersion)) }},
		{0, client.ErrNoNode, cancel},
		{0, context.Canceled, nil},
	}
	i := 0
	for v, err := range f.Watch(ctx) {
		if i == len(steps) {
			t.Fatalf("more came than was expected: %v, %v", v, err)
		}
		s := steps[i]
		if v.Limit != s.want || (err == nil) != (s.want > 0) || s.err != nil && !errors.Is(err, s.err) {
			t.Fatalf("item %d is %v, %v; want %d, %v", i, v, err, s.want, s.err)
		}
		i++
		if s.change != nil {
			s.change()
		}
	}
	if i != len(steps) {
		t.Errorf("%d items came, want %d", i, len(steps))
	}
	for range f.Watch(k.ctx) {
		break
	}
	f.Close()
	var last error
	for _, err := range f.Watch(k.ctx) {
		last = err
	}
	k.wantErr(last, f.Err())
	k.wantNoLeftovers()
}
