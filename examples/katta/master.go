package main

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// Run stands for election, and leads when elected, until ctx ends.
func (m *Master) Run(ctx context.Context) error {
	election := recipes.NewElection(m.Client, masterPath, recipes.WithData([]byte(m.Name)))
	return election.Run(ctx, m.lead)
}

// lead keeps every shard assigned to nodes that live, until ctx ends because the
// term does.
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

// assign writes an assignment unless the term has ended, or the shard is not any
// more what the cache has shown. That is no error: the cache will show it.
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

// follow calls do whenever something has changed below a path, and again after a
// connection or session was lost on the way, until ctx ends.
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
