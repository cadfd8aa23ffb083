package problem

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// A deadlock over several locks, each with a server of its own: process i keeps lock i, takes
// it, and then wants the lock of the next process, so that all wait in a cycle. A process that
// has waited for long sends its id to the process that it waits for, which forwards it to the
// one that it waits for itself (LCR on the cycle; K. Chandy, J. Misra and L. Haas, ACM TOCS
// 1(2), 1983, detect it so). The process whose id returns is elected, and gives its lock up.

type lockMessage struct {
	kind string
	id   sim.ID // of a candidate
}

func (m lockMessage) Type() string { return m.kind }
func (m lockMessage) String() string {
	if m.kind == lockCandidate {
		return fmt.Sprintf("candidate %d", m.id)
	}
	return m.kind
}

// Types of its messages.
const (
	lockRequest   = "request"
	lockGrant     = "grant"
	lockRelease   = "release"
	lockCandidate = "candidate"
)

// locker is a process with its lock. On disk: nothing.
type locker struct {
	self, next sim.ID
	bound      time.Duration
	unbroken   bool
	holder     sim.ID   // of its own lock
	queue      []sim.ID // the processes that wait for it
	wants      bool
	hasNext    bool
	inside     bool
	victim     bool
}

// Show implements sim.Shower.
func (l locker) Show() []sim.Variable {
	state := map[bool]string{true: "WANTED", false: "RELEASED"}[l.wants]
	if l.inside {
		state = "HELD"
	}
	holder, queue := "-", []string{}
	if l.holder != sim.None {
		holder = l.holder.String()
	}
	for _, id := range l.queue {
		queue = append(queue, id.String())
	}
	return []sim.Variable{{Name: "state", Value: state}, {Name: "own lock", Value: holder},
		{Name: "wait for it", Value: "[" + strings.Join(queue, " ") + "]"},
		{Name: "next lock", Value: map[bool]string{true: "here", false: "-"}[l.hasNext]}}
}

// Step implements sim.Node.
func (l locker) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Begin:
		l.wants = true
		out.Note("request", sim.None, 0)
		l.join(l.self, &out)
		out.Send(l.next, lockMessage{kind: lockRequest})
		if !l.unbroken {
			out.SetTimer("stuck", 6*l.bound)
		}
	case sim.Timeout:
		if e.Name == "leave" {
			l.leave(&out)
		} else if l.waits() {
			out.Send(l.next, lockMessage{lockCandidate, l.self})
		}
	case sim.Deliver:
		l.receive(e.From, e.Message.(lockMessage), &out)
	}
	return l, out
}

// waits: it has its own lock and wants the next.
func (l locker) waits() bool { return l.wants && !l.inside && l.holder == l.self && !l.hasNext }

func (l *locker) receive(from sim.ID, m lockMessage, out *sim.Output) {
	switch m.kind {
	case lockRequest:
		l.join(from, out)
	case lockGrant:
		l.hasNext = true
		l.tryEnter(out)
	case lockRelease:
		if l.holder == from {
			l.free(out)
		}
	case lockCandidate:
		switch {
		case !l.waits() || m.id < l.self: // swallowed
		case m.id > l.self:
			out.Send(l.next, m)
		case !l.victim:
			l.victim = true
			out.Note("leader", l.self, 0)
			out.Note("is the victim: it gives its lock up", sim.None, 0)
			l.free(out)
			l.join(l.self, out) // after those that wait
		}
	}
}

// join puts a process into the line for the own lock.
func (l *locker) join(id sim.ID, out *sim.Output) {
	l.queue = append(slices.Clone(l.queue), id)
	if l.holder == sim.None {
		l.free(out)
	}
}

// free gives the own lock to the first in the line.
func (l *locker) free(out *sim.Output) {
	l.holder = sim.None
	if len(l.queue) == 0 {
		return
	}
	l.holder, l.queue = l.queue[0], slices.Clone(l.queue[1:])
	if l.holder != l.self {
		out.Send(l.holder, lockMessage{kind: lockGrant})
		return
	}
	l.tryEnter(out)
}

func (l *locker) tryEnter(out *sim.Output) {
	if l.wants && l.hasNext && l.holder == l.self && !l.inside {
		l.inside = true
		out.Note("enter", sim.None, 0)
		out.CancelTimer("stuck")
		out.SetTimer("leave", l.bound)
	}
}

func (l *locker) leave(out *sim.Output) {
	l.inside, l.wants, l.hasNext = false, false, false
	out.Note("exit", sim.None, 0)
	out.Send(l.next, lockMessage{kind: lockRelease})
	l.free(out)
}

func deadlock() Problem {
	return Problem{Name: nameDeadlock, Title: "Locks in a cycle", N: 3, Least: 2, topology: "ring",
		use: sim.Use{Types: []string{lockRequest, lockGrant, lockRelease, lockCandidate}},
		build: func(c Config, place int) sim.Node {
			return locker{self: c.IDs[place], next: c.IDs[(place+1)%len(c.IDs)], bound: c.Network.Delay.Max,
				unbroken: c.Unbroken, holder: sim.None}
		},
		begin: func(r *run) {
			for _, id := range r.config.IDs {
				r.sim.Command(0, id, Begin{})
			}
		},
		judge: judgeLocks}
}

// judgeLocks: a lock has one user at a time, and all processes get in.
func judgeLocks(r *run) {
	n := len(r.config.IDs)
	inside := map[sim.ID]bool{}
	for _, f := range r.facts {
		at := slices.Index(r.config.IDs, f.Process)
		switch f.Fact.Name {
		case "enter":
			inside[f.Process] = true
			for _, other := range []sim.ID{r.config.IDs[(at+1)%n], r.config.IDs[(at+n-1)%n]} {
				if inside[other] && other != f.Process {
					r.violate(f.At, "%v and %v use one lock", f.Process, other)
				}
			}
		case "exit":
			delete(inside, f.Process)
		case "leader":
			victim := f.Process
			r.result.Leader = &victim
			r.measure("victim", "%v at %s", f.Process, sim.FormatTime(f.At))
		}
	}
	var waits []string
	for at, id := range r.config.IDs {
		if l := r.sim.Node(id).(locker); r.sim.Up(id) && l.wants {
			waits = append(waits, fmt.Sprintf("%v for %v", id, r.config.IDs[(at+1)%n]))
		}
	}
	if len(waits) > 0 {
		r.result.Live = false
		r.measure("waits", "%s", strings.Join(waits, ", "))
	}
}
