package znodes

import (
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Notice is what the client half reports to the recipe on top of it: a Reply, a WatchEvent, or
// a change of the connection.
type Notice any

// Changes of the connection, after ZooKeeper's client states.
type (
	// Disconnected reports that nothing was heard for two thirds of the session timeout. The
	// session may be about to expire, so a leader or the holder of a lock must stop acting on
	// it.
	Disconnected struct{}
	// Reconnected reports that the session was still alive. Watches may have fired unseen.
	Reconnected struct{}
	// Expired reports that the session and its znodes no longer exist; a new session has begun.
	Expired struct{}
)

// Client is the client half of a session, a value inside a recipe's state. It
// owns the timers named ping, lease and retry.
type Client struct {
	session   Session
	timeout   time.Duration
	patience  time.Duration // before a request is repeated
	connected bool
	number    int
	pending   Request
	waiting   bool
}

// NewClient returns the client half for process self. bound is the longest
// message time; timeout, the session timeout, must be at least six bounds for
// Disconnected to come before the service's expiry.
func NewClient(self sim.ID, bound, timeout time.Duration) Client {
	return Client{session: Session{ID: self}, timeout: timeout, patience: 4 * bound}
}

// Session returns the session's name.
func (c Client) Session() Session { return c.session }

// Connected reports whether the service was heard within the lease.
func (c Client) Connected() bool { return c.connected }

// Waiting reports whether a request is unanswered.
func (c Client) Waiting() bool { return c.waiting }

// Open begins a new session. Call it at Start, and at Recover.
func (c Client) Open(out *sim.Output) Client {
	c.session.Life++
	c.number, c.waiting, c.connected = 0, false, true
	out.CancelTimer("retry")
	out.SetTimer("ping", c.timeout/3)
	out.SetTimer("lease", 2*c.timeout/3)
	return c
}

// Call sends a request; it replaces one that is still unanswered.
func (c Client) Call(op string, sequence int, out *sim.Output) Client {
	c.number++
	c.pending = Request{Session: c.session, Number: c.number, Op: op, Sequence: sequence}
	c.waiting = true
	out.Send(sim.Service, c.pending)
	out.SetTimer("retry", c.patience)
	return c
}

// Handle handles the events meant for the client half and returns what the recipe must know.
func (c Client) Handle(event sim.Event, out *sim.Output) (Client, Notice) {
	switch e := event.(type) {
	case sim.Timeout:
		return c.timedOut(e.Name, out)
	case sim.Deliver:
		return c.receive(e.Message, out)
	}
	return c, nil
}

func (c Client) timedOut(name string, out *sim.Output) (Client, Notice) {
	switch name {
	case "ping":
		out.Send(sim.Service, pulse{c.session, ping})
		out.SetTimer("ping", c.timeout/3)
	case "retry":
		if c.waiting {
			out.Send(sim.Service, c.pending)
			out.SetTimer("retry", c.patience)
		}
	case "lease":
		c.connected = false
		return c, Disconnected{}
	}
	return c, nil
}

func (c Client) receive(message sim.Message, out *sim.Output) (Client, Notice) {
	switch m := message.(type) {
	case Reply:
		if m.Session != c.session || m.Number != c.number || !c.waiting {
			return c, nil
		}
		c.waiting = false
		out.CancelTimer("retry")
		out.SetTimer("lease", 2*c.timeout/3)
		c.connected = true
		return c, m
	case WatchEvent:
		if m.Session == c.session {
			return c, m
		}
	case pulse:
		if m.session != c.session {
			return c, nil
		}
		if m.kind == expired {
			return c.Open(out), Expired{}
		}
		out.SetTimer("lease", 2*c.timeout/3)
		if !c.connected {
			c.connected = true
			return c, Reconnected{}
		}
	}
	return c, nil
}
