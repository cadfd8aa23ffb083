package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

// pollEvery is how often a subscriber asks for more, and how soon a publisher tries
// again.
const pollEvery = 50 * time.Millisecond

// Customer publishes and subscribes. It finds the primary of a topic by its znode.
type Customer struct {
	client *client.Client
	name   string // no other publisher has it

	mu     sync.Mutex // held while a message is published: one after the other
	number int        // of the last message
}

// NewCustomer returns a customer.
func NewCustomer(c *client.Client) *Customer { return &Customer{client: c, name: rand.Text()} }

// Publish gives a message to the primary of a topic, and when that dies, to the next,
// until one acknowledges it or ctx ends. It is in the topic once: a message that is sent
// again has the same number. After an error it may be there or not.
func (k *Customer) Publish(ctx context.Context, topic, text string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.number++
	message := []Message{{From: k.name, Number: k.number, Text: text}}
	for {
		err := k.ask(ctx, http.MethodPost, topic, "", message, nil)
		if err == nil {
			return nil
		}
		if !pause(ctx) {
			return fmt.Errorf("publishing to %s: %w: %w", topic, ctx.Err(), err)
		}
	}
}

// Read yields the messages of a topic after an id, for ever. What it yields last is the
// error of ctx.
func (k *Customer) Read(ctx context.Context, topic string, after int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			var messages []Message
			// Of an error nothing is said: there are no messages then, and it is tried again.
			_ = k.ask(ctx, http.MethodGet, topic, "?after="+strconv.Itoa(after), nil, &messages)
			for _, m := range messages {
				after = m.ID
				if !yield(m, nil) {
					return
				}
			}
			if len(messages) == 0 && !pause(ctx) {
				yield(Message{}, ctx.Err())
				return
			}
		}
	}
}

// Subscribe is Read for a subscriber with a name, who goes on after the last message
// that it has processed. The id of that is in the subscriber's znode, and is written
// when the loop's body has returned: one who is killed in between gets the message again.
func (k *Customer) Subscribe(ctx context.Context, topic, name string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		path := subscriberPath(topic, name)
		err := k.client.EnsurePath(ctx, path, client.Persistent)
		var data []byte
		if err == nil {
			data, _, err = k.client.Get(ctx, path)
		}
		var last int
		if err == nil && len(data) > 0 {
			err = json.Unmarshal(data, &last)
		}
		if err != nil {
			yield(Message{}, fmt.Errorf("subscriber %s: %w", name, err))
			return
		}
		for m, err := range k.Read(ctx, topic, last) {
			more := yield(m, err)
			if err == nil {
				err = k.remember(ctx, path, m.ID)
				if err != nil && more {
					yield(Message{}, err)
				}
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// remember writes a subscriber's last id. It can be written twice.
func (k *Customer) remember(ctx context.Context, path string, id int) error {
	for {
		_, err := k.client.Set(ctx, path, []byte(strconv.Itoa(id)), client.AnyVersion)
		if ctx.Err() != nil || !errors.Is(err, client.ErrOutcomeUnknown) && !errors.Is(err, client.ErrSessionExpired) {
			return err
		}
	}
}

// ask makes a request of the primary of a topic.
func (k *Customer) ask(ctx context.Context, method, topic, query string, in, out any) error {
	data, _, err := k.client.Get(ctx, primaryPath(topic))
	if err != nil {
		return err
	}
	var primary Server
	if err := json.Unmarshal(data, &primary); err != nil {
		return err
	}
	return ask(ctx, method, primary.Address, topic+query, in, out)
}

// pause lets some time pass; false means that ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(pollEvery):
		return true
	case <-ctx.Done():
		return false
	}
}
