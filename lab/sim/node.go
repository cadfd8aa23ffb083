package sim

import (
	"strconv"
	"time"
)

// ID names a process. Processes that a user names have ids from 0; Service and
// None are below.
type ID int

// Service is the id of the one process that is not a peer: the coordinator of
// the central lock, or the simulated znode service.
const Service ID = -2

// None means "no process", as in "no leader".
const None ID = -1

// String writes the id as the lectures do (N6); the service is S.
func (id ID) String() string {
	switch id {
	case Service:
		return "S"
	case None:
		return "none"
	}
	return "N" + strconv.Itoa(int(id))
}

// Node is the state of one process and its algorithm at once. Step is a pure
// function: it must not change the receiver, must not keep or change the event,
// and must return equal results for equal arguments. Randomness, where an
// algorithm needs it, is a Random held in the state.
type Node interface {
	Step(now time.Duration, event Event) (Node, Output)
}

// Shower is a Node that shows the parts of its state that interest a reader: the variables of
// the lectures, by their names there.
type Shower interface{ Show() []Variable }

// Variable is one of them.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Event is an input of a process. It is one of Start, Recover, Deliver, Timeout, or a command
// value of the algorithm's own package passed to Simulator.Command.
type Event any

// Start is the first event of every process, at time zero.
type Start struct{}

// Recover is the first event after a crash. The node is the state held at the crash: the
// algorithm keeps the part that it declares to be on disk and rebuilds the rest. Timers set
// before the crash never fire.
type Recover struct{}

// Deliver delivers a message. Via is the link of the ring over which it arrived, or Direct.
type Deliver struct {
	From    ID
	Via     Route
	Message Message
}

// Timeout reports that the timer of that name, set by this process, has run out.
type Timeout struct{ Name string }

// Message is the content of a message: a small comparable value, never changed
// after it was sent.
type Message interface {
	// Type is the name under which the message is counted.
	Type() string
	// String is the label drawn on charts.
	String() string
}

// Background marks messages that flow for as long as a system is up (heartbeats, session
// pings). They are counted by type like all others, but they do not extend the reported time of
// a run.
type Background interface{ Background() }

// Route is how the receiver of a message is found.
type Route uint8

const (
	// Direct goes to Send.To.
	Direct Route = iota
	// Clockwise goes to the sender's successor in the ring.
	Clockwise
	// CounterClockwise goes to the sender's predecessor in the ring.
	CounterClockwise
)

// Send is one message to be sent. To is ignored on a ring route.
type Send struct {
	To      ID
	Via     Route
	Message Message
}

// Timer arms, re-arms (same name) or cancels a timer of the process.
type Timer struct {
	Name   string
	After  time.Duration
	Cancel bool
}

// Fact is something a process did that a checker or reader wants to know: it
// took a leader, entered the critical section, suspected a peer.
type Fact struct {
	Name   string
	About  ID
	Number int
}

// Output is the output of a step. Sends happen in order, at the instant of the step.
type Output struct {
	Sends  []Send
	Timers []Timer
	Facts  []Fact
}

// Send adds a message to one process.
func (o *Output) Send(to ID, m Message) {
	o.Sends = append(o.Sends, Send{To: to, Message: m})
}

// SendRing adds a message to a neighbour in the ring.
func (o *Output) SendRing(via Route, m Message) {
	o.Sends = append(o.Sends, Send{Via: via, Message: m})
}

// SetTimer arms the named timer, replacing an earlier one of the same name.
func (o *Output) SetTimer(name string, after time.Duration) {
	o.Timers = append(o.Timers, Timer{Name: name, After: after})
}

// CancelTimer disarms the named timer; it is no error if none is armed.
func (o *Output) CancelTimer(name string) {
	o.Timers = append(o.Timers, Timer{Name: name, Cancel: true})
}

// Note adds a fact.
func (o *Output) Note(name string, about ID, number int) {
	o.Facts = append(o.Facts, Fact{Name: name, About: about, Number: number})
}

// Random is a generator that is a value, so that a node can hold it and stay
// pure: Next returns the draw and the generator to use afterwards. It is
// splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
type Random uint64

// Next returns a number uniform in [0, bound) and the generator's next state.
// It returns 0 for a bound below 1.
func (r Random) Next(bound int64) (int64, Random) {
	r += 0x9e3779b97f4a7c15
	z := uint64(r)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	z ^= z >> 31
	if bound < 1 {
		return 0, r
	}
	return int64(z>>1) % bound, r
}
