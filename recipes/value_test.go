package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

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
		t.Error("bad data was overwritten")
	}
	stat, err := other.Set(k.ctx, k.path("deep/f"), []byte(`{"Limit":3}`), client.AnyVersion)
	k.must(err)
	until("the good data", func(s settings, _ bool) bool { return s.Limit == 3 })
	if f.Err() != nil || f.Stat().Version != stat.Version {
		t.Errorf("the error is %v, the version %d", f.Err(), f.Stat().Version)
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
