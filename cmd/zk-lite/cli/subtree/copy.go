package subtree

import (
	"context"
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/client"
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
	err := w.copy(from, source, destination, recursive, unreadable)
	err = errors.Join(err, w.flush())
	return w.Count, err
}

func (w *writer) copy(
	from *client.Client, source, destination string, recursive bool, unreadable func(error) error,
) error {
	for n, err := range Walk(w.ctx, from, source, wholeZnodes) {
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
