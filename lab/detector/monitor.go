package detector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Facts a wrapped process states when its detector changes its mind.
const (
	FactSuspect = "suspect"
	FactTrust   = "trust"
)

// Suspect tells a process that its failure detector suspects ID.
type Suspect struct{ ID sim.ID }

// String labels the command on charts.
func (s Suspect) String() string { return fmt.Sprintf("suspects %v", s.ID) }

// Trust tells a process that its failure detector no longer suspects ID.
type Trust struct{ ID sim.ID }

// String labels the command on charts.
func (t Trust) String() string { return fmt.Sprintf("trusts %v", t.ID) }

// Heartbeat is the one message of the detector.
type Heartbeat struct{}

// Type implements sim.Message.
func (Heartbeat) Type() string { return "heartbeat" }

// String implements sim.Message.
func (Heartbeat) String() string { return "heartbeat" }

// Background implements sim.Background: heartbeats never end.
func (Heartbeat) Background() {}

// Timing is the detector's two parameters.
type Timing struct {
	Period  time.Duration // T: between two heartbeats of a process
	Timeout time.Duration // D: silence allowed beyond T
}

// Check reports values with which the detector cannot work.
func (t Timing) Check() error {
	if t.Period <= 0 || t.Timeout < 0 {
		return fmt.Errorf("heartbeat period %s and timeout %s: "+
			"want a period above 0, a timeout of 0 or more",
			sim.FormatTime(t.Period), sim.FormatTime(t.Timeout))
	}
	return nil
}

// timerPrefix keeps the detector's timers apart from those of the inner node.
const timerPrefix = "fd/"

// monitored is a process with a detector. On disk: the disk of the inner node.
type monitored struct {
	self      sim.ID
	peers     []sim.ID // all ids, ascending; shared and never changed
	timing    Timing
	suspected []sim.ID
	inner     sim.Node // nil when the detector runs alone
}

// Wrap returns a process that runs a detector beside inner, which may be nil.
// peers are all ids, ascending.
func Wrap(self sim.ID, peers []sim.ID, t Timing, inner sim.Node) sim.Node {
	return monitored{self: self, peers: peers, timing: t, inner: inner}
}

// Step implements sim.Node.
func (m monitored) Step(now time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start, sim.Recover:
		m.suspected = nil
		m = m.beat(&out)
		for _, id := range m.peers {
			if id != m.self {
				m.expect(id, &out)
			}
		}
	case sim.Deliver:
		if _, ok := e.Message.(Heartbeat); ok {
			return m.heard(now, e.From, out)
		}
	case sim.Timeout:
		if name, ok := strings.CutPrefix(e.Name, timerPrefix); ok {
			return m.timeout(now, name, out)
		}
	}
	return m.tell(now, event, out)
}

// tell hands an event to the inner node and adds the inner node's output to out.
func (m monitored) tell(now time.Duration, e sim.Event, out sim.Output) (sim.Node, sim.Output) {
	if m.inner == nil {
		return m, out
	}
	inner, more := m.inner.Step(now, e)
	m.inner = inner
	out.Sends = append(out.Sends, more.Sends...)
	out.Timers = append(out.Timers, more.Timers...)
	out.Facts = append(out.Facts, more.Facts...)
	return m, out
}

func (m monitored) beat(out *sim.Output) monitored {
	for _, id := range m.peers {
		if id != m.self {
			out.Send(id, Heartbeat{})
		}
	}
	out.SetTimer(timerPrefix+"beat", m.timing.Period)
	return m
}

func (m monitored) expect(id sim.ID, out *sim.Output) {
	out.SetTimer(timerPrefix+strconv.Itoa(int(id)), m.timing.Period+m.timing.Timeout)
}

func (m monitored) heard(now time.Duration, id sim.ID, out sim.Output) (sim.Node, sim.Output) {
	m.expect(id, &out)
	at, found := slices.BinarySearch(m.suspected, id)
	if !found {
		return m, out
	}
	m.suspected = slices.Delete(slices.Clone(m.suspected), at, at+1)
	out.Note(FactTrust, id, 0)
	return m.tell(now, Trust{id}, out)
}

func (m monitored) timeout(now time.Duration, name string, o sim.Output) (sim.Node, sim.Output) {
	if name == "beat" {
		return m.beat(&o), o
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		panic(fmt.Sprintf("detector timer %q is not a process id", name))
	}
	id := sim.ID(number)
	at, found := slices.BinarySearch(m.suspected, id)
	if found {
		return m, o
	}
	m.suspected = slices.Insert(slices.Clone(m.suspected), at, id)
	o.Note(FactSuspect, id, 0)
	return m.tell(now, Suspect{id}, o)
}

// Inner returns the node a detector was wrapped around, or node itself.
func Inner(node sim.Node) sim.Node {
	if m, ok := node.(monitored); ok && m.inner != nil {
		return m.inner
	}
	return node
}
