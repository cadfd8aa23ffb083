package subtree

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/client"
)

// Difference is what one znode has and its counterpart has not.
type Difference struct {
	Rel   string // within both subtrees
	Left  *Node  // nil if only the right side has it
	Right *Node  // nil if only the left side has it
	// If both have it: what differs.
	Data, ACL, Ephemeral bool
}

// Diff yields the differences of two subtrees, by path. Versions, times and
// sessions are no differences. An error about one znode comes with its path within the
// subtrees (Rel); the caller may go on without it and all below it, on both sides.
func Diff(
	ctx context.Context, left *client.Client, leftRoot string,
	right *client.Client, rightRoot string,
) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		for _, root := range []string{leftRoot, rightRoot} {
			if systemPath(root) {
				yield(Difference{}, systemError(root))
				return
			}
		}
		o := Options{Data: true, ACL: true, Skip: systemPath}
		l, r := newSide(ctx, left, leftRoot, o), newSide(ctx, right, rightRoot, o)
		defer l.stop()
		defer r.stop()
		for l.more || r.more {
			first, other := l, r
			if order(l, r) > 0 || l.err == nil && order(l, r) == 0 {
				first, other = r, l
			}
			if first.err != nil {
				rel := first.node.Rel
				if !yield(Difference{Rel: rel}, first.err) {
					return
				}
				first.leave(rel)
				other.leave(rel)
				continue
			}
			d, same := meet(l, r)
			if !same && !yield(d, nil) {
				return
			}
		}
	}
}

// side is one of the two walks, at its current znode.
type side struct {
	next func() (Node, error, bool)
	stop func()
	node Node
	err  error
	more bool
}

func newSide(ctx context.Context, c *client.Client, root string, o Options) *side {
	next, stop := iter.Pull2(Walk(ctx, c, root, o))
	s := &side{next: next, stop: stop}
	s.advance()
	return s
}

func (s *side) advance() { s.node, s.err, s.more = s.next() }

// leave goes on behind a znode and all below it, if they come next.
func (s *side) leave(rel string) {
	for s.more && within("/"+rel, "/"+s.node.Rel) {
		s.advance()
	}
}

// order tells which of the current znodes comes first; a side that has ended comes last.
func order(l, r *side) int {
	switch {
	case !l.more:
		return 1
	case !r.more:
		return -1
	}
	return comparePaths(l.node.Rel, r.node.Rel)
}

// meet compares the current znodes and goes on with the side that is behind.
func meet(l, r *side) (d Difference, same bool) {
	a, b := l.node, r.node
	switch order := order(l, r); {
	case order < 0:
		l.advance()
		return Difference{Rel: a.Rel, Left: &a}, false
	case order > 0:
		r.advance()
		return Difference{Rel: b.Rel, Right: &b}, false
	}
	l.advance()
	r.advance()
	d = Difference{
		Rel: a.Rel, Left: &a, Right: &b,
		Data:      !bytes.Equal(a.Data, b.Data) || (a.Data == nil) != (b.Data == nil),
		ACL:       !slices.Equal(a.ACL, b.ACL),
		Ephemeral: Ephemeral(a.Stat) != Ephemeral(b.Stat),
	}
	return d, !d.Data && !d.ACL && !d.Ephemeral
}

// comparePaths is the order of Walk: a parent comes before its children and
// these before its next sibling, so the separator comes before every character.
func comparePaths(a, b string) int {
	if a == "" || b == "" {
		return len(a) - len(b)
	}
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
