package sim

import "time"

// Kind says what a Record is about.
type Kind string

// The kinds of record.
const (
	Sent      Kind = "sent"      // Process sent a message to Peer
	Delivered Kind = "delivered" // Process received a message from Peer
	Lost      Kind = "lost"      // Process's message to Peer will not arrive; Label says why
	Crashed   Kind = "crashed"   // Process stopped
	Recovered Kind = "recovered" // Process came back
	Noted     Kind = "noted"     // Process stated Fact
	TimedOut  Kind = "timed-out" // a timer of Process ran out
	Told      Kind = "told"      // Process was given a command
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
	Quiet   bool // about a Background message
}

// Observer is told every record as it happens; checkers are observers.
type Observer interface{ Observe(Record) }
