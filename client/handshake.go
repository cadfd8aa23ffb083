package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/internal/fifo"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// attempt opens a connection to one server and brings the session onto it.
func (c *Client) attempt(t target) (*link, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.attemptTime())
	defer cancel()
	if err := c.closeLapsed(ctx, t); err != nil {
		return nil, err
	}
	l, err := c.open(ctx, t)
	if err != nil {
		return nil, err
	}
	// A read does not heed ctx; closing the connection ends it.
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	err = c.establish(l)
	if !stop() {
		err = contextError(ctx)
	}
	if err != nil {
		l.fail(err)
		return nil, fmt.Errorf("server %s: %w", t.address, err)
	}
	if err := c.attach(l); err != nil {
		l.fail(err)
		return nil, fmt.Errorf("server %s: %w", t.address, err)
	}
	return l, nil
}

// open dials, and shakes hands for TLS.
func (c *Client) open(ctx context.Context, t target) (*link, error) {
	conn, err := c.cfg.dial(ctx, "tcp", t.address)
	if err != nil {
		return nil, fmt.Errorf("dialing %s: %w", t.address, err)
	}
	if conn, err = c.startTLS(ctx, conn, t.host); err != nil {
		return nil, fmt.Errorf("TLS with %s: %w", t.address, err)
	}
	l := &link{
		conn: conn, target: t, direct: directTo(conn),
		wake: make(chan struct{}, 1), rest: make(chan []byte, 1), gone: make(chan struct{}),
	}
	l.frames = wire.NewFrameReader(&deadlineReader{l: l}, c.cfg.maxReply)
	return l, nil
}

// establish creates the session or moves it to l, and proves the identities.
func (c *Client) establish(l *link) error {
	c.mu.Lock()
	s, auth := c.session, c.auth
	req := wire.ConnectRequest{
		LastZxidSeen: c.lastZxid, TimeoutMillis: int32(c.cfg.timeout.Milliseconds()),
		SessionID: s.id, Password: s.password, HasReadOnly: true,
	}
	c.mu.Unlock()

	sent := c.clock()
	resp, err := exchangeConnect(l, &req)
	if err != nil {
		return c.wrongPort(l, err)
	}
	// A server that no longer knows the session must answer with neither id nor
	// timeout. If it returns another session instead, ours is lost all the same
	// (ZooKeeper's C client compares the ids, too).
	if resp.TimeoutMillis <= 0 || resp.SessionID == 0 ||
		req.SessionID != 0 && resp.SessionID != req.SessionID {
		return c.expired(s, l.target.address)
	}
	for _, a := range auth {
		exchange := exchangeAuth
		if a.scheme == saslScheme {
			exchange = exchangeSASL
		}
		if err := exchange(l, a); err != nil {
			return err
		}
	}
	l.session = s
	l.timeout = time.Duration(resp.TimeoutMillis) * time.Millisecond
	if !c.adopt(l, &resp, sent) {
		return sayGoodbye(l)
	}
	return nil
}

// adopt stores the server's answer about the session. It reports false if the
// client has given the session up meanwhile.
func (c *Client) adopt(l *link, resp *wire.ConnectResponse, sent time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := l.session
	if c.session != s || c.closing {
		return false
	}
	s.id, s.timeout, s.password = resp.SessionID, l.timeout, bytes.Clone(resp.Password)
	c.noteAliveLocked(sent)
	return true
}

// expired ends session s because a server no longer knows it.
func (c *Client) expired(s *session, server string) error {
	err := fmt.Errorf("%w: says %s", ErrSessionExpired, server)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.id == 0 {
		return protocolError("a new session was refused")
	}
	if c.session == s && !s.dead {
		c.connectErr = err
		c.loseSessionLocked(err)
	}
	return err
}

// sayGoodbye asks the server to close the session of a connection on which
// nothing else has been sent. The error is that the session was given up.
func sayGoodbye(l *link) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(minAttempt)); err != nil {
		return err
	}
	_, err := l.conn.Write(wire.AppendRequest(nil,
		wire.RequestHeader{Xid: 1, Type: wire.OpCloseSession}, nil))
	return errors.Join(errLinkGone, err)
}

func exchangeConnect(l *link, req *wire.ConnectRequest) (wire.ConnectResponse, error) {
	if req.Password == nil {
		req.Password = make([]byte, znode.PasswordSize)
	}
	var resp wire.ConnectResponse
	frame, mark := wire.BeginFrame(nil)
	frame = req.Append(frame)
	wire.EndFrame(frame, mark)
	if _, err := l.conn.Write(frame); err != nil {
		return resp, fmt.Errorf("sending the connect request: %w", err)
	}
	payload, err := l.frames.Next()
	if err != nil {
		return resp, fmt.Errorf("reading the connect response: %w", err)
	}
	r := jute.NewReader(payload)
	resp.Decode(r)
	if err := r.Err(); err != nil {
		return resp, protocolError("connect response: %w", err)
	}
	return resp, nil
}

func exchangeAuth(l *link, a credential) error {
	frame := wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidAuth, Type: wire.OpAuth},
		&wire.AuthRequest{Scheme: a.scheme, Auth: a.auth})
	if _, err := l.conn.Write(frame); err != nil {
		return fmt.Errorf("sending credentials: %w", err)
	}
	payload, err := l.frames.Next()
	if err != nil {
		return fmt.Errorf("reading the reply to credentials: %w", err)
	}
	r := jute.NewReader(payload)
	var h wire.ReplyHeader
	h.Decode(r)
	switch {
	case r.Err() != nil:
		return protocolError("auth reply: %w", r.Err())
	case h.Xid != wire.XidAuth:
		return protocolError("reply with xid %v, want %v", h.Xid, wire.XidAuth)
	case h.Err != znode.OK:
		return fmt.Errorf("credentials of scheme %s: %w", a.scheme, h.Err)
	}
	return nil
}

// attach makes l the connection of the client. It sends the watches first, then
// the operations that waited in the queue.
func (c *Client) attach(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.session != l.session {
		return errLinkGone
	}
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	state := StateReconnected
	if c.session.timer == nil {
		state = StateConnected
	}
	l.since = c.clock()
	c.link = l
	c.connectErr = nil
	c.resuming = false
	c.armDeadlineLocked()
	waiting := c.queue
	c.queue = fifo.Queue[operation]{}
	c.restoreLocked()
	for waiting.Len() > 0 {
		op := waiting.Pop()
		if err := c.encodeLocked(l, op); err != nil {
			c.finishLocked(op, err)
			continue
		}
		c.queue.Push(op)
	}
	if len(l.out) > 0 {
		l.wakeWriter()
	}
	c.setStateLocked(StateChange{State: state, Server: l.target.address})
	if !c.everConnectedLocked() {
		close(c.first)
	}
	return nil
}

// closeLapsed closes, on a separate connection, a session that the client
// assumed lost because it reached no server. The servers may still have it,
// with ephemerals such as locks that would otherwise remain until it expires
// there.
func (c *Client) closeLapsed(ctx context.Context, t target) error {
	c.mu.Lock()
	lapsed := c.lapsed
	c.mu.Unlock()
	if lapsed == nil {
		return nil
	}
	l, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer l.fail(errLinkGone)
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	resp, err := exchangeConnect(l, &wire.ConnectRequest{
		TimeoutMillis: int32(c.cfg.timeout.Milliseconds()),
		SessionID:     lapsed.ID, Password: lapsed.Password, HasReadOnly: true,
	})
	if err != nil {
		return fmt.Errorf("closing the lost session at %s: %w", t.address, err)
	}
	if resp.SessionID == lapsed.ID && resp.TimeoutMillis > 0 {
		_ = sayGoodbye(l) // if this fails, the session expires by itself
		_, _ = l.frames.Next()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lapsed == lapsed {
		c.lapsed = nil
	}
	return nil
}

// startTLS performs the TLS handshake on a new connection, if the client uses TLS.
func (c *Client) startTLS(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	cfg := c.cfg.tls
	switch {
	case c.cfg.opened != nil:
		if c.cfg.files.ServerName != "" {
			host = c.cfg.files.ServerName
		}
		if changed, err := c.cfg.opened.Reload(); changed && err != nil {
			c.cfg.logger.Warn("the new TLS files cannot be used; the old ones stay in use", "error", err)
		}
		cfg = c.cfg.opened.Client(host)
	case cfg == nil:
		return conn, nil
	default:
		cfg = cfg.Clone()
		if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
			cfg.ServerName = host
		}
	}
	cfg.NextProtos = append(slices.Clip(cfg.NextProtos), tlsfiles.Batches)
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) {
			err = fmt.Errorf("%w (%w)", ErrPortSpeaksPlain, err)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// noPassword stands for the password of a session that does not exist yet. Servers of ZooKeeper ignore it; a server of
// HTTP takes it for the end of a line, and answers that it does not understand that line, where it would wait for more.
const noPassword = "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"

// wrongPort explains a first reply that is one of HTTP, or an alert of TLS: a server with TLS can send nothing else to
// a client without it.
func (c *Client) wrongPort(l *link, err error) error {
	var length *wire.FrameLengthError
	if !errors.As(err, &length) {
		return err
	}
	_, secure := l.conn.(*tls.Conn)
	switch h := length.Header; {
	case string(h[:]) == "HTTP":
		return fmt.Errorf("%w (%w)", ErrPortSpeaksHTTP, err)
	case !secure && h[0] == 0x15 && h[1] == 3:
		return fmt.Errorf("%w (%w)", ErrPortSpeaksTLS, err)
	}
	return err
}

func isFrameLength(err error) bool { return errors.Is(err, wire.ErrFrameLength) }
