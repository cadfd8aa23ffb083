package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// Master assigns shards to nodes, while it is elected.
type Master struct {
	Client *client.Client
	Name   string
	Log    io.Writer // what happens, for people
}

// Run is a candidate in the election, and leads when elected, until ctx ends.
func (m *Master) Run(ctx context.Context) error {
	election := recipes.NewElection(m.Client, masterPath, recipes.WithData([]byte(m.Name)))
	return election.Run(ctx, m.lead)
}

// lead keeps every shard assigned to live nodes, until ctx ends with the term.
func (m *Master) lead(ctx context.Context, term *recipes.Term) error {
	fmt.Fprintf(m.Log, "%s: is the master, token %#x\n", m.Name, term.FencingToken())
	return follow(ctx, m.Client, clusterPath, func(cache *client.Cache) error {
		shards, err := shardsOf(cache)
		if err != nil {
			return err
		}
		for _, s := range plan(shards, cache.Children(nodesPath)) {
			if err := m.assign(ctx, term, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// assign writes an assignment unless the term has ended, or the shard differs
// from the cache. That is not an error: the cache will show it.
func (m *Master) assign(ctx context.Context, term *recipes.Term, s shard) error {
	multi := m.Client.Multi()
	multi.Check(term.Path(), client.AnyVersion)
	multi.Set(znode.Join(shardsPath, s.name), encode(s.assigned), s.version)
	err := multi.Commit(ctx)
	if errors.Is(err, client.ErrBadVersion) || errors.Is(err, client.ErrNoNode) {
		return nil
	}
	if err == nil {
		fmt.Fprintf(m.Log, "%s: shard %s is for %v\n", m.Name, s.name, s.assigned.Nodes)
	}
	return err
}

// follow calls do whenever something has changed below a path, and again after
// do has lost its connection or session, until ctx ends.
func follow(
	ctx context.Context, c *client.Client, path string, do func(*client.Cache) error,
) error {
	cache, err := client.NewCache(ctx, c, path)
	if err != nil {
		return err
	}
	defer cache.Close()
	for {
		changed := cache.Changed()
		if cache.Err() != nil {
			return cache.Err()
		}
		err := do(cache)
		passing := errors.Is(err, client.ErrConnectionLoss) ||
			errors.Is(err, client.ErrOutcomeUnknown) || errors.Is(err, client.ErrSessionExpired)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case passing:
			continue
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// The znodes of the index; see the package's documentation.
const (
	root        = "/examples/katta"
	masterPath  = root + "/master"
	clusterPath = root + "/cluster"
	nodesPath   = clusterPath + "/nodes"
	shardsPath  = clusterPath + "/shards"
	servingPath = root + "/serving"
)

// replicas is the number of nodes for each shard: one may die.
const replicas = 2

// Assignment is the data of a shard's znode: the nodes that must have it.
type Assignment struct{ Nodes []string }

// Deploy adds shards to the index. It does not change existing ones.
func Deploy(ctx context.Context, c *client.Client, shards []string) error {
	for _, path := range []string{shardsPath, servingPath} {
		if err := c.EnsurePath(ctx, path, client.Persistent); err != nil {
			return err
		}
	}
	for _, shard := range shards {
		_, _, err := c.Create(ctx, znode.Join(shardsPath, shard), encode(Assignment{}),
			client.Persistent)
		if err != nil && !errors.Is(err, client.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// shard is a shard as in its znode.
type shard struct {
	name     string
	assigned Assignment
	version  client.Version
}

// shardsOf returns the shards that a cache of the cluster shows.
func shardsOf(cache *client.Cache) (shards []shard, err error) {
	for _, name := range cache.Children(shardsPath) {
		node, ok := cache.Get(znode.Join(shardsPath, name))
		if !ok {
			continue // deleted since
		}
		s := shard{name: name, version: node.Stat.Version}
		if err := json.Unmarshal(node.Data, &s.assigned); err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// plan returns the shards whose nodes must change, with the new nodes: live ones
// stay, and those with the fewest shards replace the others.
func plan(shards []shard, alive []string) []shard {
	load := map[string]int{}
	for _, s := range shards {
		for _, node := range s.assigned.Nodes {
			load[node]++
		}
	}
	var changed []shard
	for _, s := range shards {
		var nodes, spare []string
		for _, node := range alive {
			if slices.Contains(s.assigned.Nodes, node) {
				nodes = append(nodes, node)
			} else {
				spare = append(spare, node)
			}
		}
		slices.SortStableFunc(spare, func(a, b string) int { return cmp.Compare(load[a], load[b]) })
		if missing := replicas - len(nodes); missing > 0 {
			for _, node := range spare[:min(missing, len(spare))] {
				load[node]++
				nodes = append(nodes, node)
			}
		}
		slices.Sort(nodes)
		if !slices.Equal(nodes, s.assigned.Nodes) && len(nodes) > 0 {
			s.assigned = Assignment{nodes}
			changed = append(changed, s)
		}
	}
	return changed
}

func encode(a Assignment) []byte {
	data, err := json.Marshal(a)
	if err != nil {
		panic(err) // lists of strings can be encoded
	}
	return data
}
