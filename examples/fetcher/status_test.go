package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// transcript is what processes and clients say. It is safe for concurrent use.
type transcript struct {
	mu   sync.Mutex // protects the fields below
	text []byte
	ill  string // this worker cannot reach the site
}

func (l *transcript) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *transcript) fetch(worker, url string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ill == worker {
		return "", errors.New("no route to host")
	}
	return "the page of " + url, nil
}

func (l *transcript) setIll(worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ill = worker
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return regexp.MustCompile(`, token 0x[0-9a-f]+`).ReplaceAllString(string(l.text), "")
}

// The transcript in README.md is that of this test: workers follow their master's
// configuration, and a client finds a healthy one, no matter which fails.
func TestFetcher_TranscriptOfREADME(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	ctx := testserver.Context(t)
	e := testserver.Start(t, 1)
	user := e.Process(t).Client
	if err := Prepare(ctx, user); err != nil {
		t.Fatal(err)
	}
	log, processes := &transcript{}, map[string]*testserver.Process{}
	status := func(name string, want func(Status) bool) {
		t.Helper()
		wait.Until(t, name+" has the status", func() bool {
			data, _, err := user.Get(ctx, znode.Join(workersPath, name))
			s, bad := decode[Status](data)
			return err == nil && bad == nil && want(s)
		})
	}
	worker := func(name string) {
		processes[name] = e.Process(t)
		processes[name].Go(func(ctx context.Context, c *client.Client) error {
			w := &Worker{Client: c, Name: name, CheckEvery: 20 * time.Millisecond, Log: log}
			w.Fetch = func(_ context.Context, url string) (string, error) { return log.fetch(name, url) }
			return w.Run(ctx)
		})
		status(name, func(s Status) bool { return s.Healthy })
	}
	master := func(name string, maxBody int) {
		processes[name] = e.Process(t)
		processes[name].Go(func(ctx context.Context, c *client.Client) error {
			config := &Config{Probe: "http://site/probe", MaxBody: maxBody}
			return (&Master{Client: c, Name: name, Config: config, Log: log}).Run(ctx)
		})
	}
	configured := func(maxBody int) func(Status) bool {
		return func(s Status) bool { return s.Config.MaxBody == maxBody && s.Config.Probe != "" }
	}
	get := func() {
		t.Helper()
		name, body, err := Get(ctx, user, "http://site/")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(log, "$ fetcher -get http://site/\n%s: %s\n", name, body)
	}
	kill := func(name string) {
		fmt.Fprintf(log, "$ kill -9 %s\n", name)
		processes[name].Kill(t)
	}

	worker("a")
	worker("b")
	master("m", 24)
	status("a", configured(24))
	status("b", configured(24))
	master("n", 8)
	get()
	log.setIll("a")
	status("a", func(s Status) bool { return !s.Healthy && strings.Contains(s.Why, "no route") })
	get()
	kill("m")
	status("b", configured(8))
	get()
	log.setIll("")
	status("a", func(s Status) bool { return s.Healthy })
	kill("b")
	get()

	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if block := "```\n" + log.String() + "```\n"; !strings.Contains(string(page), block) {
		t.Errorf("README.md has not this transcript:\n%s", block)
	}
}

func TestGet_SaysWhyThereIsNoPage(t *testing.T) {
	t.Parallel()
	ctx := testserver.Context(t)
	e := testserver.Start(t, 1)
	user := e.Process(t).Client
	if _, _, err := Get(ctx, user, "http://site/"); err == nil || !strings.Contains(err.Error(), "no worker is healthy") {
		t.Errorf("without a worker: %v", err)
	}
	e.Process(t).Go(func(ctx context.Context, c *client.Client) error {
		w := &Worker{Client: c, Name: "a", Log: t.Output()}
		w.Fetch = func(context.Context, string) (string, error) { return "", errors.New("no route to host") }
		return w.Run(ctx)
	})
	wait.Until(t, "the worker is there", func() bool {
		names, _, err := user.Children(ctx, workersPath)
		return err == nil && len(names) == 1
	})
	if _, _, err := Get(ctx, user, "http://site/"); err == nil || !strings.Contains(err.Error(), "worker a: 502") ||
		!strings.Contains(err.Error(), "no route to host") {
		t.Errorf("with a worker that fails: %v", err)
	}
}

// A master gives tasks to healthy workers only.
func TestMaster_AssignsToHealthyWorkers(t *testing.T) {
	t.Parallel()
	ctx := testserver.Context(t)
	c := testserver.Start(t, 1).Process(t).Client
	if err := Prepare(ctx, c); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Status{"ill": {}, "well": {Healthy: true}} {
		for _, z := range []struct {
			path string
			data []byte
		}{{znode.Join(inboxPath, name), nil}, {znode.Join(workersPath, name), encode(s)}} {
			if err := c.EnsurePath(ctx, z.path, client.Persistent); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Set(ctx, z.path, z.data, client.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Submit(ctx, c, addresses(0, 4)...); err != nil {
		t.Fatal(err)
	}
	work, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- (&Master{Client: c, Name: "m", Log: t.Output()}).Run(work) }()
	wait.Until(t, "the healthy one has all tasks", func() bool {
		well, _, err := c.Children(ctx, znode.Join(inboxPath, "well"))
		return err == nil && len(well) == 4
	})
	cancel()
	<-ended
	if left, _, err := c.Children(ctx, znode.Join(inboxPath, "ill")); err != nil || len(left) > 0 {
		t.Errorf("the one that is not healthy has %v, %v", left, err)
	}
}
