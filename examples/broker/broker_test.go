package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

func TestPlace_MovesOnlyTheTopicsOfTheDead(t *testing.T) {
	at := func(token int64) Placement { return Placement{Registration: token} }
	d := Directory{Topics: map[string]Placement{"a": at(1), "b": at(2), "c": at(1), "d": {}}}
	brokers := []recipes.Instance{{ID: "one", FencingToken: 1}, {ID: "new", FencingToken: 3}}
	got, moved := place(d, brokers)
	for topic, want := range map[string]int64{"a": 1, "b": 3, "c": 1, "d": 3} {
		if p := got.Topics[topic]; p.Registration != want {
			t.Errorf("%s is at %+v, want %d", topic, p, want)
		}
	}
	if !moved || d.Topics["b"] != at(2) {
		t.Errorf("moved %v, and the original has become %v", moved, d.Topics)
	}
	if _, moved = place(got, brokers); moved {
		t.Error("topics that are well where they are have moved")
	}
	if _, moved = place(d, nil); moved {
		t.Error("topics have moved to nobody")
	}
}

// town is an ensemble with brokers, controllers and a customer.
type town struct {
	*testing.T
	ctx         context.Context
	e           *testserver.Ensemble
	user        *client.Client
	customer    *Customer
	brokers     map[string]*testserver.Process
	controllers map[string]*testserver.Process
}

func newTown(t *testing.T, servers, topics int) *town {
	w := &town{
		T: t, ctx: testserver.Context(t), e: testserver.Start(t, servers),
		brokers: map[string]*testserver.Process{}, controllers: map[string]*testserver.Process{},
	}
	w.user = w.e.Process(t).Client
	for i := range topics {
		w.no(CreateTopic(w.ctx, w.user, topicName(i)))
	}
	for i := range 3 {
		id, p := fmt.Sprintf("broker-%d", i), w.e.Process(t)
		w.brokers[id] = p
		p.Go(func(ctx context.Context, c *client.Client) error {
			return (&Broker{Client: c, ID: id, Log: t.Output()}).Run(ctx)
		})
	}
	for i := range 2 {
		name, p := fmt.Sprintf("controller-%d", i), w.e.Process(t)
		w.controllers[name] = p
		p.Go(func(ctx context.Context, c *client.Client) error {
			return (&Controller{Client: c, Name: name, Log: t.Output()}).Run(ctx)
		})
	}
	var err error
	w.customer, err = NewCustomer(w.ctx, w.user)
	w.no(err)
	t.Cleanup(w.customer.Close)
	return w
}

func topicName(i int) string { return fmt.Sprintf("topic-%d", i) }

func (w *town) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// publishAll publishes to each topic, and returns where the topics are then.
func (w *town) publishAll(topics int, message string) map[string]Placement {
	w.Helper()
	for i := range topics {
		w.no(w.customer.Publish(w.ctx, topicName(i), message))
	}
	d, _ := w.customer.directory.Get()
	return d.Topics
}

// A broker, the controller and a server die. All topics go on, those of the dead
// broker at others, those of the living where they were; a subscriber follows.
func TestBroker_TopicsOutliveTheirBroker(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	const topics = 6
	rnd := testserver.Rand(t)
	w := newTown(t, 3, topics)
	before := w.publishAll(topics, "first")
	victim := topicName(rnd.IntN(topics))
	got := make(chan string)
	subscription, cancel := context.WithCancel(w.ctx)
	defer cancel()
	go func() {
		defer close(got)
		for message, err := range w.customer.Subscribe(subscription, victim) {
			if err != nil {
				return
			}
			got <- message
		}
	}()
	w.receive(got, "first")

	dead := before[victim].Broker
	w.brokers[dead].Kill(t)
	controller, err := recipes.NewElection(w.user, controllerPath).Leader(w.ctx)
	w.no(err)
	w.controllers[string(controller.Data)].Kill(t)
	w.e.Stop(rnd.IntN(3))
	after := w.publishAll(topics, "second")
	w.receive(got, "second")
	for topic, was := range before {
		if now := after[topic]; now.Broker == dead || was.Broker != dead && now != was {
			t.Errorf("%s was at %+v and is at %+v; dead is %s", topic, was, now, dead)
		}
	}
	cancel()
	for range got { // nothing may have come twice
		t.Error("there is a message too many")
	}
}

// A broker that is cut off from the ensemble, but not from its customers, refuses
// their messages as soon as its topics may be elsewhere.
func TestBroker_CutOffRefusesMessages(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	w := newTown(t, 1, 1)
	topic := topicName(0)
	old := w.publishAll(1, "first")[topic]
	w.brokers[old.Broker].Proxy.Block()
	wait.Until(t, "the topic has moved", func() bool {
		d, _ := w.customer.directory.Get()
		return d.Topics[topic].Broker != old.Broker
	})
	_, err := ask(w.ctx, http.MethodPost, old, topic, "too late")
	if err == nil {
		t.Error("the broker that is cut off has taken a message")
	}
	w.brokers[old.Broker].Proxy.Unblock()
	w.no(w.customer.Publish(w.ctx, topic, "second"))
	for message, err := range w.customer.Subscribe(w.ctx, topic) {
		w.no(err)
		if message != "second" {
			t.Errorf("the topic has %q, want %q", message, "second")
		}
		break
	}
}

// One who was controller finds out when it wants to write.
func TestController_PlaceAll_ErrDeposedAfterItsTerm(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	ctx := testserver.Context(t)
	c := testserver.Start(t, 1).Process(t).Client
	term, err := recipes.NewElection(c, controllerPath).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	directory, err := followDirectory(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	// Its successor has written already; the copy of the old one does not show it.
	changed := directory.Changed()
	if err := CreateTopic(ctx, c, "t"); err != nil {
		t.Fatal(err)
	}
	<-changed
	err = directory.Update(ctx, func(d Directory) (Directory, error) {
		d.Controller = term.FencingToken() + 1
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &Controller{Client: c, Name: "old", Log: t.Output()}
	err = k.placeAll(ctx, term, directory, []recipes.Instance{{ID: "b", FencingToken: 1}})
	if !errors.Is(err, errDeposed) {
		t.Errorf("placing topics after the term: %v, want %v", err, errDeposed)
	}
}

func (w *town) receive(c <-chan string, want string) {
	w.Helper()
	select {
	case got := <-c:
		if got != want {
			w.Errorf("the subscriber got %q, want %q", got, want)
		}
	case <-w.ctx.Done():
		w.Fatalf("the subscriber does not get %q: %v", want, w.ctx.Err())
	}
}
