package sim

import "time"

// Kind is the kind of a Record.
type Kind string

// The kinds of record.
const (
	Sent      Kind = "sent"      // Process sent a message to Peer
	Delivered Kind = "delivered" // Process received a message from Peer
	Lost      Kind = "lost"      // Process's message to Peer will not arrive; Label is the reason
	Crashed   Kind = "crashed"   // Process stopped
	Recovered Kind = "recovered" // Process recovered
	Noted     Kind = "noted"     // Process stated Fact
	TimedOut  Kind = "timed-out" // a timer of Process ran out
	Told      Kind = "told"      // Process was given a command

	// Recorded only if Config.Keep is set, for drawings.
	Armed    Kind = "armed"    // Process set the timer Type, which runs out at Due
	Disarmed Kind = "disarmed" // Process cancelled the timer Type
	Changed  Kind = "changed"  // of Process's Variables these have new values
)

// Record is one thing that happened. Records are in the order in which they
// happened; At never decreases.
type Record struct {
	At      time.Duration
	Kind    Kind
	Process ID
	Peer    ID            // the other end of a message, else None
	SentAt  time.Duration // of the message
	Message int           // number of the message, from 1; copies share it
	Type    string        // of the message, or name of the timer
	Label   string        // of the message, or why it was lost
	Fact    Fact
	// Due is when a timer runs out, and when a lost message would have arrived.
	Due       time.Duration
	Variables []Variable
	Quiet     bool // about a Background message
}

// Violation is a broken promise, with the moment at which it broke.
type Violation struct {
	At time.Duration
	// End is set if it is about the state in which the run ended.
	End  bool
	Text string
}

// String writes it with its moment.
func (v Violation) String() string {
	if v.End {
		return "at the end " + v.Text
	}
	return "t=" + FormatTime(v.At) + ": " + v.Text
}

// MarshalText makes it that sentence in JSON.
func (v Violation) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Observer gets every record as it happens; checkers are observers.
type Observer interface{ Observe(Record) }
