package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// town is an ensemble with nodes, a topic and an observer.
type town struct {
	*testing.T
	ctx      context.Context
	e        *testserver.Ensemble
	user     *client.Client
	customer *Customer
	dir      string
	log      transcript
	nodes    map[string]*testserver.Process
}

const topicOfTests = "news"

func newTown(t *testing.T) *town {
	w := &town{
		T: t, ctx: testserver.Context(t), e: testserver.Start(t, 1), dir: t.TempDir(),
		nodes: map[string]*testserver.Process{},
	}
	w.user = w.e.Process(t).Client
	w.customer = NewCustomer(w.user)
	w.must(CreateTopic(w.ctx, w.user, topicOfTests))
	return w
}

// start starts nodes, each when the one before has been seen.
func (w *town) start(ids ...string) {
	w.Helper()
	for _, id := range ids {
		p := w.e.Process(w.T)
		w.nodes[id] = p
		p.Go(func(ctx context.Context, c *client.Client) error {
			return (&Node{Client: c, ID: id, Dir: filepath.Join(w.dir, id), Log: &w.log}).Run(ctx)
		})
		w.until(id+" is registered", func() bool { return w.has(znode.Join(nodesPath, id)) })
	}
}

func (w *town) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *town) until(what string, condition func() bool) {
	w.Helper()
	wait.Until(w, what, condition)
}

func (w *town) has(path string) bool {
	there, _, err := w.user.Exists(w.ctx, path)
	return err == nil && there
}

// pair waits until two nodes are the pair of the topic, and say so.
func (w *town) pair(primary, backup string) {
	w.Helper()
	w.until(fmt.Sprintf("the primary is %s and the backup %q", primary, backup), func() bool {
		data, _, err := w.user.Get(w.ctx, topicPath(topicOfTests))
		return err == nil && bytes.Equal(data, encode(Pair{primary, backup})) &&
			w.server(primaryPath(topicOfTests)).Node == primary && w.server(backupPath(topicOfTests)).Node == backup &&
			strings.Contains(w.log.String(), fmt.Sprintf("%s: the backup of %s is %s,", primary, topicOfTests, backup))
	})
}

func (w *town) server(path string) (s Server) {
	data, _, err := w.user.Get(w.ctx, path)
	if err == nil {
		w.must(json.Unmarshal(data, &s))
	}
	return s
}

func (w *town) publish(texts ...string) {
	w.Helper()
	for _, text := range texts {
		w.must(w.customer.Publish(w.ctx, topicOfTests, text))
	}
}

// read returns the first n messages that a subscriber gets.
func (w *town) read(name string, n int) (lines []string) {
	w.Helper()
	for m, err := range w.customer.Subscribe(w.ctx, topicOfTests, name) {
		w.must(err)
		if lines = append(lines, fmt.Sprintf("%d %s", m.ID, m.Text)); len(lines) == n {
			break
		}
	}
	return lines
}

// transcript is what nodes and users say. It is safe for concurrent use.
type transcript struct {
	mu   sync.Mutex // protects the field below
	text []byte
}

func (l *transcript) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// The transcript in README.md is that of this test: the primary is killed, then the new
// backup, and a subscriber has every message once.
func TestBroker_TranscriptOfREADME(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	w := newTown(t)
	publish := func(text string) {
		fmt.Fprintf(&w.log, "$ broker -publish %s %q\n", topicOfTests, text)
		w.publish(text)
	}
	subscribe := func(n int) {
		fmt.Fprintf(&w.log, "$ broker -subscribe %s -as alice\n%s\n", topicOfTests, strings.Join(w.read("alice", n), "\n"))
	}
	kill := func(id string) {
		fmt.Fprintf(&w.log, "$ kill -9 %s\n", id)
		w.nodes[id].Kill(t)
	}
	w.start("one", "two")
	w.pair("one", "two")
	w.start("three")
	publish("first")
	publish("second")
	subscribe(2)
	kill("one")
	w.pair("two", "three")
	publish("third")
	fmt.Fprintf(&w.log, "$ broker -dir one &\n")
	w.start("one")
	kill("three")
	w.pair("two", "one")
	publish("fourth")
	subscribe(2)

	page, err := os.ReadFile("README.md")
	w.must(err)
	if block := "```\n" + w.log.String() + "```\n"; !strings.Contains(string(page), block) {
		t.Errorf("README.md has not this transcript:\n%s", block)
	}
}

// A primary that is cut off from the ensemble, but neither from customers nor from its
// backup, acknowledges nothing when it has been replaced, and shows nothing new.
func TestBroker_CutOffPrimaryAcknowledgesNothing(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	w := newTown(t)
	w.start("one", "two")
	w.pair("one", "two")
	w.publish("first")
	old := w.server(primaryPath(topicOfTests))
	w.nodes["one"].Proxy.Block()
	// By its znode it has done so a moment earlier, and takes what its primary sends until it knows.
	w.until("the backup has replaced it, and knows", func() bool {
		return strings.Contains(w.log.String(), "two: is the primary of "+topicOfTests)
	})
	err := ask(w.ctx, http.MethodPost, old.Address, topicOfTests, []Message{{From: "p", Number: 1, Text: "too late"}}, nil)
	if err == nil {
		t.Error("the old primary has acknowledged a message")
	}
	w.nodes["one"].Proxy.Unblock()
	w.pair("two", "one")
	w.publish("second")
	if got := w.read("alice", 2); got[0] != "1 first" || got[1] != "2 second" {
		t.Errorf("the topic has %q", got)
	}
}

// A publisher whose primary died before it answered sends the message again, to the next
// one: it is there once.
func TestBroker_MessageSentAgainIsThereOnce(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	w := newTown(t)
	w.start("one", "two", "three")
	w.until("there is a pair", func() bool { return w.has(backupPath(topicOfTests)) })
	message := []Message{{From: "p", Number: 1, Text: "first"}}
	for range 2 {
		first := w.server(primaryPath(topicOfTests))
		for range 2 {
			w.until("it is acknowledged", func() bool {
				return ask(w.ctx, http.MethodPost, first.Address, topicOfTests, message, nil) == nil
			})
		}
		if w.nodes[first.Node] == nil {
			t.Fatalf("there is no node %s", first.Node)
		}
		w.nodes[first.Node].Kill(t)
		w.until("another is the primary", func() bool {
			now := w.server(primaryPath(topicOfTests))
			return now.Node != "" && now != first
		})
		w.start(first.Node)
	}
	w.publish("second")
	if got := w.read("alice", 2); got[0] != "1 first" || got[1] != "2 second" {
		t.Errorf("the topic has %q", got)
	}
}

// While migration is prohibited no one replaces a primary; on shutdown all nodes end.
func TestBroker_ControlZnodes(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	w := newTown(t)
	w.start("one", "two")
	w.pair("one", "two")
	_, _, err := w.user.Create(w.ctx, prohibitedPath, nil, client.Persistent)
	w.must(err)
	w.nodes["one"].Kill(t)
	w.until("the primary is gone", func() bool { return !w.has(primaryPath(topicOfTests)) })
	w.start("three") // sees all this, as does two
	_, before, err := w.user.Get(w.ctx, topicPath(topicOfTests))
	w.must(err)
	w.must(w.user.Delete(w.ctx, prohibitedPath, client.AnyVersion))
	w.pair("two", "three")
	if before.Version != 2 {
		t.Errorf("the epoch is %d while migration is prohibited, want 2 as before", before.Version)
	}

	_, _, err = w.user.Create(w.ctx, shutdownPath, nil, client.Persistent)
	w.must(err)
	w.until("all nodes have left", func() bool {
		names, _, err := w.user.Children(w.ctx, nodesPath)
		return err == nil && len(names) == 0
	})
}

// What a node says of itself is in its znode.
func TestBroker_NodesTellTheirLoad(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.start("one", "two")
	w.pair("one", "two")
	w.must(CreateTopic(w.ctx, w.user, "sport"))
	load := func(id string) (s Status) {
		data, _, err := w.user.Get(w.ctx, znode.Join(nodesPath, id))
		w.must(err)
		w.must(json.Unmarshal(data, &s))
		return s
	}
	w.until("each has two topics, and two is the backup of news", func() bool {
		one, two := load("one"), load("two")
		return one.Load == 2 && two.Load == 2 && strings.Join(two.Backup, " ") != "" && two.Backup[0] == topicOfTests
	})
}

func TestNode_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.start("one", "two")
	w.pair("one", "two")
	address := w.server(primaryPath(topicOfTests)).Address
	good := Message{From: "p", Number: 1}
	for _, c := range []struct {
		method, what string
		body         any
		want         string
	}{
		{http.MethodGet, "unknown?after=0", nil, "421"},
		{http.MethodGet, "news?after=-1", nil, "after="},
		{http.MethodPost, "news", "text", "list of messages"},
		{http.MethodPost, "news", []Message{}, "one message"},
		{http.MethodPost, "news", []Message{{From: "p"}}, "Number from 1"},
		{http.MethodPost, "news", []Message{{From: "p", Number: 1, Text: strings.Repeat("x", maxMessage+1)}}, "4096 bytes"},
		{http.MethodPut, "news?after=0", []Message{good}, "epoch="},
		{http.MethodPut, "news?after=0&epoch=0", []Message{good}, "later primary"},
		{http.MethodDelete, "news?after=0", nil, "want GET"},
	} {
		err := ask(w.ctx, c.method, address, c.what, c.body, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.method, c.what, err, c.want)
		}
	}
	if err := CreateTopic(w.ctx, w.user, "../etc"); err == nil || !strings.Contains(err.Error(), "a-z") {
		t.Errorf("a topic that leads out of the directory: %v", err)
	}
}
