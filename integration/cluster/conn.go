package cluster

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	dialTimeout = 2 * time.Second
	// handshakeTimeout is the default of ConnectOptions.
	handshakeTimeout = 5 * time.Second
	// maxReply is above any reply of the tests, so that a reply is never the
	// kit's problem.
	maxReply = 64 << 20
)

// The errors of a Conn.
var (
	// ErrExpired reports that the server refused the session.
	ErrExpired = errors.New("the session has expired")
	// ErrNoReply reports that the connection ended before the reply, so that the outcome is
	// unknown.
	ErrNoReply = errors.New("the connection ended without a reply")
)

// Conn is one connection with a session. It sends whatever the test wants, right or wrong, and
// keeps everything it receives in order. It sends no pings of its own.
type Conn struct {
	Addr     string
	Session  Session
	Response wire.ConnectResponse

	nc   net.Conn
	done chan struct{} // closed when the reader has ended

	mu      sync.Mutex // protects the fields below
	nextXid wire.Xid
	calls   []*Call // sent and unanswered, in order
	items   []Item
	zxid    znode.Zxid
	err     error // why the connection ended
}

// Session is what a client needs to resume its session.
type Session struct {
	ID       znode.SessionID
	Password []byte
	LastZxid znode.Zxid
}

// Call is one request under way.
type Call struct {
	Xid    wire.Xid
	Op     wire.OpCode
	SentAt time.Time
	Done   chan struct{} // closed when the fields below are set

	Reply      wire.ReplyHeader
	Body       wire.Response
	AnsweredAt time.Time
	// Err is ErrNoReply (wrapped) or a reply that does not decode; an error code
	// of the server is in Reply.Err.
	Err error
}

// Item is something received: a notification or a reply (the Call).
type Item struct {
	Call  *Call
	Event wire.WatcherEvent
	Zxid  znode.Zxid // of the notification
	At    time.Time
}

// ConnectOptions choose the handshake.
type ConnectOptions struct {
	Timeout time.Duration // of the session; 0: 10 s
	Session Session       // the one to resume; the zero value: a new one
	// ReadOnly allows a server to serve reads alone.
	ReadOnly bool
	// HandshakeTimeout is how long the server may take, as a paused one does; 0:
	// 5 s.
	HandshakeTimeout time.Duration
	// FirstXid is the xid of the first request; 0: 1.
	FirstXid wire.Xid
}

// Connect opens a connection and its session, and fails the test if it cannot. A server that
// has not heard from the leader for half of the shortest session timeout accepts no client,
// which happens soon on a busy machine: Connect tries again.
func (s *Server) Connect(t testing.TB, o ConnectOptions) (c *Conn) {
	t.Helper()
	wait.Succeeds(t, fmt.Sprintf("server %d takes a connection", s.ID), func() (err error) {
		if c, err = Dial(s.Addr(), o); errors.Is(err, ErrExpired) {
			t.Fatalf("connecting to server %d: %v", s.ID, err)
		}
		return err
	})
	t.Cleanup(func() { c.Drop() })
	return c
}

// Dial opens a connection and its session.
func Dial(addr string, o ConnectOptions) (*Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("dialing: %w", err)
	}
	c := &Conn{Addr: addr, nc: nc, done: make(chan struct{}), nextXid: max(1, o.FirstXid)}
	frames := wire.NewFrameReader(nc, maxReply)
	if err := c.handshake(frames, o); err != nil {
		nc.Close()
		return nil, err
	}
	go c.read(frames)
	return c, nil
}

func (c *Conn) handshake(frames *wire.FrameReader, o ConnectOptions) error {
	timeout, patience := o.Timeout, o.HandshakeTimeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	if patience == 0 {
		patience = handshakeTimeout
	}
	password := o.Session.Password
	if password == nil {
		password = make([]byte, znode.PasswordSize)
	}
	request := wire.ConnectRequest{
		LastZxidSeen: o.Session.LastZxid, TimeoutMillis: int32(timeout.Milliseconds()),
		SessionID: o.Session.ID, Password: password, HasReadOnly: true, ReadOnly: o.ReadOnly,
	}
	b, mark := wire.BeginFrame(nil)
	b = request.Append(b)
	wire.EndFrame(b, mark)
	if err := c.nc.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if _, err := c.nc.Write(b); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	payload, err := frames.Next()
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	r := jute.NewReader(payload)
	c.Response.Decode(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if c.Response.SessionID == 0 || c.Response.TimeoutMillis <= 0 {
		return ErrExpired
	}
	c.Session = Session{ID: c.Response.SessionID,
		Password: append([]byte(nil), c.Response.Password...)}
	c.zxid = o.Session.LastZxid
	return c.nc.SetDeadline(time.Time{})
}

// Send sends a request and returns at once.
func (c *Conn) Send(op wire.OpCode, body wire.Request) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	xid := c.nextXid
	c.nextXid++
	if op == wire.OpPing {
		xid = wire.XidPing
	}
	return c.sendLocked(xid, op, body)
}

// SendAs is Send with an xid of the caller's.
func (c *Conn) SendAs(xid wire.Xid, op wire.OpCode, body wire.Request) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLocked(xid, op, body)
}

func (c *Conn) sendLocked(xid wire.Xid, op wire.OpCode, body wire.Request) *Call {
	call := &Call{Xid: xid, Op: op, SentAt: time.Now(), Done: make(chan struct{})}
	if c.err != nil {
		call.fail(c.err)
		return call
	}
	c.calls = append(c.calls, call)
	// Under the lock, so that the order on the wire is the order of calls. A
	// write that fails shows to the reader, which fails all calls.
	frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: xid, Type: op}, body)
	if _, err := c.nc.Write(frame); err != nil {
		c.nc.Close()
	}
	return call
}

// SendBytes writes bytes that no codec would.
func (c *Conn) SendBytes(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.nc.Write(b)
	return err
}

// Do sends a request and waits for the reply.
func (c *Conn) Do(op wire.OpCode, body wire.Request) (wire.Response, error) {
	return c.Send(op, body).Wait()
}

// Wait waits for the reply: its body, or the server's error code, or
// ErrNoReply.
func (call *Call) Wait() (wire.Response, error) {
	<-call.Done
	if call.Err != nil {
		return nil, call.Err
	}
	return call.Body, call.Reply.Err.Err()
}

func (call *Call) fail(why error) {
	call.Err = fmt.Errorf("%w: %w", ErrNoReply, why)
	close(call.Done)
}

// read receives data from the server until the connection ends.
func (c *Conn) read(frames *wire.FrameReader) {
	defer close(c.done)
	for {
		payload, err := frames.Next()
		if err == nil {
			err = c.receive(payload)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

func (c *Conn) end(err error) {
	c.nc.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	for _, call := range c.calls {
		call.fail(c.err)
	}
	c.calls = nil
}

func (c *Conn) receive(payload []byte) error {
	payload = append([]byte(nil), payload...) // bodies keep parts of it
	r := jute.NewReader(payload)
	var h wire.ReplyHeader
	h.Decode(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("a reply without a header: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = max(c.zxid, h.Zxid)
	if h.Xid == wire.XidNotification {
		item := Item{Zxid: h.Zxid, At: time.Now()}
		item.Event.Decode(r)
		c.items = append(c.items, item)
		return r.Err()
	}
	if len(c.calls) == 0 {
		return fmt.Errorf("a reply nobody waits for: xid %s", h.Xid)
	}
	call := c.calls[0]
	if call.Xid != h.Xid {
		return fmt.Errorf("a reply out of order: xid %s, want %s (%s)", h.Xid, call.Xid, call.Op)
	}
	c.calls = c.calls[1:]
	call.Reply, call.AnsweredAt = h, time.Now()
	if h.Err == znode.OK {
		if body := wire.NewResponse(call.Op); body != nil {
			body.Decode(r)
			call.Body = body
		}
	}
	switch {
	case r.Err() != nil:
		call.Err = fmt.Errorf("the reply to %s: %w", call.Op, r.Err())
	case r.Remaining() != 0:
		call.Err = fmt.Errorf("the reply to %s has %d bytes too many", call.Op, r.Remaining())
	}
	c.items = append(c.items, Item{Call: call, At: call.AnsweredAt})
	close(call.Done)
	return nil
}

// Items is everything received since the handshake, in order.
func (c *Conn) Items() []Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Item(nil), c.items...)
}

// Take is Items since the last Take, and forgets them.
func (c *Conn) Take() []Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := c.items
	c.items = nil
	return items
}

// State is what a client must know to resume the session.
func (c *Conn) State() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Session{ID: c.Session.ID, Password: c.Session.Password, LastZxid: c.zxid}
}

// Ended is closed when the server has closed the connection, or Drop was
// called.
func (c *Conn) Ended() <-chan struct{} { return c.done }

// Err is why the connection ended; nil while it is up.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Drop breaks the connection; the session lives on until it expires.
func (c *Conn) Drop() {
	c.nc.Close()
	<-c.done
}

// Close ends the session and waits until the server has closed the connection.
func (c *Conn) Close() error {
	_, err := c.Do(wire.OpCloseSession, nil)
	if err == nil {
		<-c.done
	}
	return err
}
