package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// candidate campaigns in an election, and is the nth in the queue when it returns.
func (k *kit) candidate(
	c *client.Client, name string, n int, opts ...recipes.Option,
) (*recipes.Election, <-chan outcome[*recipes.Term]) {
	k.Helper()
	e := recipes.NewElection(c, k.path("e"), append(opts, recipes.WithData([]byte(name)))...)
	term := start(func() (*recipes.Term, error) { return e.Campaign(k.ctx) })
	wait.Until(k, "the candidate is in the queue", func() bool {
		list, err := e.Candidates(k.ctx)
		k.must(err)
		return len(list) == n
	})
	return e, term
}

// term is the result of a Campaign that must succeed.
func (k *kit) term(c <-chan outcome[*recipes.Term]) *recipes.Term {
	k.Helper()
	got := receive(k, "the election", c)
	k.must(got.err)
	return got.v
}

// Candidates lead one after the other in their order, with growing tokens.
func TestElection_Campaign_NextLeadsAfterResign(t *testing.T) {
	k := newKit(t)
	var terms []<-chan outcome[*recipes.Term]
	var e *recipes.Election
	for i := range 5 {
		var term <-chan outcome[*recipes.Term]
		e, term = k.candidate(k.connect(), fmt.Sprint(i), i+1)
		terms = append(terms, term)
	}
	var token int64
	for i, c := range terms {
		term := k.term(c)
		leader, err := e.Leader(k.ctx)
		k.must(err)
		if string(leader.Data) != fmt.Sprint(i) || leader.FencingToken != term.FencingToken() || leader.Path != term.Path() {
			t.Errorf("the leader is %q with token %v, want %d with %v", leader.Data, leader.FencingToken, i, term.FencingToken())
		}
		if term.FencingToken() <= token {
			t.Errorf("token %v, want more than the one before, %v", term.FencingToken(), token)
		}
		token = term.FencingToken()
		for j, later := range terms[i+1:] {
			if len(later) != 0 {
				t.Fatalf("%d leads together with %d, want one leader", i+1+j, i)
			}
		}
		k.must(term.Resign(k.ctx))
	}
	_, err := e.Leader(k.ctx)
	k.wantErr(err, recipes.ErrNoLeader)
	k.wantNoLeftovers()
}

// The death of a leader wakes one candidate.
func TestElection_Campaign_WakesOneCandidate(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	_, first := k.candidate(c, "first", 1)
	leader := k.term(first)
	const length = 12
	var clients []*client.Client
	var taps []*proxy.Proxy
	var terms []<-chan outcome[*recipes.Term]
	for i := range length {
		c, tap := k.connectTapped()
		_, term := k.candidate(c, fmt.Sprint(i), i+2)
		clients, taps, terms = append(clients, c), append(taps, tap), append(terms, term)
	}
	wait.Until(k, "all watch", func() bool { return shared.Watches(k.path("e")) == 1+2*length })
	k.must(c.Close())
	term := k.term(terms[0])
	if leader.Err() == nil {
		t.Error("the old leader has no error, want it to have lost")
	}
	if taps[0].Events() != 1 {
		t.Errorf("the new leader had %d events, want 1", taps[0].Events())
	}
	for i := range length - 1 {
		k.must(clients[i+1].Sync(k.ctx, "/")) // after it no event is in transit
		if n := taps[i+1].Events(); n != 0 {
			t.Errorf("candidate %d had %d events, want none", i+1, n)
		}
	}
	k.must(term.Resign(k.ctx))
	for _, c := range terms[1:] {
		k.must(k.term(c).Resign(k.ctx))
	}
	k.wantNoLeftovers()
}

// A leader whose session expires learns of it, campaigns again after the others,
// and at no time do two lead.
func TestElection_Run_StandsAgainAfterLoss(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	e := recipes.NewElection(c, k.path("e"), recipes.WithData([]byte("a")))
	type report struct {
		term *recipes.Term
		work context.Context
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	leads := make(chan report)
	ended := start(func() (struct{}, error) {
		return struct{}{}, e.Run(ctx, func(work context.Context, term *recipes.Term) error {
			leads <- report{term, work}
			<-work.Done()
			return work.Err()
		})
	})
	first := receive(k, "the first term", leads)
	_, rival := k.candidate(k.connect(), "b", 2)
	zktest.Expire(k, c, shared.Address)
	receive(k, "the end of the work", first.work.Done())
	k.wantSessionEnd(context.Cause(first.work))
	b := k.term(rival)
	if b.FencingToken() <= first.term.FencingToken() {
		t.Errorf("token %v, want more than the one before, %v", b.FencingToken(), first.term.FencingToken())
	}
	wait.Until(k, "the first stands again", func() bool {
		list, err := e.Candidates(k.ctx)
		k.must(err)
		return len(list) == 2 && string(list[1].Data) == "a"
	})
	k.must(b.Resign(k.ctx))
	again := receive(k, "the second term", leads)
	if again.term.FencingToken() <= b.FencingToken() {
		t.Errorf("token %v, want more than the one before, %v", again.term.FencingToken(), b.FencingToken())
	}
	cancel()
	k.wantErr(receive(k, "the end of Run", ended).err, context.Canceled)
	k.waitChildren(c, k.path("e"), 0)
	k.wantNoLeftovers()
}

// When lead returns without a loss, Run resigns and returns.
func TestElection_Run_ResignsWhenDone(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	e := recipes.NewElection(c, k.path("e"))
	oops := errors.New("oops")
	k.wantErr(e.Run(k.ctx, func(context.Context, *recipes.Term) error { return oops }), oops)
	k.must(e.Run(k.ctx, func(context.Context, *recipes.Term) error { return nil }))
	if n := k.children(c, k.path("e")); n != 0 {
		t.Errorf("there are %d candidates, want none", n)
	}
	k.wantNoLeftovers()
}

// Observe shows every state that lasts: no leader, a leader, its new data, the
// next one, no leader again.
func TestElection_Observe_FollowsTheLeader(t *testing.T) {
	k := newKit(t)
	type step struct {
		leader recipes.Participant
		err    error
	}
	watcher, tap := k.connectTapped()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	steps := make(chan step)
	go func() {
		defer close(steps)
		for p, err := range recipes.NewElection(watcher, k.path("e")).Observe(ctx) {
			steps <- step{p, err}
		}
	}()
	expect := func(data string) {
		t.Helper()
		got := receive(k, "a change of the leader", steps)
		k.must(got.err)
		if string(got.leader.Data) != data {
			t.Fatalf("the leader is %q, want %q", got.leader.Data, data)
		}
	}
	expect("") // no parent
	_, c := k.candidate(k.connect(), "a", 1)
	a := k.term(c)
	expect("a")
	k.must(a.Announce(k.ctx, []byte("a2")))
	expect("a2")
	tap.Cut()
	_, c = k.candidate(k.connect(), "b", 2)
	k.must(a.Resign(k.ctx))
	b := k.term(c)
	expect("b")
	zktest.Expire(k, watcher, shared.Address) // of no interest to those who observe
	k.must(b.Resign(k.ctx))
	expect("") // no child
	_, c = k.candidate(k.connect(), "c", 1)
	term := k.term(c)
	expect("c")
	cancel()
	k.wantErr(receive(k, "the end", steps).err, context.Canceled)
	if _, more := <-steps; more {
		t.Error("Observe yields something after the error, want its end")
	}
	k.must(term.Resign(k.ctx))
	k.wantNoLeftovers()
}

// A consumer of Observe that stops leaves no watch.
func TestElection_Observe_StopLeavesNothing(t *testing.T) {
	k := newKit(t)
	_, c := k.candidate(k.connect(), "a", 1)
	a := k.term(c)
	c2 := k.connect()
	for p, err := range recipes.NewElection(c2, k.path("e")).Observe(k.ctx) {
		k.must(err)
		if string(p.Data) != "a" {
			t.Errorf("the leader is %q, want a", p.Data)
		}
		break
	}
	k.must(a.Resign(k.ctx))
	k.wantNoLeftovers()
}

// The leader was cut off and comes back after its session has ended: it must not
// lead by the znode of the old session, nor together with its successor.
func TestElection_Campaign_NoDoubleLeaderAfterReconnect(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	e, first := k.candidate(c, "a", 1)
	old := k.term(first)
	_, rival := k.candidate(k.connect(), "b", 2)
	tap.Block()
	b := k.term(rival)
	k.wantErr(old.Err(), recipes.ErrLost) // before another candidate leads
	tap.Unblock()
	again := start(func() (*recipes.Term, error) { return e.Campaign(k.ctx) })
	wait.Until(k, "it stands again", func() bool { return k.children(c, k.path("e")) == 2 })
	k.must(b.Err())
	if len(again) != 0 {
		t.Fatal("the old leader leads, too; want b alone")
	}
	k.must(b.Resign(k.ctx))
	term := k.term(again)
	if term.Session().ID == old.Session().ID {
		t.Error("the new term is in the lost session, want another one")
	}
	k.must(term.Resign(k.ctx))
	k.wantNoLeftovers()
}

func TestElection_Campaign_LossOnSuspension(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	_, first := k.candidate(c, "a", 1, recipes.WithLossOnSuspension())
	a := k.term(first)
	_, second := k.candidate(k.connect(), "b", 2)
	tap.Cut()
	receive(k, "the loss", a.Done())
	k.wantErr(a.Err(), recipes.ErrSuspended)
	if len(second) != 0 {
		t.Error("the other leads before the first has resigned, want it to wait")
	}
	k.wantErr(a.Resign(k.ctx), recipes.ErrLost)
	k.must(k.term(second).Resign(k.ctx))
	k.wantNoLeftovers()
}

func TestElection_Campaign_ContextEnds(t *testing.T) {
	k := newKit(t)
	_, first := k.candidate(k.connect(), "a", 1)
	a := k.term(first)
	ctx, cancel := context.WithCancel(k.ctx)
	c := k.connect()
	waiting := start(func() (*recipes.Term, error) {
		return recipes.NewElection(c, k.path("e")).Campaign(ctx)
	})
	k.waitChildren(c, k.path("e"), 2)
	cancel()
	k.wantErr(receive(k, "the end", waiting).err, context.Canceled)
	k.waitChildren(c, k.path("e"), 1)
	k.must(a.Err())
	k.must(a.Resign(k.ctx))
	k.wantNoLeftovers()
}
