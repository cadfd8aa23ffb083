package recipes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// names are those of members, with their data.
func names(list []recipes.Member) string {
	var all []string
	for _, m := range list {
		all = append(all, m.Name+"="+string(m.Data))
	}
	return strings.Join(all, " ")
}

type groupStep struct {
	change recipes.GroupChange
	err    error
}

func (k *kit) watchGroup(ctx context.Context, g *recipes.Group) <-chan groupStep {
	steps := make(chan groupStep)
	go func() {
		defer close(steps)
		for c, err := range g.Watch(ctx) {
			steps <- groupStep{c, err}
		}
	}()
	return steps
}

func TestGroup_Watch_JoinChangeLeave(t *testing.T) {
	k := newKit(t)
	watcher, tap := k.connectTapped()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	steps := k.watchGroup(ctx, recipes.NewGroup(watcher, k.path("g")))
	expect := func(all, joined, left, changed string) {
		t.Helper()
		s := receive(k, "a change", steps)
		k.must(s.err)
		got := [...]string{names(s.change.Members), names(s.change.Joined), names(s.change.Left), names(s.change.Changed)}
		if want := [...]string{all, joined, left, changed}; got != want {
			t.Fatalf("the change is %q, want %q", got, want)
		}
	}
	expect("", "", "", "")
	b, err := recipes.NewGroup(k.connect(), k.path("g")).Join(k.ctx, "b", []byte("1"))
	k.must(err)
	expect("b=1", "b=1", "", "")
	dying := k.connect()
	_, err = recipes.NewGroup(dying, k.path("g")).Join(k.ctx, "a", nil)
	k.must(err)
	expect("a= b=1", "a=", "", "")
	k.must(b.Set(k.ctx, []byte("2")))
	expect("a= b=2", "", "", "b=2")
	tap.Cut()
	zktest.Expire(k, watcher, shared.Address) // the watcher's session is of no interest
	k.must(dying.Close())
	expect("b=2", "", "a=", "")
	k.must(b.Set(k.ctx, recipes.Unhealthy([]byte("3"), "full")))
	marked := receive(k, "a change", steps).change.Changed
	if len(marked) != 1 || marked[0].Unhealthy() != "full" {
		t.Fatalf("marked as not healthy are %+v, want b, because of full", marked)
	}
	k.must(b.Leave(k.ctx))
	expect("", "", `b={"data":"3","healthy":false,"reason":"full"}`, "")
	cancel()
	k.wantErr(receive(k, "the end", steps).err, context.Canceled)
	k.wantNoLeftovers()
}

// A member whose session expires, or whose znode is deleted, joins again.
func TestGroup_Join_BadNames(t *testing.T) {
	k := newKit(t)
	g := recipes.NewGroup(k.connect(), k.path("g"))
	for _, name := range []string{"", "a/b", "/a", "..", "a\x00"} {
		_, err := g.Join(k.ctx, name, nil)
		k.wantErr(err, client.ErrBadArguments)
	}
	m, err := g.Join(k.ctx, "a", nil)
	k.must(err)
	k.must(m.Leave(k.ctx))
	k.wantErr(m.Set(k.ctx, []byte("late")), recipes.ErrReleased)
}

func TestGroup_Join_Again(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	g := recipes.NewGroup(c, k.path("g"))
	m, err := g.Join(k.ctx, "a", []byte("x"))
	k.must(err)
	for _, harm := range []func(){
		func() { zktest.Expire(k, c, shared.Address) },
		func() { k.must(k.connect().Delete(k.ctx, m.Path(), client.AnyVersion)) },
	} {
		token := m.FencingToken()
		harm()
		wait.Until(k, "it has joined again", func() bool { return m.FencingToken() > token })
		list, err := g.Members(k.ctx)
		k.must(err)
		if names(list) != "a=x" || list[0].Owner != c.SessionID() {
			t.Errorf("the members are %v, want a=x of session %v", list, c.SessionID())
		}
	}
	k.must(m.Leave(k.ctx))
	k.must(m.Err())
	k.waitChildren(c, k.path("g"), 0)
	k.wantNoLeftovers()
}

// A namesake is waited for, and not removed when it leaves late.
func TestGroup_Join_NamesakeWaits(t *testing.T) {
	k := newKit(t)
	c, c2 := k.connect(), k.connect()
	first, err := recipes.NewGroup(c, k.path("g")).Join(k.ctx, "a", []byte("1"))
	k.must(err)
	second := start(func() (*recipes.Membership, error) {
		return recipes.NewGroup(c2, k.path("g")).Join(k.ctx, "a", []byte("2"))
	})
	wait.Until(k, "the second waits", func() bool { return shared.Watches(k.root) == 2 })
	k.must(first.Leave(k.ctx))
	got := receive(k, "the second's turn", second)
	k.must(got.err)
	k.must(first.Leave(k.ctx)) // again
	list, err := recipes.NewGroup(c, k.path("g")).Members(k.ctx)
	k.must(err)
	if names(list) != "a=2" {
		t.Errorf("the members are %s, want a=2", names(list))
	}
	k.must(got.v.Leave(k.ctx))
	k.wantNoLeftovers()
}

// The creation's answer is lost; the client is closed.
func TestGroup_Join_ReplyLostThenClosed(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	k.must(c.EnsurePath(k.ctx, k.path("g"), client.Persistent))
	tap.LoseReply(proxy.OpCreate)
	m, err := recipes.NewGroup(c, k.path("g")).Join(k.ctx, "a", nil)
	k.must(err)
	if tap.Lost() != 1 {
		t.Errorf("%d replies were lost, want 1", tap.Lost())
	}
	k.must(c.Close())
	receive(k, "the end", m.Done())
	k.wantErr(m.Err(), client.ErrClosed)
	k.wantNoLeftovers()
}

func TestRegistry_RegisterUpdateLeave(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	r := recipes.NewRegistry(c, k.path("services"))
	type step struct {
		change recipes.RegistryChange
		err    error
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	steps := make(chan step)
	go func() {
		defer close(steps)
		for change, err := range recipes.NewRegistry(k.connect(), k.path("services")).Watch(ctx, "web") {
			steps <- step{change, err}
		}
	}()
	if s := receive(k, "the first state", steps); s.err != nil || len(s.change.Instances) != 0 {
		t.Errorf("at first there is %v (%v), want no instance", s.change, s.err)
	}
	port := 8080
	reg, err := r.Register(k.ctx, recipes.Instance{Service: "web", ID: "i1", Address: "10.0.0.1", Port: &port})
	k.must(err)
	s := receive(k, "the instance", steps)
	k.must(s.err)
	k.must(s.change.Err)
	if i := s.change.Instances[0]; i.ID != "i1" || *i.Port != port || i.Type != "DYNAMIC" ||
		i.Registered == 0 || i.FencingToken != reg.FencingToken() || i.RegisteredAt().IsZero() {
		t.Errorf("the instance is %+v, want i1 at port %d, as it was registered", i, port)
	}
	k.must(reg.Update(k.ctx, recipes.Instance{Address: "10.0.0.2", Payload: []byte(`{"v":1}`)}))
	s = receive(k, "the update", steps)
	if i := s.change.Instances[0]; i.ID != "i1" || i.Address != "10.0.0.2" || string(i.Payload) != `{"v":1}` {
		t.Errorf("the instance is %+v, want i1 at 10.0.0.2 with the payload", i)
	}
	if list, err := r.Instances(k.ctx, "web"); err != nil || list[0].Unhealthy != "" {
		t.Errorf("the instances are %+v (%v), want a healthy one", list, err)
	}
	k.must(reg.Set(k.ctx, recipes.Unhealthy([]byte(`{"address":"10.0.0.2","payload":null}`), "full")))
	s = receive(k, "the mark", steps)
	if i := s.change.Instances[0]; i.Unhealthy != "full" || i.Address != "10.0.0.2" {
		t.Errorf("the instance is %+v, want one at 10.0.0.2 that is not healthy, because of full", i)
	}
	_, _, err = c.Create(k.ctx, k.path("services/web/bad"), []byte("{"), client.Ephemeral)
	k.must(err)
	s = receive(k, "the bad one", steps)
	k.wantErr(s.change.Err, client.ErrMarshalling)
	list, err := r.Instances(k.ctx, "web")
	k.wantErr(err, client.ErrMarshalling)
	if len(list) != 1 || !strings.Contains(err.Error(), "bad") {
		t.Errorf("the instances are %v (%v), want the good one, and an error that names the bad one", list, err)
	}
	services, err := r.Services(k.ctx)
	k.must(err)
	if strings.Join(services, " ") != "web" {
		t.Errorf("the services are %q, want web", services)
	}
	for _, id := range []string{"", "a/b", "..", "x\x00"} {
		_, err := r.Register(k.ctx, recipes.Instance{Service: "web", ID: id})
		k.wantErr(err, client.ErrBadArguments)
	}
	cancel()
	k.wantErr(receive(k, "the end", steps).err, context.Canceled)
	k.must(reg.Leave(k.ctx))
	k.wantNoLeftovers()
}

// A token of a session that has ended is no longer a claim, also before the membership has
// noticed and joined again.
func TestMembership_Token_GoesWithTheSession(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m, err := recipes.NewGroup(c, k.path("g")).Join(k.ctx, "a", nil)
	k.must(err)
	if m.FencingToken() == 0 {
		t.Error("a member has token 0, want the zxid of its creation")
	}
	k.must(c.Close())
	if token := m.FencingToken(); token != 0 {
		t.Errorf("token %v after the session has ended, want 0", token)
	}
	<-m.Done()
}
