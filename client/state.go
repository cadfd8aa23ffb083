package client

import (
	"fmt"
	"time"
)

// State is where the session stands.
type State int

// The states. Expired is followed by Connecting for the next session, unless
// WithFinalExpiry was given; Closed is final.
const (
	// StateConnecting: there is no session yet.
	StateConnecting State = iota
	// StateConnected: a new session has been opened.
	StateConnected
	// StateSuspended: the connection is gone. The session may still be alive
	// and own its ephemerals, and so may locks: stop acting on them.
	StateSuspended
	// StateReconnected: the same session goes on over another connection, and
	// its ephemerals are there.
	StateReconnected
	// StateExpired: the session is lost, with its ephemerals and watches,
	// because a server said so or because so much time has passed without an
	// answer that it must be assumed.
	StateExpired
	// StateClosed: Close or Detach has been called.
	StateClosed
)

// String is the name of the state in lower case.
func (s State) String() string {
	names := [...]string{"connecting", "connected", "suspended", "reconnected", "expired", "closed"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("unknown(%d)", int(s))
	}
	return names[s]
}

// Connected reports whether there is a connection.
func (s State) Connected() bool { return s == StateConnected || s == StateReconnected }

// StateChange is one step in the life of the session.
type StateChange struct {
	State   State
	Session Session // the one that the step belongs to
	Server  string  // address of the server, if connected
	// Deadline is when a suspended session must be assumed lost, if no server
	// has been reached by then. It is the zero time in other states.
	Deadline time.Time
	// Err is why a session is suspended or expired.
	Err error
	// Missed is how many earlier changes were dropped because they were not
	// read in time.
	Missed int
}

// stateQueue bounds the changes that wait for a subscriber. A session whose
// connection flaps produces two a round; nobody needs the whole history.
const stateQueue = 32

// StateWatch is a subscription to the changes of state.
type StateWatch struct {
	c  *Client
	ch chan StateChange

	missed int // protected by c.mu
}

// States subscribes to the changes of state. The current state is the first
// one. A subscriber that does not keep up loses the oldest changes, and learns
// how many (StateChange.Missed); the newest is always there. The channel is
// closed after StateClosed, or after StateExpired if that is final.
func (c *Client) States() *StateWatch {
	w := &StateWatch{c: c, ch: make(chan StateChange, stateQueue)}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.sendLocked(c.state)
	if c.overLocked() {
		close(w.ch)
	} else {
		c.subscribers[w] = struct{}{}
	}
	return w
}

// C returns the channel of the changes.
func (w *StateWatch) C() <-chan StateChange { return w.ch }

// Cancel ends the subscription and closes the channel. It may be called more
// than once.
func (w *StateWatch) Cancel() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if _, ok := w.c.subscribers[w]; ok {
		delete(w.c.subscribers, w)
		close(w.ch)
	}
}

// sendLocked is only called with the client's mutex held, so nobody else sends
// and the loop ends: a reader can only make room.
func (w *StateWatch) sendLocked(s StateChange) {
	for {
		s.Missed = w.missed
		select {
		case w.ch <- s:
			w.missed = 0
			return
		default:
		}
		select {
		case old := <-w.ch:
			w.missed += 1 + old.Missed
		default:
		}
	}
}

// State returns the current state.
func (c *Client) State() StateChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// overLocked reports whether there will be no other state.
func (c *Client) overLocked() bool {
	return c.state.State == StateClosed || c.state.State == StateExpired && c.cfg.finalExpiry
}

func (c *Client) setStateLocked(s StateChange) {
	s.Session = c.session.viewLocked()
	c.state = s
	over := c.overLocked()
	for w := range c.subscribers {
		w.sendLocked(s)
		if over {
			delete(c.subscribers, w)
			close(w.ch)
		}
	}
}
