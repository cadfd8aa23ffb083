// Package subtree has the operations of the command line on a znode and all below it:
// walk, delete, copy, move, export, import, compare. It uses a client and prints nothing.
//
// Only Move is atomic. Copy, Export and Diff read one state of a zk-lite server; else, if a
// subtree changes during an operation, each znode is read as it is when its turn comes. Ephemeral znodes belong to a
// session and are not written by Copy and Import. Clients cannot see that a znode
// is a container or has a time to live (ZooKeeper's DataNode.copyStat hides it), so
// the copies of such znodes are persistent ones. Sequence counters of parents start at 0
// again.
//
// Requests are pipelined, a bounded number at a time, so that there is not one round
// trip per znode. The package starts no goroutine.
package subtree

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// window is how many znodes are asked for ahead: enough to hide the round trip,
// and few enough that their data, a megabyte each at most, fits into memory.
const window = 64

// Node is a znode of a subtree.
type Node struct {
	Path     string
	Rel      string // within the subtree: "" is its root, then "a", "a/b"
	Depth    int    // 0 is the root
	Last     bool   // of its siblings
	Stat     client.Stat
	Data     []byte       // if asked for; nil for null
	ACL      []client.ACL // if asked for
	Children []string     // sorted; nil at the depth limit
}

// Ephemeral reports whether a znode belongs to a session.
func Ephemeral(s client.Stat) bool { return s.EphemeralOwner != 0 }

// Options select what Walk reads.
type Options struct {
	Data, ACL bool
	// MaxDepth is the depth below which nothing is read; 0 for no limit.
	MaxDepth int
	// Skip leaves out a znode and all below it; nil for none.
	Skip func(path string) bool
	// WholeACL, with ACL, makes it an error (ErrNoAuth) that the server hides a part of an ACL.
	WholeACL bool
}

// Walk yields the znodes of a subtree, parents before children and siblings by
// name. Znodes that are deleted meanwhile are left out. An error about one znode
// comes with its path, and the znodes below it are left out; the caller may go on. If
// there is no root, the error is ErrNoNode.
func Walk(ctx context.Context, c *client.Client, root string, o Options) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		w := &walker{ctx: ctx, c: c, root: root, o: o}
		w.stack = []*item{{node: Node{Path: root, Last: true}}}
		for len(w.stack) > 0 {
			w.ask()
			top := w.stack[len(w.stack)-1]
			w.stack = w.stack[:len(w.stack)-1]
			err := w.answer(top)
			if errors.Is(err, client.ErrNoNode) && top.node.Depth > 0 {
				continue
			}
			if !yield(top.node, err) {
				return
			}
			if err == nil {
				w.push(&top.node)
			}
			if ctx.Err() != nil {
				if err == nil {
					yield(Node{Path: root}, context.Cause(ctx))
				}
				return
			}
		}
	}
}

// item is a znode that has been found and not yet yielded.
type item struct {
	node     Node
	asked    bool
	children *client.Pending[client.ChildrenReply]
	get      *client.Pending[client.GetReply]
	acl      *client.Pending[client.ACLReply]
	exists   *client.Pending[client.ExistsReply]
}

type walker struct {
	ctx   context.Context
	c     *client.Client
	root  string
	o     Options
	stack []*item // the next one is the last
}

// ask sends the requests for the next znodes.
func (w *walker) ask() {
	for i := len(w.stack) - 1; i >= max(0, len(w.stack)-window); i-- {
		it := w.stack[i]
		if it.asked {
			continue
		}
		it.asked = true
		if w.o.Data {
			it.get = w.c.Async().Get(w.ctx, it.node.Path)
		}
		if w.o.ACL {
			it.acl = w.c.Async().GetACL(w.ctx, it.node.Path)
		}
		if w.o.MaxDepth == 0 || it.node.Depth < w.o.MaxDepth {
			it.children = w.c.Async().Children(w.ctx, it.node.Path)
		} else if !w.o.Data {
			it.exists = w.c.Async().Exists(w.ctx, it.node.Path)
		}
	}
}

// answer completes a node.
func (w *walker) answer(it *item) error {
	n := &it.node
	if it.children != nil {
		r, err := it.children.Wait(w.ctx)
		if again(err) {
			r.Children, r.Stat, err = w.c.Children(w.ctx, n.Path)
		}
		if err != nil {
			return err
		}
		slices.Sort(r.Children)
		n.Children, n.Stat = r.Children, r.Stat
	}
	if it.get != nil {
		r, err := it.get.Wait(w.ctx)
		if again(err) {
			r.Data, r.Stat, err = w.c.Get(w.ctx, n.Path)
		}
		if err != nil {
			return err
		}
		n.Data, n.Stat = r.Data, r.Stat
	}
	if it.acl != nil {
		r, err := it.acl.Wait(w.ctx)
		if again(err) {
			r.ACL, r.Stat, err = w.c.GetACL(w.ctx, n.Path)
		}
		if err != nil {
			return err
		}
		if w.o.WholeACL && masked(r.ACL) {
			return maskedError(n.Path)
		}
		n.ACL = r.ACL
	}
	if it.exists != nil {
		r, err := it.exists.Wait(w.ctx)
		if again(err) {
			r.Exists, r.Stat, err = w.c.Exists(w.ctx, n.Path)
		}
		if err == nil && !r.Exists {
			err = &client.OpError{Op: "exists", Path: n.Path, Err: client.ErrNoNode}
		}
		if err != nil {
			return err
		}
		n.Stat = r.Stat
	}
	return nil
}

// again reports whether to send a read again: the connection broke under it.
func again(err error) bool { return errors.Is(err, client.ErrConnectionLoss) }

// push puts the children of a node on the stack, the first one last.
func (w *walker) push(n *Node) {
	var last = true
	for _, name := range slices.Backward(n.Children) {
		path := znode.Join(n.Path, name)
		if w.o.Skip != nil && w.o.Skip(path) {
			continue
		}
		w.stack = append(w.stack, &item{node: Node{
			Path: path, Rel: relative(w.root, path), Depth: n.Depth + 1, Last: last,
		}})
		last = false
	}
}

// relative is the path of a znode within the subtree of root.
func relative(root, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, strings.TrimSuffix(root, "/")), "/")
}

// join is the inverse of relative.
func join(root, rel string) string {
	if rel == "" {
		return root
	}
	return znode.Join(root, rel)
}

// within reports whether path is root or below it.
func within(root, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
