package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// inboxPath is the queue of the mails that came in.
const inboxPath = "/examples/mailers/inbox"

// Submit puts a mail into the queue.
func Submit(ctx context.Context, c *client.Client, mail string) error {
	return recipes.NewQueue(c, inboxPath).Put(ctx, []byte(mail))
}

// Waiting returns how many mails are not answered yet.
func Waiting(ctx context.Context, c *client.Client) (int, error) {
	return recipes.NewQueue(c, inboxPath).Len(ctx)
}

// Answers is where answers go: an Outbox, wherever it is.
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
// processor dies in between, the next one finds that there is an answer. The other
// way round the mail would be gone without one.
func (p *Processor) process(ctx context.Context, item *recipes.Item) error {
	err := p.answer(ctx, item)
	switch {
	case errors.Is(err, ErrStale):
		fmt.Fprintf(p.Log, "%s: refused: %v\n", p.Name, err)
		return nil // it is somebody else's
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
		return nil // the next one to take it will be told ErrAnswered
	case errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil:
		return nil // the session is lost: it is gone, or the next one is told
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
