package recipes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// delay is the lock delay of the tests.
const delay = 700 * time.Millisecond

// wantDelayed waits for a grant that must not come before the delay has passed since a moment.
func (k *kit) wantDelayed(since time.Time, waiting <-chan outcome[*recipes.Grant]) *recipes.Grant {
	k.Helper()
	next := receive(k, "the grant after the delay", waiting)
	k.must(next.err)
	if took := time.Since(since); took < delay {
		k.Errorf("granted after %v, want %v at least", took, delay)
	}
	return next.v
}

// A holder that was lost keeps others out for its delay, whether they use the option or not; the end of its session by
// closing the client is a loss, too. A release does not, and leaves nothing behind.
func TestLockDelay(t *testing.T) {
	for name, lose := range map[string]func(k *kit, c *client.Client){
		"expired": func(k *kit, c *client.Client) { zktest.Expire(k, c, shared.Address) },
		"closed":  func(k *kit, c *client.Client) { k.must(c.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			c := k.connect()
			g := k.lock(recipes.NewMutex(c, k.path("m"), recipes.WithLockDelay(delay)))
			m := recipes.NewMutex(k.connect(), k.path("m"))
			waiting := k.queue(m, 2)
			since := time.Now()
			lose(k, c)
			next := k.wantDelayed(since, waiting)
			if next.FencingToken() <= g.FencingToken() {
				t.Errorf("token %d after %d, want a higher one", next.FencingToken(), g.FencingToken())
			}
			if n := k.children(k.connect(), k.path("m")); n != 1 {
				t.Errorf("%d znodes, want the holder's alone", n)
			}
			k.must(next.Release(k.ctx))
		})
	}
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"), recipes.WithLockDelay(time.Hour))
	for range 3 {
		k.must(k.lock(m).Release(k.ctx))
	}
	if n := k.children(k.connect(), k.path("m")); n != 0 {
		t.Errorf("%d znodes after the release, want none", n)
	}
	k.wantNoLeftovers()
}

// One who only tries is refused during the delay, and has the lock afterwards: the first try begins the delay, which
// does not begin again with each.
func TestLockDelay_TryLock(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	k.lock(recipes.NewMutex(c, k.path("m"), recipes.WithLockDelay(delay)))
	since := time.Now()
	zktest.Expire(k, c, shared.Address)
	other := recipes.NewMutex(k.connect(), k.path("m"), recipes.WithLockDelay(time.Minute))
	refused := 0
	var g *recipes.Grant
	wait.Until(k, "a try succeeds", func() (done bool) {
		var err error
		var wait *recipes.DelayError
		if g, err = other.TryLock(k.ctx); errors.As(err, &wait) && errors.Is(err, recipes.ErrNotAcquired) {
			if wait.Delay != delay || wait.Left <= 0 || wait.Left > delay {
				t.Errorf("%v, want at most %v", err, delay)
			}
			refused++
			return false
		}
		k.must(err)
		return true
	})
	if took := time.Since(since); took < delay || refused == 0 {
		t.Errorf("granted after %v and %d refusals, want %v at least and one at least", took, refused, delay)
	}
	k.must(g.Release(k.ctx))
	if n := k.children(k.connect(), k.path("m")); n != 0 {
		t.Errorf("%d znodes after the release, want none", n)
	}
}

// The delay is neither forgotten nor shortened by the death of one who waits for it, nor by another leader.
func TestLockDelay_OthersDie(t *testing.T) {
	k := newKit(t)
	e := zktest.Start(t, 3)
	connect := func() *client.Client { return zktest.Connect(t, e.ConnectString()) }
	c, unlucky := connect(), connect()
	k.must(connect().EnsurePath(k.ctx, "/e", client.Container))
	election := func(c *client.Client, opts ...recipes.Option) <-chan outcome[*recipes.Grant] {
		before := k.children(c, "/e")
		campaign := start(func() (*recipes.Grant, error) {
			term, err := recipes.NewElection(c, "/e", opts...).Campaign(k.ctx)
			if err != nil {
				return nil, err
			}
			return term.Grant, nil
		})
		wait.Until(k, "the candidate has come", func() bool { return k.children(c, "/e") > before })
		return campaign
	}
	first := receive(k, "the first term", election(c, recipes.WithLockDelay(delay)))
	k.must(first.err)
	wait.Until(k, "the mark is there", func() bool { return k.children(c, "/e") == 2 })
	election(unlucky)
	last := election(connect())
	observer := connect()
	k.must(observer.Sync(k.ctx, "/e"))
	_, _, mark, err := observer.GetW(k.ctx, "/e/lock-delay")
	k.must(err)
	since := time.Now()
	k.must(c.Close())
	receive(k, "the begin of the delay", mark.C())
	k.must(unlucky.Close())
	for _, s := range e.Servers {
		if strings.Contains(s.Ask("srvr"), "Mode: leader") {
			s.Stop()
			break
		}
	}
	k.must(k.wantDelayed(since, last).Release(k.ctx))
}

// A lost answer to the transaction that begins or ends a grant leaves neither a second mark nor a delay.
func TestLockDelay_RepliesLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	m := recipes.NewMutex(c, k.path("m"), recipes.WithLockDelay(time.Hour))
	k.must(c.EnsurePath(k.ctx, k.path("m"), client.Container))
	tap.LoseReply(proxy.OpMulti)
	g := k.lock(m)
	tap.LoseReply(proxy.OpMulti)
	k.must(g.Release(k.ctx))
	if tap.Lost() != 2 {
		t.Fatalf("%d replies were lost, want 2", tap.Lost())
	}
	k.must(k.lock(m).Release(k.ctx))
	if n := k.children(c, k.path("m")); n != 0 {
		t.Errorf("%d znodes after the release, want none", n)
	}
	k.wantNoLeftovers()
}

// What is no mark is reported; deleting it, or a mark, ends the delay.
func TestLockDelay_MarkByHand(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m := recipes.NewMutex(c, k.path("m"))
	mark := k.path("m") + "/lock-delay"
	k.must(c.EnsurePath(k.ctx, k.path("m"), client.Persistent))
	_, _, err := c.Create(k.ctx, mark, []byte("garbage"), client.Persistent)
	k.must(err)
	_, err = m.Lock(k.ctx)
	k.wantErr(err, client.ErrMarshalling)
	_, err = c.Set(k.ctx, mark, []byte("1h held nobody"), client.AnyVersion)
	k.must(err)
	waiting := k.queue(m, 1)
	wait.Until(k, "the delay has begun", func() bool {
		data, _, err := c.Get(k.ctx, mark)
		return err == nil && string(data) == "1h0m0s lost nobody"
	})
	k.must(c.Delete(k.ctx, mark, client.AnyVersion))
	g := receive(k, "the grant", waiting)
	k.must(g.err)
	k.must(g.v.Release(k.ctx))
	for _, wrong := range []time.Duration{0, -1, 2 * time.Hour} {
		_, err = recipes.NewMutex(c, k.path("m"), recipes.WithLockDelay(wrong)).Lock(k.ctx)
		k.wantErr(err, client.ErrBadArguments)
	}
	k.wantNoLeftovers()
}
