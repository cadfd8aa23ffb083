package subtree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of Move, which is one transaction and so one request: the servers
// refuse requests of more than a megabyte (jute.maxbuffer), of which a part goes
// for paths and ACLs.
const (
	MaxMoveNodes = 1000
	MaxMoveBytes = 900 << 10
)

// moveRounds is how often Move starts again because the subtree has changed
// between reading it and the transaction.
const moveRounds = 5

// ErrNotMovable reports that a subtree cannot be moved in one transaction. Nothing
// has happened.
var ErrNotMovable = errors.New("cannot be moved")

// Move moves a subtree, in one transaction: it is at one of the two places at any time.
// Versions and times are new, as those of every new znode. With parents, missing znodes
// above destination are created before the transaction.
//
// Errors: ErrNotMovable (too large, or with ephemerals), ErrNoNode,
// ErrNodeExists, ErrOutcomeUnknown; ErrBadVersion or ErrNotEmpty if the source
// keeps changing.
func Move(
	ctx context.Context, c *client.Client, source, destination string, parents bool,
) (int, error) {
	switch {
	case systemPath(source) || source == "/":
		return 0, fmt.Errorf("%s %w", source, ErrNotMovable)
	case within(source, destination):
		return 0, fmt.Errorf("%s lies within %s, which therefore %w", destination, source, ErrNotMovable)
	}
	for round := 1; ; round++ {
		n, err := moveOnce(ctx, c, source, destination, parents)
		changed := errors.Is(err, client.ErrBadVersion) || errors.Is(err, client.ErrNotEmpty)
		if !changed || round == moveRounds {
			return n, err
		}
	}
}

func moveOnce(
	ctx context.Context, c *client.Client, source, destination string, parents bool,
) (int, error) {
	var nodes []Node
	size := 0
	for n, err := range Walk(ctx, c, source, Options{Data: true, ACL: true, WholeACL: true}) {
		if err != nil {
			return 0, err
		}
		if Ephemeral(n.Stat) {
			return 0, fmt.Errorf("%s belongs to a session (ephemeral), so %s %w",
				n.Path, source, ErrNotMovable)
		}
		nodes = append(nodes, n)
		size += len(n.Data) + 2*len(n.Path) + len(destination)
		if len(nodes) > MaxMoveNodes || size > MaxMoveBytes {
			return 0, fmt.Errorf("%s has more than %d znodes or %d KiB, and so %w in one transaction; "+
				"use `cp -R` and `deleteall`, which are not atomic",
				source, MaxMoveNodes, MaxMoveBytes>>10, ErrNotMovable)
		}
	}
	if parents {
		if err := c.EnsurePath(ctx, znode.Parent(destination), client.Persistent); err != nil {
			return 0, err
		}
	}
	m := c.Multi()
	for i := range nodes {
		r := record(&nodes[i], join(destination, nodes[i].Rel))
		m.Create(r.Path, r.Data, client.Persistent, r.ACL...)
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		m.Delete(nodes[i].Path, nodes[i].Stat.Version)
	}
	return len(nodes), m.Commit(ctx)
}
