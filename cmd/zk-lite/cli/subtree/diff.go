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
// subtrees (Rel); the caller may go on without it and all below it, on both sides. Before the first, states is called
// with the zxids of the states that are compared: one of two subtrees of one client; 0 is none.
func Diff(
	ctx context.Context, left *client.Client, leftRoot string,
	right *client.Client, rightRoot string, states func(left, right client.Zxid),
) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		for _, root := range []string{leftRoot, rightRoot} {
			if systemPath(root) {
				yield(Difference{}, systemError(root))
				return
			}
		}
		o := Options{Data: true, ACL: true, Skip: systemPath}
		of, err := openBoth(ctx, left, leftRoot, right, rightRoot)
		if err != nil {
			yield(Difference{}, err)
			return
		}
		defer of[0].close()
		defer of[1].close()
		states(of[0].Zxid, of[1].Zxid)
		l, r := newSide(of[0], leftRoot, o), newSide(of[1], rightRoot, o)
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

// openBoth opens the states of two subtrees: the same if it is one client.
func openBoth(
	ctx context.Context, left *client.Client, leftRoot string, right *client.Client, rightRoot string,
) (of [2]*state, err error) {
	if left == right {
		of[0], err = open(ctx, left, leftRoot, rightRoot)
		of[1] = of[0]
		return of, err
	}
	if of[0], err = open(ctx, left, leftRoot); err != nil {
		return of, err
	}
	if of[1], err = open(ctx, right, rightRoot); err != nil {
		of[0].close()
	}
	return of, err
}

func newSide(of *state, root string, o Options) *side {
	next, stop := iter.Pull2(of.walk(root, o))
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
