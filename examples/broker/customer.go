package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

// pollEvery is how often a subscriber polls, and how soon a publisher tries again.
const pollEvery = 50 * time.Millisecond

// Customer publishes and subscribes. It finds the primary of a topic by its znode.
type Customer struct {
	client *client.Client
	name   string // unique among publishers

	mu     sync.Mutex // held while a message is published: one after the other
	number int        // of the last message
}

// NewCustomer returns a customer.
func NewCustomer(c *client.Client) *Customer { return &Customer{client: c, name: rand.Text()} }

// Publish sends a message to the primary of a topic, and if that dies, to the next,
// until one acknowledges it or ctx ends. The topic gets it once: a message that is sent
// again has the same number. After an error it may or may not be in the topic.
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

// Read yields the messages of a topic after an id, until ctx ends, and then its error.
func (k *Customer) Read(ctx context.Context, topic string, after int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			var messages []Message
			// Ignore the error: there are no messages then, and Read tries again.
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

// Subscribe is Read for a named subscriber, which continues after the last message that
// it processed. The id of that message is in the subscriber's znode, and is written when
// the loop's body has returned: a subscriber that is killed before gets the message
// again.
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

// maxBody bounds a request and an answer: each byte of a text has up to six in JSON.
const maxBody = maxBatch * (6*maxMessage + 512)

// ask makes a request of a node: JSON there and, if out is not nil, back.
func ask(ctx context.Context, method, address, what string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", address, response.Status, bytes.TrimSpace(answer))
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// ServeHTTP answers publishers (POST), subscribers (GET) and primaries (PUT).
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, err := n.find(r.URL.Path[1:])
	var answer []Message
	if err == nil {
		answer, err = n.answer(t, w, r)
	}
	var disk diskError
	switch {
	case errors.As(err, &disk):
		n.end(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case errors.Is(err, errNotHere) || errors.Is(err, errStale):
		n.lookAgain() // the backup may have failed
		http.Error(w, err.Error(), http.StatusMisdirectedRequest)
	case errors.Is(err, errFull):
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		_ = json.NewEncoder(w).Encode(answer) // a client that has disconnected asks again
	}
}

func (n *Node) answer(t *topic, w http.ResponseWriter, r *http.Request) ([]Message, error) {
	var messages []Message
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&messages); err != nil {
			return nil, fmt.Errorf("want a list of messages in JSON: %w", err)
		}
	}
	if r.Method == http.MethodPost {
		if len(messages) != 1 || !messages[0].valid() {
			return nil, fmt.Errorf("want one message: From, Number from 1, Text of at most %d bytes", maxMessage)
		}
		return nil, t.publish(messages[0])
	}
	after, err := strconv.Atoi(r.FormValue("after"))
	if err != nil || after < 0 {
		return nil, errors.New("after= is to be the id of a message, or 0")
	}
	switch r.Method {
	case http.MethodGet:
		return t.read(after)
	case http.MethodPut:
		epoch, err := strconv.ParseInt(r.FormValue("epoch"), 10, 32)
		if err != nil {
			return nil, errors.New("epoch= is to be the version of the topic's znode")
		}
		return nil, t.receive(client.Version(epoch), after, messages)
	}
	return nil, errors.New("want GET, POST or PUT")
}
