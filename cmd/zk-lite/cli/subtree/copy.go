package subtree

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// Copy writes a subtree of one client at another place, which may be another
// ensemble's. Ephemerals are left out, and counted. The error of a znode below the
// source that cannot be read goes to unreadable: if that returns nil, it is left out
// with all below it.
//
// Errors: ErrNoNode if there is no source, ErrNodeExists (Refuse); one if the
// destination lies in the source, or either belongs to the servers.
func Copy(
	ctx context.Context, from *client.Client, source string,
	to *client.Client, destination string, recursive bool, existing Existing, step func(), unreadable func(error) error,
) (Count, error) {
	for _, root := range []string{source, destination} {
		if systemPath(root) {
			return Count{}, systemError(root)
		}
	}
	if from == to && recursive && within(source, destination) {
		return Count{}, fmt.Errorf("%s lies within %s: the copy would never end", destination, source)
	}
	w := &writer{ctx: ctx, c: to, existing: existing, step: step}
	znodes := Walk(ctx, from, source, wholeZnodes)
	if recursive {
		s, err := open(ctx, from, source)
		if err != nil {
			return w.Count, err
		}
		defer s.close()
		w.Zxid, znodes = s.Zxid, s.walk(source, wholeZnodes)
	}
	err := w.copy(znodes, destination, recursive, unreadable)
	err = errors.Join(err, w.flush())
	return w.Count, err
}

func (w *writer) copy(
	znodes iter.Seq2[Node, error], destination string, recursive bool, unreadable func(error) error,
) error {
	for n, err := range znodes {
		if n.Depth > 0 && !recursive {
			return nil
		}
		if err != nil && n.Depth > 0 {
			if err = unreadable(err); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := w.put(record(&n, join(destination, n.Rel))); err != nil {
			return err
		}
	}
	return nil
}

// wholeZnodes reads what it takes to write znodes elsewhere.
var wholeZnodes = Options{Data: true, ACL: true, WholeACL: true, Skip: systemPath}

// record is what it takes to write a znode at another path.
func record(n *Node, path string) Record {
	return Record{Path: path, Data: n.Data, ACL: n.ACL, Ephemeral: Ephemeral(n.Stat)}
}

// systemPath reports whether a path belongs to the servers themselves. Below a
// chroot it does not; there, a znode of that name is left out, too.
func systemPath(path string) bool { return within("/zookeeper", path) }

func systemError(path string) error {
	return fmt.Errorf("%s belongs to the servers: what is in /zookeeper is not copied, exported or compared", path)
}

func maskedError(path string) error {
	return fmt.Errorf("%s: the server hides digests of its ACL, which would be lost; "+
		"prove an identity that has the permission ADMIN: %w", path, client.ErrNoAuth)
}

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

// deleteRounds is how often Delete starts again because another client has created
// znodes under its hands.
const deleteRounds = 5

// MaxDeleteWindow is how many deletions are under way at a time, at most.
const MaxDeleteWindow = 512

// Delete deletes a znode and all below it, and returns how many there were.
// window bounds how many deletions are under way at a time, within MaxDeleteWindow.
// step is called after each. If others create znodes in the subtree meanwhile,
// these are deleted, too, as far as that succeeds within a few rounds.
//
// Errors: ErrNoNode if there is no root; those of a deletion.
func Delete(
	ctx context.Context, c *client.Client, root string, window int, step func(),
) (int, error) {
	window = min(max(window, 1), MaxDeleteWindow)
	total := 0
	for round := 1; ; round++ {
		n, err := deleteOnce(ctx, c, root, window, step)
		total += n
		lost := errors.Is(err, client.ErrConnectionLoss) && ctx.Err() == nil
		switch {
		case round > 1 && errors.Is(err, client.ErrNoNode):
			return total, nil
		case err == nil || round == deleteRounds || !lost && !errors.Is(err, client.ErrNotEmpty):
			return total, err
		}
	}
}

func deleteOnce(
	ctx context.Context, c *client.Client, root string, window int, step func(),
) (int, error) {
	var paths []string
	for node, err := range Walk(ctx, c, root, Options{}) {
		if err != nil {
			return 0, fmt.Errorf("listing what to delete: %w", err)
		}
		paths = append(paths, node.Path)
	}
	// One client's requests take effect in their order, so children that are
	// asked for first are gone when their parent's turn comes.
	n := 0
	var pending []*client.Pending[struct{}]
	drain := func(keep int) error {
		for len(pending) > keep {
			_, err := pending[0].Wait(ctx)
			pending = pending[1:]
			if err != nil && !errors.Is(err, client.ErrNoNode) {
				return err
			}
			n++
			step()
		}
		return nil
	}
	for i := len(paths) - 1; i >= 0; i-- {
		if err := drain(window - 1); err != nil {
			return n, err
		}
		pending = append(pending, c.Async().Delete(ctx, paths[i], client.AnyVersion))
	}
	return n, drain(0)
}
