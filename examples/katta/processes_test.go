package main

import (
	"context"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

func TestMain(m *testing.M) {
	os.Exit(testserver.Main(m, map[string]testserver.Role{
		"node": func(ctx context.Context, c *client.Client, name, _ string) error {
			return (&Node{Client: c, Name: name, Load: Load, Log: os.Stdout}).Run(ctx)
		},
		"master": func(ctx context.Context, c *client.Client, name, _ string) error {
			return (&Master{Client: c, Name: name, Log: os.Stdout}).Run(ctx)
		},
	}))
}

// Nodes, masters and servers are processes, and are killed and paused. Every query has the
// answer of the whole index, also in between; in the end all shards are at as many live nodes
// as they should be, and a live master is in office.
func TestKatta_ProcessesKilled(t *testing.T) {
	tier.Seconds(t)
	t.Parallel() // it mostly waits for sessions to expire
	p := testserver.StartProcesses(t)
	nodes, masters := map[string]*testserver.Child{}, map[string]*testserver.Child{}
	alive := map[string]bool{}
	start := func() {
		n := p.Run("node", "")
		nodes[n.Name], alive[n.Name] = n, true
	}
	if err := Deploy(p.Context, p.Client, ShardNames()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		start()
	}
	for range 2 {
		m := p.Run("master", "")
		masters[m.Name] = m
	}
	searcher, err := NewSearcher(p.Context, p.Client)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	waitForReplicas(p.Context, t, searcher, alive)
	election := recipes.NewElection(p.Client, masterPath)
	for round := range 2 {
		for name, n := range nodes {
			n.Kill()
			delete(nodes, name)
			delete(alive, name)
			break
		}
		check(p.Context, t, searcher) // by the other replica
		if leader, err := election.Leader(p.Context); err == nil && round == 0 {
			masters[string(leader.Data)].Kill()
			delete(masters, string(leader.Data))
			m := p.Run("master", "")
			masters[m.Name] = m
			p.RestartServer()
		} else {
			p.PauseServer()
		}
		check(p.Context, t, searcher)
		start()
		waitForReplicas(p.Context, t, searcher, alive)
	}
	check(p.Context, t, searcher)
	wait.Until(t, "a master that lives is in office", func() bool {
		leader, err := election.Leader(p.Context)
		return err == nil && masters[string(leader.Data)] != nil
	})
}
