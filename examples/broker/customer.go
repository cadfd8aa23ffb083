package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// pollEvery is how often a subscriber asks for more, and how soon a publisher tries
// again when its broker does not answer and the directory says nothing new.
const pollEvery = 50 * time.Millisecond

// maxBatch bounds what a broker sends at a time: a full topic.
const maxBatch = maxTopic * maxMessage

// Customer publishes and subscribes. It finds the brokers by the directory.
type Customer struct {
	directory *recipes.Value[Directory]
}

// NewCustomer returns a customer; Close ends it.
func NewCustomer(ctx context.Context, c *client.Client) (*Customer, error) {
	directory, err := followDirectory(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Customer{directory}, nil
}

// Close stops following the directory.
func (k *Customer) Close() { k.directory.Close() }

// Publish sends a message to the broker of a topic, and when that has moved, to the
// next, until a broker has it or ctx ends. A message whose answer was lost is sent
// again, and may be there twice.
func (k *Customer) Publish(ctx context.Context, topic, message string) error {
	for {
		changed := k.directory.Changed()
		p, err := k.find(topic)
		if err == nil {
			_, err = ask(ctx, http.MethodPost, p, url.PathEscape(topic), message)
		}
		if err == nil {
			return nil
		}
		if !pause(ctx, changed) {
			return fmt.Errorf("publishing to %s: %w: %w", topic, ctx.Err(), err)
		}
	}
}

// Subscribe yields the messages of a topic, from the first that its broker has, and
// goes on with the next broker when the topic moves. What it yields last is the
// error of ctx.
func (k *Customer) Subscribe(ctx context.Context, topic string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var at Placement
		from := 0
		for {
			changed := k.directory.Changed()
			p, err := k.find(topic)
			if err == nil && p != at {
				at, from = p, 0
			}
			var messages []string
			if err == nil {
				// Nothing is said of an error: there are no messages then, and it is
				// tried again.
				messages, _ = fetch(ctx, p, topic, from)
			}
			for _, m := range messages {
				from++
				if !yield(m, nil) {
					return
				}
			}
			if len(messages) == 0 && !pause(ctx, changed) {
				yield("", ctx.Err())
				return
			}
		}
	}
}

// find returns where a topic is.
func (k *Customer) find(topic string) (Placement, error) {
	d, _ := k.directory.Get()
	p, ok := d.Topics[topic]
	switch {
	case !ok:
		return p, fmt.Errorf("there is no topic %s", topic)
	case p.Broker == "":
		return p, fmt.Errorf("the topic %s is not placed yet", topic)
	}
	return p, nil
}

func fetch(ctx context.Context, p Placement, topic string, from int) ([]string, error) {
	answer, err := ask(ctx, http.MethodGet, p, fmt.Sprintf("%s?from=%d", url.PathEscape(topic), from), "")
	if err != nil {
		return nil, err
	}
	var messages []string
	err = json.Unmarshal(answer, &messages)
	return messages, err
}

// ask makes a request of a broker.
func ask(ctx context.Context, method string, p Placement, what, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method,
		"http://"+p.Address+"/"+what, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBatch))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("broker %s: %s: %s", p.Broker, response.Status, answer)
	}
	return answer, err
}

// pause waits until the directory has changed or some time has passed; false means
// that ctx has ended.
func pause(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-changed:
	case <-time.After(pollEvery):
	case <-ctx.Done():
		return false
	}
	return true
}
