package explore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Things that can happen next.
const (
	deliver = iota // the message at place pos of link from-to
	drop           // it is lost
	fire           // timer name of process from
	tell           // pending command pos
	crash          // process from
)

// choice is one of them. Processes are places in the list of members.
type choice struct {
	kind     int
	from, to int
	pos      int
	name     int // interned timer
}

// packet is a message on a link.
type packet struct {
	message sim.Message
	via     sim.Route
}

// pending is a command that waits to be given.
type pending struct {
	to      int
	command sim.Event
}

// world is a state of the whole system. It is never changed: a step copies what it changes.
type world struct {
	nodes    []sim.Node
	node     []int // interned states of the nodes
	down     []bool
	links    [][]int // interned packets by from*n + to, in the order of sending
	timers   [][]int // interned names by process, ascending
	pending  []int   // interned commands, ascending
	leaders  []sim.ID
	terms    []int
	inside   []bool
	wants    []bool
	turns    []int // requests still to be made
	crashes  int   // still allowed
	losses   int
	inFlight int
}

// intern gives equal things one number.
type intern struct {
	numbers map[string]int
	packets []packet
	timers  []string
	pending []pending
}

// number interns a state, of which nothing but the number is kept.
func (in *intern) number(node sim.Node) int {
	key := fmt.Sprintf("%#v", node)
	n, known := in.numbers[key]
	if !known {
		n = len(in.numbers)
		in.numbers[key] = n
	}
	return n
}

// index interns a thing that is kept in a list.
func index[T any](in *intern, kind string, list *[]T, value T) int {
	key := kind + fmt.Sprintf("%#v", value)
	n, known := in.numbers[key]
	if !known {
		n = len(*list)
		in.numbers[key] = n
		*list = append(*list, value)
	}
	return n
}

// key is equal for equal worlds.
func (w *world) key() string {
	b := make([]byte, 0, 128)
	add := func(n int) { b = binary.AppendVarint(b, int64(n)) }
	for i := range w.node {
		add(w.node[i])
		add(int(w.leaders[i]))
		add(w.terms[i])
		add(w.turns[i])
		flags := 0
		for bit, set := range []bool{w.down[i], w.inside[i], w.wants[i]} {
			if set {
				flags |= 1 << bit
			}
		}
		add(flags)
		add(len(w.timers[i]))
		for _, t := range w.timers[i] {
			add(t)
		}
	}
	for _, link := range w.links {
		add(len(link))
		for _, p := range link {
			add(p)
		}
	}
	add(len(w.pending))
	for _, p := range w.pending {
		add(p)
	}
	add(w.crashes)
	add(w.losses)
	return string(b)
}

// copied returns a world that may be changed without changing w; a step that changes nodes of
// links or timers copies them itself.
func (w *world) copied() *world {
	c := *w
	c.nodes, c.node, c.down = slices.Clone(w.nodes), slices.Clone(w.node), slices.Clone(w.down)
	c.links, c.timers = slices.Clone(w.links), slices.Clone(w.timers)
	c.leaders, c.terms, c.turns = slices.Clone(w.leaders), slices.Clone(w.terms), slices.Clone(w.turns)
	c.inside, c.wants = slices.Clone(w.inside), slices.Clone(w.wants)
	return &c
}

// leading are the processes that are up and lead by their own account.
func (s *searcher) leading(w *world) (all []int) {
	for i, id := range s.ids {
		if !w.down[i] && w.leaders[i] == id {
			all = append(all, i)
		}
	}
	return all
}
