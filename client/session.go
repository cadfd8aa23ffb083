package client

import (
	"context"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// session is the client's session at the servers. A Client has one after
// another, unless WithFinalExpiry was given.
type session struct {
	ctx  context.Context // done when the session is lost
	lose context.CancelCauseFunc

	// Client.mu protects the fields below.
	id       znode.SessionID
	password []byte
	timeout  time.Duration // negotiated, 0 until connected
	// aliveAt is the latest time, on Client.clock, at which the session was
	// certainly alive at a server: when the newest answered request was sent.
	// The server's own timer cannot have started earlier.
	aliveAt time.Duration
	timer   *time.Timer // fires at aliveAt+lifetime, or earlier
	dead    bool
}

// lifetimeMargin is the divisor of the session timeout for the margin by which
// the client gives up before the servers may: timers fire late on a busy
// machine, clocks drift apart, and other clients learn of the session's end
// within a millisecond.
const lifetimeMargin = 16

// lifetimeLocked is for how long after aliveAt the session counts as alive.
func (s *session) lifetimeLocked() time.Duration { return s.timeout - s.timeout/lifetimeMargin }

func newSession() *session {
	s := &session{password: []byte(noPassword)}
	s.ctx, s.lose = context.WithCancelCause(context.Background())
	return s
}

// Session is one session of a client.
type Session struct {
	ID      SessionID     // 0 before the first connection
	Timeout time.Duration // granted by the server; 0 before the first connection

	s *session
}

func (s *session) viewLocked() Session { return Session{ID: s.id, Timeout: s.timeout, s: s} }

// Session returns the current session.
func (c *Client) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.viewLocked()
}

// SessionID returns the id of the current session, 0 if there is none yet.
func (c *Client) SessionID() SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.id
}

// SessionDeadline returns when the current session must be assumed lost if no
// further answer comes, and the zero time if there is no session.
func (c *Client) SessionDeadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadlineLocked()
}

func (c *Client) deadlineLocked() time.Time {
	if c.session.timeout == 0 {
		return time.Time{}
	}
	return c.epoch.Add(c.session.aliveAt + c.session.lifetimeLocked())
}

// Done returns a channel that is closed when the session is lost or closed.
// From then on, assume that its ephemerals are deleted.
func (s Session) Done() <-chan struct{} { return s.s.ctx.Done() }

// Err is nil while the session may be alive, and the reason afterwards:
// ErrSessionExpired or ErrClosed.
func (s Session) Err() error { return context.Cause(s.s.ctx) }

type sessionKey struct{}

// Context returns a context for work that must not outlive the session, such as
// work under a lock: it is cancelled when the session is lost, and operations
// that use it fail with ErrSessionExpired rather than run in another session.
// The caller must call cancel.
func (s Session) Context(parent context.Context) (ctx context.Context, cancel func()) {
	ctx, cancelCause := context.WithCancelCause(context.WithValue(parent, sessionKey{}, s.s))
	stop := context.AfterFunc(s.s.ctx, func() { cancelCause(s.Err()) })
	if err := s.Err(); err != nil {
		cancelCause(err) // AfterFunc's goroutine could come after the first operation
	}
	return ctx, func() {
		stop()
		cancelCause(context.Canceled)
	}
}

// Credentials let another client continue a session. Anyone who has the
// password can act as the session, and close it.
type Credentials struct {
	ID       SessionID
	Password []byte
}

// Credentials returns the credentials of the current session.
func (c *Client) Credentials() Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Credentials{c.session.id, append([]byte(nil), c.session.password...)}
}

// clock is the monotonic time since the client was made.
func (c *Client) clock() time.Duration { return time.Since(c.epoch) }

// noteAliveLocked records that a request that was sent at this time or later has
// been answered.
func (c *Client) noteAliveLocked(at time.Duration) {
	if at > c.session.aliveAt {
		c.session.aliveAt = at
	}
}

// armDeadlineLocked starts the timer of a session that has just been
// (re)connected. Answers do not restart it: when it fires, checkDeadline looks
// how much time is left.
func (c *Client) armDeadlineLocked() {
	s := c.session
	left := s.aliveAt + s.lifetimeLocked() - c.clock()
	if s.timer == nil {
		s.timer = time.AfterFunc(left, func() { c.checkDeadline(s) })
	} else {
		s.timer.Reset(left)
	}
}

func (c *Client) checkDeadline(s *session) {
	c.mu.Lock()
	if s.dead || c.session != s {
		c.mu.Unlock()
		return
	}
	silent := c.clock() - s.aliveAt
	if left := s.lifetimeLocked() - silent; left > 0 {
		s.timer.Reset(left)
		c.mu.Unlock()
		return
	}
	cause := fmt.Errorf("%w: no answer for %v, the session timeout is %v",
		ErrSessionExpired, silent.Round(time.Millisecond), s.timeout)
	c.lapsed = &Credentials{s.id, s.password}
	c.loseSessionLocked(cause)
	c.mu.Unlock()
	c.cfg.logger.Warn("session assumed lost", "session", s.id, "error", cause)
}

// loseSessionLocked ends the session and all that depends on it, and starts the
// next one or refuses everything from now on. It is final: the client does not
// use the session again even if a server still knows it, because the application
// knows that it ended.
func (c *Client) loseSessionLocked(cause error) {
	s := c.session
	s.dead = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if l := c.link; l != nil {
		c.detachLocked(l, cause)
	}
	s.lose(cause)
	c.failQueueLocked(cause)
	c.watches.endAllLocked(cause)
	c.setStateLocked(StateChange{State: StateExpired, Err: cause})
	if c.cfg.finalExpiry || c.resuming {
		c.refuseLocked(cause)
		c.stop()
		return
	}
	c.lastZxid, c.restoreFrom, c.restoring = 0, 0, 0
	c.session = newSession()
	c.setStateLocked(StateChange{State: StateConnecting, Err: cause})
}

// newCloseOp returns the operation that ends the session.
func newCloseOp(c *Client) *op[wire.EmptyRequest, struct{}, *wire.EmptyRequest] {
	o := newOp[wire.EmptyRequest](c, wire.OpCloseSession, noResult)
	o.internal = true
	return o
}

// State is the state of the session.
type State int

// The states. Expired is followed by Connecting for the next session, unless
// WithFinalExpiry was given; Closed is final.
const (
	// StateConnecting: there is no session yet.
	StateConnecting State = iota
	// StateConnected: a new session has been opened.
	StateConnected
	// StateSuspended: there is no connection. The session may still be alive
	// and own its ephemerals, such as locks: stop relying on them.
	StateSuspended
	// StateReconnected: the same session continues over another connection,
	// with its ephemerals.
	StateReconnected
	// StateExpired: the session is lost, with its ephemerals and watches,
	// because a server reported it, or because it must be assumed after so long
	// without an answer.
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
	Session Session // the session that changed
	Server  string  // address of the server, if connected
	// Deadline is when a suspended session must be assumed lost if the client
	// has not reached a server. It is the zero time in other states.
	Deadline time.Time
	// Err is why a session is suspended or expired.
	Err error
	// Missed is how many earlier changes were dropped because the subscriber
	// did not read them in time.
	Missed int
}

// stateQueue bounds the changes that wait for a subscriber. A flapping
// connection produces two per round; no one needs the whole history.
const stateQueue = 32

// StateWatch is a subscription to the changes of state.
type StateWatch struct {
	c  *Client
	ch chan StateChange

	missed int // protected by c.mu
}

// States subscribes to the changes of state. The first one is the current
// state. A subscriber that does not keep up loses the oldest changes, and
// StateChange.Missed counts them; the newest is always there. The channel is
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

// sendLocked is only called with the client's mutex held, so no other goroutine
// sends and the loop ends: a reader can only make room.
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
