package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

func TestPlan_GivesOnlyTheTasksOfTheDead(t *testing.T) {
	task := func(id, worker string) assignment { return assignment{id: id, task: Task{Worker: worker}} }
	tasks := []assignment{task("1", "a"), task("2", "dead"), task("3", ""), task("4", "a"), task("5", "b")}
	var got []string
	for _, m := range plan(tasks, []string{"a", "b", "c"}) {
		got = append(got, m.id+m.to)
	}
	if want := []string{"2c", "3b"}; !slices.Equal(got, want) {
		t.Errorf("the plan is %v, want %v", got, want)
	}
	if moves := plan(tasks, nil); moves != nil {
		t.Errorf("the plan without workers is %v", moves)
	}
}

// site is what workers fetch from: it counts, and holds up those of one worker.
type site struct {
	mu      sync.Mutex // protects the fields below
	slow    string     // this worker's fetches hang until its end
	hanging int
}

func (s *site) fetch(worker string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, url string) (string, error) {
		s.mu.Lock()
		slow := s.slow == worker
		if slow {
			s.hanging++
		}
		s.mu.Unlock()
		if slow {
			<-ctx.Done()
		}
		return "body of " + url, nil
	}
}

func (s *site) hangs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hanging > 0
}

// A worker dies with tasks in its inbox, one of them under way; a server stops;
// the master dies, and addresses come in that no master has seen. In the end each
// has one result, and nothing is left over.
func TestFetcher_EveryAddressHasOneResultWhoeverDies(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	ctx := testserver.Context(t)
	rnd := testserver.Rand(t)
	e := testserver.Start(t, 3)
	user := e.Process(t).Client
	if err := Prepare(ctx, user); err != nil {
		t.Fatal(err)
	}
	pages := &site{slow: "worker-0"}
	workers, masters := make([]*testserver.Process, 3), map[string]*testserver.Process{}
	for i := range workers {
		workers[i] = e.Process(t)
		workers[i].Go(func(ctx context.Context, c *client.Client) error {
			name := fmt.Sprintf("worker-%d", i)
			w := &Worker{Client: c, Name: name, Fetch: pages.fetch(name), Log: t.Output()}
			return w.Run(ctx)
		})
	}
	for _, name := range []string{"master-0", "master-1"} {
		masters[name] = e.Process(t)
		masters[name].Go(func(ctx context.Context, c *client.Client) error {
			return (&Master{Client: c, Name: name, Log: t.Output()}).Run(ctx)
		})
	}
	wait.Until(t, "all workers are there", func() bool {
		names, _, _ := user.Children(ctx, workersPath) // not there at first
		return len(names) == len(workers)
	})

	if err := Submit(ctx, user, addresses(0, 20)...); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "a worker is in the middle of it", pages.hangs)
	stopped := rnd.IntN(3)
	workers[0].Kill(t)
	e.Stop(stopped)
	leader, err := recipes.NewElection(user, masterPath).Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	masters[string(leader.Data)].Kill(t)
	if err := Submit(ctx, user, addresses(20, 30)...); err != nil {
		t.Fatal(err)
	}
	waitForResults(ctx, t, user, 30)
}

// One who was master cannot assign anything, although it does not know yet.
func TestMaster_Assign_NothingAfterItsTerm(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	ctx := testserver.Context(t)
	e := testserver.Start(t, 1)
	c := e.Process(t).Client
	if err := Prepare(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsurePath(ctx, inboxPath+"/w", client.Persistent); err != nil {
		t.Fatal(err)
	}
	term, err := recipes.NewElection(c, masterPath).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := Submit(ctx, c, "a", "b"); err != nil {
		t.Fatal(err)
	}
	ids, _, err := c.Children(ctx, tasksPath)
	if err != nil {
		t.Fatal(err)
	}
	m := &Master{Client: c, Name: "m", Log: t.Output()}
	for i, want := range []int{1, 1} { // the second after the term
		if err := m.assign(ctx, term, move{assignment{id: ids[i]}, "w"}); err != nil {
			t.Fatal(err)
		}
		got, _, err := c.Children(ctx, inboxPath+"/w")
		if err != nil || len(got) != want {
			t.Errorf("the inbox has %v, %v; want %d", got, err, want)
		}
		_ = term.Resign(ctx) // again the second time
	}
}

func addresses(from, to int) (urls []string) {
	for i := from; i < to; i++ {
		urls = append(urls, fmt.Sprintf("http://example.org/%d", i))
	}
	return urls
}

// waitForResults waits until there are n results, and checks them.
func waitForResults(ctx context.Context, t *testing.T, c *client.Client, n int) {
	t.Helper()
	wait.Until(t, "all results are there and the work is done", func() bool {
		if err := c.Sync(ctx, root); err != nil {
			return false
		}
		results, _, _ := c.Children(ctx, resultsPath)
		tasks, _, _ := c.Children(ctx, tasksPath)
		return len(results) >= n && len(tasks) == 0
	})
	results, err := Results(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, r := range results {
		if r.Body != "body of "+r.URL || r.Error != "" {
			t.Errorf("a result is %+v", r)
		}
		found[r.URL]++
	}
	for _, url := range addresses(0, n) {
		if found[url] != 1 {
			t.Errorf("%s has %d results", url, found[url])
		}
	}
	inboxes, _, err := c.Children(ctx, inboxPath)
	if err != nil || len(found) != n {
		t.Errorf("%d addresses have results, want %d (%v)", len(found), n, err)
	}
	for _, name := range inboxes {
		if left, _, err := c.Children(ctx, znode.Join(inboxPath, name)); err != nil || len(left) > 0 {
			t.Errorf("the inbox of %s has %v, %v", name, left, err)
		}
	}
}
