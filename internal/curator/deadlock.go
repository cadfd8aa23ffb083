package curator

import (
	"cmp"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// Edge says that a session waits, with the znode Waiter, for a lock that the next session of its circle holds with the
// znode Holder.
type Edge struct {
	Session        znode.SessionID
	Waiter, Holder string // paths
}

// Deadlocks finds circles of sessions, each of which waits for a lock that the next one holds; of those that share
// sessions, one. Elections have none, since one who leads does not wait, nor have semaphores, whose holders' number is
// not known. A session that waits for itself is none: its holder may be another thread.
func Deadlocks(places []Place) (circles [][]Edge) {
	g := graph{ids: map[znode.SessionID]int{}}
	for i := range places {
		if p := &places[i]; p.Kind == LockKind || p.Kind == ReadWriteKind {
			g.add(p)
		}
	}
	for _, part := range g.components() {
		if circle := g.circle(part); circle != nil {
			circles = append(circles, circle)
		}
	}
	slices.SortFunc(circles, func(a, b []Edge) int { return cmp.Compare(uint64(a[0].Session), uint64(b[0].Session)) })
	return circles
}

// graph has an edge from each session to the locks that it waits for, and from each lock to the sessions that hold it,
// so that its size is that of the queues.
type graph struct {
	ids   map[znode.SessionID]int
	nodes []node
}

type node struct {
	session znode.SessionID // 0: a lock
	next    []int
	znodes  []string // by which it waits for the next, or the next holds it
}

func (g *graph) add(p *Place) {
	lock := len(g.nodes)
	g.nodes = append(g.nodes, node{})
	for i := range p.Users {
		u := &p.Users[i]
		if u.Session == 0 {
			continue
		}
		path := znode.Join(p.Path, u.Name)
		if u.Waits {
			g.connect(g.of(u.Session), lock, path)
		} else {
			g.connect(lock, g.of(u.Session), path)
		}
	}
}

// of is the node of a session.
func (g *graph) of(id znode.SessionID) int {
	n, ok := g.ids[id]
	if !ok {
		n = len(g.nodes)
		g.ids[id] = n
		g.nodes = append(g.nodes, node{session: id})
	}
	return n
}

func (g *graph) connect(from, to int, path string) {
	n := &g.nodes[from]
	n.next, n.znodes = append(n.next, to), append(n.znodes, path)
}

// components are the strongly connected ones of several nodes (Tarjan).
func (g *graph) components() (all [][]int) {
	index, low := make([]int, len(g.nodes)), make([]int, len(g.nodes)) // from 1
	on := make([]bool, len(g.nodes))
	var stack []int
	count := 0
	var visit func(n int)
	visit = func(n int) {
		count++
		index[n], low[n], on[n] = count, count, true
		stack = append(stack, n)
		for _, to := range g.nodes[n].next {
			if index[to] == 0 {
				visit(to)
				low[n] = min(low[n], low[to])
			} else if on[to] {
				low[n] = min(low[n], index[to])
			}
		}
		if low[n] != index[n] {
			return
		}
		at := len(stack) - 1
		for stack[at] != n {
			at--
		}
		part := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, m := range part {
			on[m] = false
		}
		if len(part) > 1 {
			all = append(all, part)
		}
	}
	for n := range g.nodes {
		if index[n] == 0 {
			visit(n)
		}
	}
	return all
}

// circle is one of the sessions of a component, from the one with the lowest id; nil: there is a single session.
func (g *graph) circle(part []int) []Edge {
	sessions := slices.DeleteFunc(slices.Clone(part), func(n int) bool { return g.nodes[n].session == 0 })
	if len(sessions) < 2 {
		return nil
	}
	first := slices.MinFunc(sessions, func(a, b int) int {
		return cmp.Compare(uint64(g.nodes[a].session), uint64(g.nodes[b].session))
	})
	within := map[int]bool{}
	for _, n := range part {
		within[n] = true
	}
	for i, lock := range g.nodes[first].next {
		for j, second := range g.nodes[lock].next {
			if second != first && within[second] {
				edge := Edge{g.nodes[first].session, g.nodes[first].znodes[i], g.nodes[lock].znodes[j]}
				return append([]Edge{edge}, g.way(second, first, within)...)
			}
		}
	}
	return nil
}

// way is the shortest one from a session to another.
func (g *graph) way(from, to int, within map[int]bool) (way []Edge) {
	type step struct {
		before int
		path   string
	}
	came := map[int]step{from: {-1, ""}}
	for todo := []int{from}; len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		for i, next := range g.nodes[n].next {
			if _, seen := came[next]; !seen && within[next] {
				came[next] = step{n, g.nodes[n].znodes[i]}
				todo = append(todo, next)
			}
		}
	}
	for at := to; at != from; {
		lock := came[at]
		waiter := came[lock.before]
		way = append(way, Edge{g.nodes[waiter.before].session, waiter.path, lock.path})
		at = waiter.before
	}
	slices.Reverse(way)
	return way
}
