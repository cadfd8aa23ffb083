package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestMain(m *testing.M) {
	os.Exit(testserver.Main(m, map[string]testserver.Role{
		"node": func(ctx context.Context, c *client.Client, _, dir string) error {
			return (&Node{Client: c, ID: filepath.Base(dir), Dir: dir, Log: os.Stdout}).Run(ctx)
		},
	}))
}

// A thousand messages are published while the primary is killed five times. Both nodes of
// the pair have all of them on their disks in the end, each once and in order, and so has
// a subscriber that stops now and then and goes on after the last id it has seen.
func TestBroker_ThousandMessagesFivePrimariesKilled(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	const messages, kills, nodes = 1000, 5, 3
	p := testserver.StartProcesses(t)
	dir, running := t.TempDir(), map[string]*testserver.Child{}
	start := func(id string) { running[id] = p.Run("node", filepath.Join(dir, id)) }
	for i := range nodes {
		start(fmt.Sprintf("node-%d", i))
	}
	w := &town{T: t, ctx: p.Context, user: p.Client, customer: NewCustomer(p.Client)}
	w.must(CreateTopic(w.ctx, w.user, topicOfTests))

	// The publisher is at most ten messages ahead of who kills.
	acknowledged, published := make(chan int, 10), make(chan error, 1)
	go func() {
		defer close(acknowledged)
		var err error
		for i := 1; i <= messages && err == nil; i++ {
			if err = w.customer.Publish(w.ctx, topicOfTests, fmt.Sprint("message ", i)); err == nil {
				acknowledged <- i
			}
		}
		published <- err
	}()
	seen, subscribed := []Message{}, make(chan error, 1)
	go func() { subscribed <- subscribe(w.ctx, p.Client, messages, &seen) }()

	for kill := range kills {
		// Somewhere in the next part, and while the publisher goes on.
		until := (kill+1)*messages/(kills+1) + p.Rand.IntN(50)
		for at := range acknowledged {
			if at >= until {
				break
			}
		}
		primary := w.server(primaryPath(topicOfTests))
		running[primary.Node].Kill()
		start(primary.Node)
		wait.Until(t, "there is another primary", func() bool {
			now := w.server(primaryPath(topicOfTests))
			return now.Node != "" && now != primary
		})
	}
	for range acknowledged {
		continue // to the last
	}
	w.must(<-published)
	w.must(<-subscribed)
	check(t, "the subscriber", seen)

	var pair Pair
	w.until("the topic has two nodes", func() bool {
		data, _, err := p.Client.Get(w.ctx, topicPath(topicOfTests))
		return err == nil && json.Unmarshal(data, &pair) == nil && pair.Backup != ""
	})
	for _, node := range running {
		node.Kill()
	}
	for _, id := range []string{pair.Primary, pair.Backup} {
		check(t, id, openLog(t, filepath.Join(dir, id, topicOfTests+".log")).messages)
	}
}

// subscribe reads until a subscriber has seen n messages, and starts over every 300.
func subscribe(ctx context.Context, c *client.Client, n int, seen *[]Message) error {
	for len(*seen) < n {
		for m, err := range NewCustomer(c).Subscribe(ctx, topicOfTests, "alice") {
			if err != nil {
				return err
			}
			*seen = append(*seen, m)
			if len(*seen) == n || len(*seen)%300 == 0 {
				break
			}
		}
	}
	return nil
}

// check checks that messages are all that were published, in order.
func check(t *testing.T, who string, messages []Message) {
	t.Helper()
	if len(messages) != 1000 {
		t.Errorf("%s has %d messages, want 1000", who, len(messages))
	}
	for i, m := range messages {
		if m.ID != i+1 || m.Text != fmt.Sprint("message ", i+1) {
			t.Fatalf("%s has %+v in place %d", who, m, i+1)
		}
	}
}
