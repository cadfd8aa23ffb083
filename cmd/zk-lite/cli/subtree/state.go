package subtree

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/zk-lite/zk-lite/client"
)

// state is where the znodes of subtrees come from: one state of a zk-lite server, else each as it is when its turn
// comes.
type state struct {
	Zxid client.Zxid // 0: not of one state

	ctx  context.Context
	c    *client.Client
	tree *client.Tree // nil: not of one state
}

// open returns the present state of one or two subtrees. The caller must close it.
func open(ctx context.Context, c *client.Client, roots ...string) (*state, error) {
	s := &state{ctx: ctx, c: c}
	tree, err := c.Tree(ctx, roots...)
	switch {
	case errors.Is(err, client.ErrUnimplemented):
		return s, nil
	case err != nil:
		return nil, err
	}
	s.tree, s.Zxid = tree, tree.Zxid
	return s, nil
}

func (s *state) close() {
	if s.tree != nil {
		s.tree.Close()
	}
}

// walk yields the znodes of one of the subtrees like Walk, without their children. Those of the system are left out.
func (s *state) walk(root string, o Options) iter.Seq2[Node, error] {
	if s.tree == nil {
		return Walk(s.ctx, s.c, root, o)
	}
	return func(yield func(Node, error) bool) {
		out := "" // the last znode with an error
		for z, err := range s.tree.Znodes(s.ctx, root) {
			if err != nil {
				yield(Node{Path: root}, err)
				return
			}
			if o.Skip != nil && o.Skip(z.Path) || out != "" && within(out, z.Path) {
				continue
			}
			n := Node{Path: z.Path, Rel: relative(root, z.Path), Stat: z.Stat, Data: z.Data, ACL: z.ACL}
			if n.Rel != "" {
				n.Depth = 1 + strings.Count(n.Rel, "/")
			}
			switch {
			case z.Hidden:
				err = &client.OpError{Op: "tree", Path: z.Path, Err: client.ErrNoAuth}
			case o.WholeACL && masked(z.ACL):
				err = maskedError(z.Path)
			}
			if err != nil {
				out = z.Path
			}
			if !yield(n, err) {
				return
			}
		}
	}
}
