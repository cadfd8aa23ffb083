package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/examples/internal/testserver"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

func TestPlan_ReplacesOnlyTheDead(t *testing.T) {
	for _, test := range []struct {
		shards, alive, want string // shard:node,node ...
	}{
		{"s: t: u:", "a b c", "s:a,b t:a,c u:b,c"},
		{"s:a,b t:b,c", "a b c", ""},
		{"s:a,dead t:b,c u:dead,gone", "a b c", "s:a,b u:a,c"},
		{"s:a,b", "a", "s:a"},
		{"s:a t:a", "a b", "s:a,b t:a,b"},
		{"s:a,b", "", ""},
	} {
		var shards []shard
		for _, word := range strings.Fields(test.shards) {
			name, nodes, _ := strings.Cut(word, ":")
			list := strings.FieldsFunc(nodes, func(r rune) bool { return r == ',' })
			shards = append(shards, shard{name: name, assigned: Assignment{list}})
		}
		var got []string
		for _, s := range plan(shards, strings.Fields(test.alive)) {
			got = append(got, s.name+":"+strings.Join(s.assigned.Nodes, ","))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("the plan for %q with %q is %q, want %q", test.shards, test.alive, got, test.want)
		}
	}
}

func TestIndex_Search_BestFirst(t *testing.T) {
	x := NewIndex([]Document{{"1", "a lock"}, {"2", "a Lock, and a lock"}, {"3", "a key"}, {"4", "nothing"}})
	var got []string
	for _, h := range x.Search("LOCK key") {
		got = append(got, fmt.Sprint(h.ID, "*", h.Score))
	}
	if want := []string{"2*2", "1*1", "3*1"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// Two of four nodes die one after the other, with them the master, and a server. Every query
// has the answer of the whole index, also in between, and in the end all shards are at as many
// nodes as they should be.
func TestKatta_QueriesAreCompleteWhoeverDies(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	ctx := testserver.Context(t)
	rnd := testserver.Rand(t)
	e := testserver.Start(t, 3)
	user := e.Process(t).Client
	if err := Deploy(ctx, user, ShardNames()); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	processes := map[string]*testserver.Process{}
	for i := range 4 {
		name, p := fmt.Sprintf("node-%d", i), e.Process(t)
		names[name], processes[name] = true, p
		p.Go(func(ctx context.Context, c *client.Client) error {
			return (&Node{Client: c, Name: name, Load: Load, Log: t.Output()}).Run(ctx)
		})
		p.Go(func(ctx context.Context, c *client.Client) error {
			return (&Master{Client: c, Name: name, Log: t.Output()}).Run(ctx)
		})
	}
	searcher, err := NewSearcher(ctx, user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(searcher.Close)
	waitForReplicas(ctx, t, searcher, names)
	check(ctx, t, searcher)

	master, err := recipes.NewElection(user, masterPath).Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kill := func(name string) {
		processes[name].Kill(t)
		delete(names, name)
		check(ctx, t, searcher) // by the other replica
		waitForReplicas(ctx, t, searcher, names)
		check(ctx, t, searcher)
	}
	kill(string(master.Data))
	e.Stop(rnd.IntN(3))
	check(ctx, t, searcher)
	for name := range names {
		kill(name)
		break
	}
}

// A node that does not answer, and whose session has not expired yet, costs no
// answer: the other replica gives it.
func TestSearcher_Search_AsksTheOtherReplica(t *testing.T) {
	t.Parallel()
	ctx := testserver.Context(t)
	e := testserver.Start(t, 1)
	user := e.Process(t).Client
	if err := Deploy(ctx, user, ShardNames()); err != nil {
		t.Fatal(err)
	}
	p := e.Process(t)
	p.Go(func(ctx context.Context, c *client.Client) error {
		return (&Node{Client: c, Name: "node", Load: Load, Log: t.Output()}).Run(ctx)
	})
	p.Go(func(ctx context.Context, c *client.Client) error {
		return (&Master{Client: c, Name: "node", Log: t.Output()}).Run(ctx)
	})
	for _, shard := range ShardNames() {
		group := recipes.NewGroup(user, znode.Join(servingPath, shard))
		if _, err := group.Join(ctx, "silent", []byte("127.0.0.1:1")); err != nil {
			t.Fatal(err)
		}
	}
	searcher, err := NewSearcher(ctx, user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(searcher.Close)
	for range 10 { // in random order: some begin with the silent one
		check(ctx, t, searcher)
	}
}

// waitForReplicas waits until each shard is served by as many nodes as it should
// be, all of them alive.
func waitForReplicas(ctx context.Context, t *testing.T, s *Searcher, alive map[string]bool) {
	t.Helper()
	wait.Until(t, "all shards are where they are to be", func() bool {
		for _, shard := range ShardNames() {
			nodes := s.serving.Children(znode.Join(servingPath, shard))
			if len(nodes) != replicas || slices.ContainsFunc(nodes, func(n string) bool { return !alive[n] }) {
				return false
			}
		}
		return true
	})
}

// check compares the answer of the shards with that of one index of everything.
func check(ctx context.Context, t *testing.T, s *Searcher) {
	t.Helper()
	var all []Document
	for _, shard := range ShardNames() {
		documents, err := Load(shard)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, documents...)
	}
	const query = "a token for one client"
	want := NewIndex(all).Search(query)
	got, err := s.Search(ctx, query)
	if err != nil || !slices.Equal(got, want) || len(want) == 0 {
		t.Fatalf("found %v, %v;\nwant %v", got, err, want)
	}
}

// One who was master cannot assign anything, although it does not know yet.
func TestMaster_Assign_NothingAfterItsTerm(t *testing.T) {
	t.Parallel() // it mostly waits for sessions to expire
	ctx := testserver.Context(t)
	c := testserver.Start(t, 1).Process(t).Client
	if err := Deploy(ctx, c, []string{"s"}); err != nil {
		t.Fatal(err)
	}
	term, err := recipes.NewElection(c, masterPath).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := &Master{Client: c, Name: "m", Log: t.Output()}
	for i, want := range []string{`{"Nodes":["a"]}`, `{"Nodes":["a"]}`} { // the second after the term
		s := shard{"s", Assignment{[]string{string(rune('a' + i))}}, client.Version(i)}
		if err := m.assign(ctx, term, s); err != nil {
			t.Fatal(err)
		}
		got, _, err := c.Get(ctx, znode.Join(shardsPath, "s"))
		if err != nil || string(got) != want {
			t.Errorf("the shard has %s, %v; want %s", got, err, want)
		}
		_ = term.Resign(ctx) // again the second time
	}
}
