package admin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	subtreePart = 4096      // children that are looked at while writers wait
	maxSubtrees = 1_000_000 // that a request looks at
	maxCounted  = 100_000   // paths whose watches are counted: about 15 MB
)

// subtreeMeasures are the values of by=, and how large a subtree is.
var subtreeMeasures = map[string]func(*body.Subtree) int64{
	"znodes":  func(s *body.Subtree) int64 { return s.Znodes },
	"bytes":   func(s *body.Subtree) int64 { return s.Bytes },
	byWatches: func(s *body.Subtree) int64 { return s.Watches },
}

// subtreeRanking looks for the largest subtrees, a part of the tree at a time.
type subtreeRanking struct {
	q       *rest.Request
	top     string // the path that they are at or below
	size    func(*body.Subtree) int64
	limit   int
	begun   time.Time
	looked  int
	leftOut []string
	missed  int64
}

// listSubtrees shows the largest subtrees at and below a znode. Every znode's set of children has its size, so the
// search looks only at the children of those that it lists. Watches have no such sums: all paths are looked at.
func listSubtrees(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	by := "znodes"
	if q.Query.Has("by") {
		by = q.Query.Text("by")
	}
	r := subtreeRanking{q: q, top: path, size: subtreeMeasures[by], begun: time.Now()}
	if r.size == nil {
		return rest.BadRequest("by", "%q is none of znodes, bytes, watches", by)
	}
	if r.limit, err = q.Query.Integer("limit", 10, 1, maxTop); err != nil {
		return err
	}
	leave, err := q.EnterSearch()
	if err != nil {
		return err
	}
	defer leave()
	top, ok := r.look(path)
	if !ok {
		return rest.Fail(znode.ErrNoNode, path)
	}
	var found []body.Subtree
	if by == byWatches {
		found = r.mostWatched()
	} else {
		found = r.largest(top)
	}
	r.countWatches(found)
	slices.SortFunc(found, r.compare)
	return q.Answer(http.StatusOK, body.Subtrees{
		Server: number(q.Core.Config.ID), By: by, Subtrees: found, LeftOut: r.leftOut, Missed: r.missed,
	})
}

// look returns the subtree at a path.
func (r *subtreeRanking) look(path string) (s body.Subtree, ok bool) {
	s.Path = path
	r.q.View(func(v *server.View) {
		var t znode.SubtreeSize
		t, ok = v.Tree().SubtreeSize(path)
		s.Znodes, s.Bytes = int64(t.Znodes), t.Bytes
	})
	return s, ok
}

// largest returns the largest subtrees: no subtree is larger than the one that it is in.
func (r *subtreeRanking) largest(top body.Subtree) (found []body.Subtree) {
	for next := []body.Subtree{top}; len(found) < r.limit && len(next) > 0; {
		s := next[0]
		next = next[1:]
		// While the tree changes, a child may be shown twice.
		if slices.ContainsFunc(found, func(f body.Subtree) bool { return f.Path == s.Path }) {
			continue
		}
		found = append(found, s)
		next = r.addChildren(next, s.Path)
	}
	return found
}

// addChildren adds the children of a znode to subtrees, which are ordered, and leaves the first of them.
func (r *subtreeRanking) addChildren(all []body.Subtree, path string) []body.Subtree {
	at := 0
	r.q.View(func(v *server.View) {
		if s, ok := v.Tree().SubtreeSize(path); ok {
			at = s.Children
		}
	})
	for ; at > 0; at -= subtreePart { // from the end: see VisitSubtreeSizes
		if r.looked >= maxSubtrees || r.q.Context.Err() != nil {
			r.leftOut = append(r.leftOut, path)
			return all
		}
		r.q.View(func(v *server.View) {
			v.Tree().VisitSubtreeSizes(path, max(0, at-subtreePart), at, func(s znode.SubtreeSize) {
				r.looked++
				x := body.Subtree{Path: s.Path, Znodes: int64(s.Znodes), Bytes: s.Bytes}
				if place, _ := slices.BinarySearchFunc(all, x, r.compare); place < r.limit {
					all = slices.Insert(all, place, x)
					all = all[:min(len(all), r.limit)]
				}
			})
		})
		r.begun = rest.Pause(r.q.Context, r.begun)
	}
	return all
}

// compare orders subtrees, the largest first.
func (r *subtreeRanking) compare(a, b body.Subtree) int {
	return cmp.Or(cmp.Compare(r.size(&b), r.size(&a)), strings.Compare(a.Path, b.Path))
}

// eachWatched calls visit for each path at and below the top that has watchers, and for each of its ancestors there.
func (r *subtreeRanking) eachWatched(visit func(path string, watchers int64)) {
	m := watches(r.q)
	var counts []watch.PathCount
	for part := range watch.Parts {
		counts = m.Counts(part, counts[:0])
		for _, c := range counts {
			below, within := strings.CutPrefix(c.Path, r.top)
			if !within || r.top != znode.RootPath && below != "" && below[0] != '/' {
				continue
			}
			for path := c.Path; len(path) > len(r.top); path = znode.Parent(path) {
				visit(path, int64(c.Watchers))
			}
			visit(r.top, int64(c.Watchers))
		}
		r.begun = rest.Pause(r.q.Context, r.begun)
	}
}

// mostWatched returns the subtrees with the most watches.
func (r *subtreeRanking) mostWatched() []body.Subtree {
	found, c := []body.Subtree{}, frequent{most: maxCounted, counts: map[string]int64{}}
	r.eachWatched(c.add)
	r.missed = c.missed
	paths := slices.SortedFunc(maps.Keys(c.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.counts[b], c.counts[a]), strings.Compare(a, b))
	})
	for _, path := range paths[:min(len(paths), r.limit)] {
		s, _ := r.look(path) // which need not exist to be watched
		found = append(found, s)
	}
	return found
}

// countWatches counts the watches in subtrees.
func (r *subtreeRanking) countWatches(found []body.Subtree) {
	at := make(map[string]*body.Subtree, len(found))
	for i := range found {
		at[found[i].Path] = &found[i]
	}
	r.eachWatched(func(path string, watchers int64) {
		if s := at[path]; s != nil {
			s.Watches += watchers
		}
	})
}

// frequent counts keys in bounded memory. When there are too many, it takes the same number from all counters and drops
// those that have no more (Misra, Gries: Finding Repeated Elements, 1982): no count is too small by more than missed,
// which is below two most-ths of all that was counted.
type frequent struct {
	most   int // counters
	counts map[string]int64
	missed int64
}

func (f *frequent) add(key string, n int64) {
	if f.counts[key] += n; len(f.counts) <= f.most {
		return
	}
	all := slices.Sorted(maps.Values(f.counts))
	middle := all[len(all)/2]
	f.missed += middle
	for key, n := range f.counts {
		if f.counts[key] = n - middle; n <= middle {
			delete(f.counts, key)
		}
	}
}
