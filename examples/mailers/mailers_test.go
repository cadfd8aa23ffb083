package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestOutbox_Send_OneAnswerOfTheLastClaim(t *testing.T) {
	o := new(Outbox)
	for i, step := range []struct {
		call func(mail string, token int64) error
		mail string
		want error
		tok  int64
	}{
		{o.Begin, "m", nil, 1},
		{o.Begin, "m", nil, 2},
		{o.send, "m", ErrStale, 1},
		{o.send, "m", nil, 2},
		{o.send, "m", ErrAnswered, 2}, // a repetition
		{o.send, "m", ErrStale, 1},
		{o.Begin, "m", ErrAnswered, 3},
		{o.Begin, "other", nil, 1},
		{o.send, "other", nil, 1},
	} {
		if err := step.call(step.mail, step.tok); !errors.Is(err, step.want) {
			t.Errorf("step %d: %v, want %v", i, err, step.want)
		}
	}
	if a := o.Answers(); len(a) != 2 || !slices.Equal(a["m"], []string{"by 2"}) {
		t.Errorf("the answers are %v", a)
	}
}

func (o *Outbox) send(mail string, token int64) error {
	return o.Send(mail, token, fmt.Sprintf("by %d", token))
}

// desk is where processors write answers; the test holds some of them up.
type desk struct {
	mu   sync.Mutex // protects the fields below
	held map[string]*held
}

// held is a processor that hangs as soon as it has a mail.
type held struct {
	has    chan string // gets the mail
	resume chan struct{}
}

func (d *desk) hold(name string) *held {
	h := &held{has: make(chan string, 1), resume: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[name] = h
	return h
}

// write returns what a processor does to write an answer.
func (d *desk) write(name string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, mail string) (string, error) {
		d.mu.Lock()
		h := d.held[name]
		delete(d.held, name)
		d.mu.Unlock()
		if h != nil {
			h.has <- mail
			select {
			case <-h.resume:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return "re: " + mail, nil
	}
}

// One processor dies with a mail in its hands, another is paused with one until another has
// answered it, connections break, a server stops. Every mail has one answer.
func TestMailers_EveryMailHasOneAnswer(t *testing.T) {
	const mails = 30
	ctx := testserver.Context(t)
	rnd := testserver.Rand(t)
	e := testserver.Start(t, 3)
	user := e.Process(t).Client
	outbox, office := new(Outbox), &desk{held: map[string]*held{}}
	dying, paused := office.hold("0"), office.hold("1")
	processors := make([]*testserver.Process, 2, 4)
	for i := range processors {
		processors[i] = startProcessor(t, e, fmt.Sprint(i), outbox, office)
	}
	submit(t, user, 0, 2)
	receive(ctx, t, dying.has)
	hostage := receive(ctx, t, paused.has)
	for i := 2; i < 4; i++ {
		processors = append(processors, startProcessor(t, e, fmt.Sprint(i), outbox, office))
	}
	processors[0].Kill(t)
	processors[1].Proxy.Block()
	submit(t, user, 2, mails)
	stormy(t, rnd, processors[2:], outbox)
	e.Stop(rnd.IntN(3))

	wait.Until(t, "somebody has answered for the paused one", func() bool {
		return answersTo(outbox, hostage) > 0
	})
	processors[1].Proxy.Unblock()
	close(paused.resume)
	wait.Until(t, "the paused one is refused", func() bool {
		stale, _ := outbox.Refused()
		return stale > 0
	})
	wait.Until(t, "all mails are answered", func() bool {
		n, err := Waiting(ctx, user)
		return err == nil && n == 0
	})
	answers := outbox.Answers()
	for mail, list := range answers {
		if len(list) != 1 {
			t.Errorf("%s has the answers %q", mail, list)
		}
	}
	for i := range mails {
		if n := answersTo(outbox, fmt.Sprint("mail ", i)); n != 1 {
			t.Errorf("mail %d has %d answers", i, n)
		}
	}
	if len(answers) != mails {
		t.Errorf("%d mails have answers, want %d", len(answers), mails)
	}
}

func startProcessor(
	t *testing.T, e *testserver.Ensemble, name string, outbox *Outbox, office *desk,
) *testserver.Process {
	p := e.Process(t)
	p.Go(func(ctx context.Context, c *client.Client) error {
		return (&Processor{
			Client: c, Name: name, Outbox: outbox, Write: office.write(name), Log: t.Output(),
		}).Run(ctx)
	})
	return p
}

func submit(t *testing.T, c *client.Client, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := Submit(t.Context(), c, fmt.Sprint("mail ", i)); err != nil {
			t.Fatal(err)
		}
	}
}

// stormy breaks connections while the first mails are answered.
func stormy(t *testing.T, rnd *rand.Rand, all []*testserver.Process, outbox *Outbox) {
	t.Helper()
	for n := range 8 {
		wait.Until(t, "one more answer is there", func() bool {
			return len(outbox.Answers()) > n
		})
		all[rnd.IntN(len(all))].Proxy.Cut()
	}
}

// answersTo counts the answers to a mail, by their text.
func answersTo(o *Outbox, mail string) (n int) {
	for _, list := range o.Answers() {
		for _, answer := range list {
			if answer == "re: "+mail {
				n++
			}
		}
	}
	return n
}

func receive(ctx context.Context, t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatal("no processor takes a mail: ", ctx.Err())
		return ""
	}
}
