package ensemble

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

// candidate is one process that runs for election.
type candidate struct {
	client *client.Client
	tap    *tap
}

// stand waits until the candidate leads and returns a channel that is closed when it no longer
// does.
type stand func(ctx context.Context, c *client.Client, path string) (<-chan struct{}, error)

// standInLine is the recipe as applications use it: each watches the next lower
// znode.
func standInLine(ctx context.Context, c *client.Client, path string) (<-chan struct{}, error) {
	term, err := recipes.NewElection(c, path).Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return term.Done(), nil
}

// standInHerd is the form that the recipe warns of: all candidates watch the leader. It is here
// to be counted; package recipes has no use for it.
func standInHerd(ctx context.Context, c *client.Client, dir string) (<-chan struct{}, error) {
	if err := c.EnsurePath(ctx, dir, client.Container); err != nil {
		return nil, err
	}
	mine, _, err := c.CreateProtected(ctx, znode.Join(dir, "latch-"), nil, client.EphemeralSequential)
	if err != nil {
		return nil, err
	}
	lost := c.Session().Done()
	for {
		names, _, err := c.Children(ctx, dir)
		if err != nil {
			return nil, err
		}
		leader, err := lowest(names)
		if err != nil {
			return nil, err
		}
		if leader == znode.Base(mine) {
			return lost, nil
		}
		_, _, w, err := c.GetW(ctx, znode.Join(dir, leader))
		if errors.Is(err, client.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-w.C():
		case <-lost:
			return nil, client.ErrSessionExpired
		case <-ctx.Done():
			w.Cancel()
			return nil, ctx.Err()
		}
	}
}

// lowest returns the name with the lowest sequence number. The directory is new,
// so the numbers have ten digits and do not wrap.
func lowest(names []string) (string, error) {
	best := ""
	number := func(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }
	for _, n := range names {
		if best == "" || number(n) < number(best) {
			best = n
		}
	}
	if best == "" {
		return "", fmt.Errorf("the election has lost its znodes: %w", client.ErrNoNode)
	}
	return best, nil
}
