package mutex

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Facts a process states about its critical section.
const (
	FactRequest = "request"
	FactEnter   = "enter"
	FactExit    = "exit"
)

// Request tells a process to ask for the critical section. A process that asks
// or is inside already ignores it.
type Request struct{}

// String labels the command on charts.
func (Request) String() string { return "wants the lock" }

// leaveTimer ends a stay in the critical section.
const leaveTimer = "leave"

type phase uint8

// String writes the phase as the lectures do.
func (p phase) String() string { return [...]string{"RELEASED", "WANTED", "HELD"}[p] }

const (
	outside phase = iota
	wanting
	inside
)

// section is the part of the state all algorithms share.
type section struct {
	phase phase
	hold  time.Duration // length of a stay inside
}

// Show implements sim.Shower for states without other variables.
func (s section) Show() []sim.Variable {
	return []sim.Variable{{Name: "state", Value: s.phase.String()}}
}

// want begins a request; it returns false if there is one already.
func (s *section) want(out *sim.Output) bool {
	if s.phase != outside {
		return false
	}
	s.phase = wanting
	out.Note(FactRequest, sim.None, 0)
	return true
}

func (s *section) enter(out *sim.Output) {
	s.phase = inside
	out.Note(FactEnter, sim.None, 0)
	out.SetTimer(leaveTimer, s.hold)
}

func (s *section) exit(out *sim.Output) {
	s.phase = outside
	out.Note(FactExit, sim.None, 0)
	out.CancelTimer(leaveTimer)
}

// stamp is a Lamport timestamp: a clock value made unique by the process's id.
type stamp struct {
	clock int
	id    sim.ID
}

func (s stamp) before(o stamp) bool {
	return s.clock < o.clock || s.clock == o.clock && s.id < o.id
}

// String writes it as (clock, id).
func (s stamp) String() string { return fmt.Sprintf("(%d,%d)", s.clock, s.id) }

func showStamps(queue []stamp) string {
	texts := []string{}
	for _, s := range queue {
		texts = append(texts, s.String())
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func compareStamps(a, b stamp) int {
	if a.before(b) {
		return -1
	}
	if b.before(a) {
		return 1
	}
	return 0
}

// insert returns a sorted copy of queue that holds s.
func insert(queue []stamp, s stamp) []stamp {
	at, found := slices.BinarySearchFunc(queue, s, compareStamps)
	if found {
		return queue
	}
	return slices.Insert(slices.Clone(queue), at, s)
}

// drop returns a copy of queue without the stamps of process id.
func drop(queue []stamp, id sim.ID) []stamp {
	return slices.DeleteFunc(slices.Clone(queue), func(s stamp) bool { return s.id == id })
}

// with returns a sorted copy of ids that holds id.
func with(ids []sim.ID, id sim.ID) []sim.ID {
	at, found := slices.BinarySearch(ids, id)
	if found {
		return ids
	}
	return slices.Insert(slices.Clone(ids), at, id)
}

// places is a set of places in the list of peers, as bits: a state with a
// thousand peers is copied in a few words.
type places struct {
	bits  []uint64
	count int
}

// with returns a set that holds place i as well.
func (p places) with(i int) places {
	word, bit := i/64, uint64(1)<<(i%64)
	if word < len(p.bits) && p.bits[word]&bit != 0 {
		return p
	}
	bits := make([]uint64, max(word+1, len(p.bits)))
	copy(bits, p.bits)
	bits[word] |= bit
	return places{bits: bits, count: p.count + 1}
}
