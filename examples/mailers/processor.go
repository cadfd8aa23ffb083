package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// inboxPath is the queue of incoming mails.
const inboxPath = "/examples/mailers/inbox"

// Submit puts a mail into the queue.
func Submit(ctx context.Context, c *client.Client, mail string) error {
	return recipes.NewQueue(c, inboxPath).Put(ctx, []byte(mail))
}

// Waiting returns how many mails are not answered yet.
func Waiting(ctx context.Context, c *client.Client) (int, error) {
	return recipes.NewQueue(c, inboxPath).Len(ctx)
}

// Answers receives the answers: an Outbox, local or remote.
type Answers interface {
	Begin(mail string, token int64) error
	Send(mail string, token int64, answer string) error
}

// Processor answers mails, one after the other.
type Processor struct {
	Client *client.Client
	Name   string
	Outbox Answers
	Write  func(ctx context.Context, mail string) (answer string, err error)
	Log    io.Writer // what happens, for people
}

// Run answers mails until ctx ends.
func (p *Processor) Run(ctx context.Context) error {
	queue := recipes.NewQueue(p.Client, inboxPath)
	for {
		item, err := queue.Take(ctx)
		if err != nil {
			return err
		}
		if err := p.process(ctx, item); err != nil {
			return err
		}
	}
}

// process answers a mail and removes it from the queue, in this order: if the
// processor dies in between, the next one finds that there is an answer. In the
// other order the mail would be removed without one.
func (p *Processor) process(ctx context.Context, item *recipes.Item) error {
	err := p.answer(ctx, item)
	switch {
	case errors.Is(err, ErrStale):
		fmt.Fprintf(p.Log, "%s: refused: %v\n", p.Name, err)
		return nil // another processor has claimed it
	case errors.Is(err, ErrAnswered):
		fmt.Fprintf(p.Log, "%s: only to be removed: %v\n", p.Name, err)
	case err != nil:
		return errors.Join(err, item.Release(ctx))
	default:
		fmt.Fprintf(p.Log, "%s: has answered %q\n", p.Name, item.Data)
	}
	err = item.Complete(ctx)
	switch {
	case errors.Is(err, recipes.ErrLost):
		return nil // the next one to take it gets ErrAnswered
	case errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil:
		return nil // the session is lost: the mail is removed, or the next one gets ErrAnswered
	}
	return err
}

func (p *Processor) answer(ctx context.Context, item *recipes.Item) error {
	if err := p.Outbox.Begin(item.Path(), item.FencingToken()); err != nil {
		return err
	}
	answer, err := p.Write(ctx, string(item.Data))
	if err != nil {
		return fmt.Errorf("answering %q: %w", item.Data, err)
	}
	return p.Outbox.Send(item.Path(), item.FencingToken(), answer)
}

// The refusals of an outbox.
var (
	// ErrStale reports that the mail has been claimed again: the sender's claim
	// is no longer valid.
	ErrStale = errors.New("the claim is stale")
	// ErrAnswered reports that the mail has its answer, and only has to be
	// removed from the queue.
	ErrAnswered = errors.New("the mail is answered already")
)

// Outbox accepts one answer for each mail, from the processor that claimed it
// last. The zero value is empty.
type Outbox struct {
	mu    sync.Mutex // protects the fields below
	mails map[string]*record

	stale, repeated int // refusals
}

// record is an outbox's record of a mail. A real one can drop it when the mail has
// left the queue and all sessions of that time have ended.
type record struct {
	token   int64    // the highest so far
	answers []string // at most one, if the outbox is right
}

// Begin records that a processor has claimed a mail. From then on earlier claims
// of it are refused.
//
// Errors: ErrStale, ErrAnswered.
func (o *Outbox) Begin(mail string, token int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.passLocked(mail, token)
	return err
}

// Send sends the answer to a mail.
//
// Errors: ErrStale, ErrAnswered.
func (o *Outbox) Send(mail string, token int64, answer string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, err := o.passLocked(mail, token)
	if err != nil {
		return err
	}
	r.answers = append(r.answers, answer)
	return nil
}

// passLocked finds the record of a mail, for a processor that may answer it.
func (o *Outbox) passLocked(mail string, token int64) (*record, error) {
	if o.mails == nil {
		o.mails = map[string]*record{}
	}
	r := o.mails[mail]
	if r == nil {
		r = &record{}
		o.mails[mail] = r
	}
	if token < r.token {
		o.stale++
		return nil, fmt.Errorf("%s: %w: token %#x after %#x",
			mail, ErrStale, token, r.token)
	}
	r.token = token
	if len(r.answers) > 0 {
		o.repeated++
		return nil, fmt.Errorf("%s: %w", mail, ErrAnswered)
	}
	return r, nil
}

// Answers returns all answers that were sent, by the mails' names.
func (o *Outbox) Answers() map[string][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string][]string{}
	for mail, r := range o.mails {
		if len(r.answers) > 0 {
			all[mail] = append([]string(nil), r.answers...)
		}
	}
	return all
}

// Refused returns how many were refused because their claims were stale, and how
// many because there was an answer.
func (o *Outbox) Refused() (stale, repeated int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stale, o.repeated
}
