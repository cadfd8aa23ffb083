package zk

import (
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/tlsport"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// sessionIDTries is how often a session id that is taken is replaced by the
// next. Ids repeat only if a server's clock was set back.
const sessionIDTries = 3

// handshake reads the ConnectRequest and gives the connection a session. Bytes
// after it stay unread until then. On an error the caller closes the
// connection.
func (c *conn) handshake() error {
	frame, err := c.in.frame()
	for ; frame == nil && err == nil; frame, err = c.in.frame() {
		if err := c.in.fill(); err != nil {
			return fmt.Errorf("waiting for the connect request: %w", err)
		}
	}
	if err != nil {
		return badf("%v", err)
	}
	var q wire.ConnectRequest
	rd := jute.NewReader(frame)
	if q.Decode(rd); rd.Err() != nil {
		return badf("a connect request that cannot be decoded: %v", rd.Err())
	}
	if !c.listener.throttle.admit(time.Now(), q.SessionID != 0) {
		c.listener.refuse(c, "connectionMaxTokens")
		return errors.New("sessions are opened faster than connectionMaxTokens allows")
	}
	if c.readOnly && !q.ReadOnly {
		return errors.New("this server is in read-only mode, which the client does not allow")
	}
	if q.SessionID == 0 && c.isAhead(q.LastZxidSeen) {
		// No session to attach to, so nothing will bring this server's state to
		// where the client has been; another may be there.
		return &aheadError{fmt.Sprintf("client has seen zxid %s, this server has not", q.LastZxidSeen)}
	}
	// The request points into the input's buffer, which stays as it is until the
	// reader goes on.
	newConn := c.listener.srv.NewConn
	if c.readOnly {
		newConn = c.listener.srv.ReadOnly.NewConn
	}
	c.sc.Store(newConn(c, c.identities()))
	h := &connecting{c: c, q: &q, start: time.Now(), answered: make(chan struct{}, 1)}
	c.out.countReceived(wire.FrameLengthBytes + len(frame))
	for range sessionIDTries {
		if err := h.propose(); err != nil {
			return err
		}
		select {
		case <-h.answered:
		case <-c.gone:
			return errors.New("ended during the handshake")
		}
		if !h.taken {
			return h.outcome()
		}
	}
	return errors.New("no free session id was found")
}

// isAhead reports whether the client has seen a zxid that this server has not.
func (c *conn) isAhead(seen znode.Zxid) (ahead bool) {
	c.listener.srv.View(func(v *server.View) { ahead = seen > v.Zxid() })
	return ahead
}

// aheadError refuses a client that has seen a zxid that this server has not.
type aheadError struct{ problem string }

func (e *aheadError) Error() string { return e.problem }

// identities are those that a connection has from the start: its address, and its certificate if it has one.
func (c *conn) identities() []znode.ID {
	address := c.remote
	if c.address.IsValid() {
		address = c.address.String()
	}
	a := c.listener.srv.Auth()
	return append(a.First(address), c.certificate()...)
}

// certificate returns the identities of the client's certificate.
func (c *conn) certificate() []znode.ID {
	if cert := tlsport.Certificate(c.net); cert != nil {
		return c.listener.srv.Auth().Certificate(cert)
	}
	return nil
}

// connecting is the request for a session. It implements server.Op.
type connecting struct {
	c        *conn
	q        *wire.ConnectRequest
	start    time.Time
	answered chan struct{} // gets one value for every proposal

	// Written by Done, read after a value came from answered.
	taken   bool
	refused error
	times   *forward.Times // during Done
}

// propose asks for a new session, or for the one the client names.
func (h *connecting) propose() error {
	timeout := time.Duration(h.q.TimeoutMillis) * time.Millisecond
	sc := h.c.sc.Load()
	if h.q.SessionID == 0 {
		return sc.OpenSession(timeout, h)
	}
	var password session.Password
	if len(h.q.Password) != len(password) {
		h.refuse()
		h.answered <- struct{}{}
		return nil
	}
	copy(password[:], h.q.Password)
	return sc.AttachSession(h.q.SessionID, password, timeout, h)
}

// outcome returns why the handshake has failed, and sends the answer.
func (h *connecting) outcome() error {
	if h.refused != nil {
		return h.refused
	}
	h.c.out.flush()
	return nil
}

// Read implements server.Op; a session is never read.
func (h *connecting) Read(*server.View) {}

// Weight implements server.Op.
func (h *connecting) Weight(*server.View) int { return 0 }

// Done implements server.Op.
func (h *connecting) Done(v *server.View, x *state.Result) {
	defer func() { h.answered <- struct{}{} }()
	h.taken, h.times = false, v.Times()
	switch {
	case x.Code == znode.ErrNodeExists && h.q.SessionID == 0:
		h.taken = true
	case x.Code == znode.ErrNotReadOnly: // since a moment ago; the session goes on
		h.refused = errMirrors
		h.c.out.end(h.refused.Error())
	case x.Code != znode.OK:
		h.refuse()
	case h.q.LastZxidSeen > v.Zxid():
		// Also after the log has brought this server to the present, the client
		// has seen more: this ensemble has lost writes. ZooKeeper closes
		// without an answer, so that the client tries another server.
		h.refused = &aheadError{fmt.Sprintf("client has seen zxid %s, the ensemble is at %s",
			h.q.LastZxidSeen, v.Zxid())}
		h.c.out.end(h.refused.Error())
	default:
		h.reply(&wire.ConnectResponse{
			TimeoutMillis: int32(x.Session.Timeout.Milliseconds()),
			SessionID:     x.Session.ID,
			Password:      x.Session.Password[:],
			ReadOnly:      h.c.readOnly,
		}, v.Zxid())
	}
}

// refuse reports to the client that its session has ended, and ends the
// connection.
func (h *connecting) refuse() {
	h.refused = errors.New("session is unknown or its password wrong")
	var none session.Password
	h.reply(&wire.ConnectResponse{Password: none[:]}, 0)
	h.c.out.end(h.refused.Error())
}

// reply sends the answer. The readOnly field is there if the client sent it.
func (h *connecting) reply(x *wire.ConnectResponse, zxid znode.Zxid) {
	x.HasReadOnly = h.q.HasReadOnly
	b, ok := h.c.out.begin()
	if !ok {
		return
	}
	r := request{c: h.c, op: wire.OpCreateSession, start: h.start, times: h.times}
	h.c.noteSlow(&r, h.c.out.stats.answered(&r, zxid))
	b, mark := wire.BeginFrame(b)
	b = x.Append(b)
	wire.EndFrame(b, mark)
	h.c.out.commit(b, false) // the reader waits for this and flushes
}
