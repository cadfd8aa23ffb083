package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	dialTimeout = 5 * time.Second
	// maxReply is more than servers send, as for the list of a million children.
	maxReply = 256 << 20
	// readBytes is the buffer of a connection: a window of replies fits.
	readBytes = 64 << 10
)

// errSession reports that the server no longer knows the session.
var errSession = errors.New("the session has expired")

// session is what a connection needs to return to its session.
type session struct {
	id       znode.SessionID
	password []byte
	zxid     znode.Zxid // largest seen
}

// conn is one connection with a session. One goroutine may read while another
// writes.
type conn struct {
	nc      net.Conn
	r       *bufio.Reader
	large   []byte // holds a reply that is larger than the buffer of r
	session session
	xid     wire.Xid // of the last request; the writer's
	// patience bounds every wait for a reply, if it is not 0: a silent server must not hold up
	// the steps before and after a measurement.
	patience time.Duration
	goAway   bool // the server has announced that it did none of the unanswered requests
}

// reply has the parts of an answer that matter here. body is valid until the next one.
type reply struct {
	wire.ReplyHeader
	body []byte
}

// dialer opens sessions.
type dialer struct {
	timeout time.Duration // of the sessions
	tls     *tls.Config   // nil: none
	local   string        // Config.Local
	auth    string        // Config.Auth
}

func (c *Config) dialer() dialer { return dialer{c.SessionTimeout, c.TLS, c.Local, c.Auth} }

// connect dials a server and opens a session, or returns to one.
func (o *dialer) connect(ctx context.Context, host string, s session) (*conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	if o.local != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(o.local)}
	}
	nc, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	secure := o.tls
	if secure != nil {
		secure = secure.Clone()
		secure.NextProtos = []string{tlsfiles.Batches}
	}
	if nc, err = Secure(ctx, rawconn.New(nc), secure, host); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c, err := handshake(nc, o.timeout, s)
	if err != nil || o.auth == "" {
		return c, err
	}
	if err := c.identify(o.auth); err != nil {
		return nil, errors.Join(fmt.Errorf("%s refuses the identity: %w", host, err), c.nc.Close())
	}
	return c, nil
}

// identify adds an identity to the session, which a server forgets with the connection.
func (c *conn) identify(auth string) error {
	scheme, credentials, _ := strings.Cut(auth, ":")
	c.nc.SetDeadline(time.Now().Add(dialTimeout))
	defer c.nc.SetDeadline(time.Time{})
	_, err := c.nc.Write(wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidAuth, Type: wire.OpAuth},
		&wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}))
	if err != nil {
		return err
	}
	for {
		a, err := c.read()
		if err != nil {
			return err
		}
		if a.Xid == wire.XidAuth {
			return a.Err.Err()
		}
	}
}

// Secure speaks TLS on a new connection to a host:port, unless cfg is nil. It closes the connection on errors.
func Secure(ctx context.Context, nc net.Conn, cfg *tls.Config, host string) (net.Conn, error) {
	if cfg == nil {
		return nc, nil
	}
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(host)
	}
	c := tls.Client(nc, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// handshake opens a session on a new connection, and closes it on errors.
func handshake(nc net.Conn, timeout time.Duration, s session) (*conn, error) {
	c := &conn{nc: nc, r: bufio.NewReaderSize(nc, readBytes), session: s}
	if err := c.shake(timeout); err != nil {
		nc.Close()
		err = fmt.Errorf("opening a session at %s: %w", nc.RemoteAddr(), err)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			err = fmt.Errorf("%w: the server has closed the connection; does it allow so many from one address "+
				"(maxClientCnxns, 60 by default)?", err)
		}
		return nil, err
	}
	return c, nil
}

func (c *conn) shake(timeout time.Duration) error {
	password := c.session.password
	if password == nil {
		password = make([]byte, znode.PasswordSize)
	}
	request := wire.ConnectRequest{
		LastZxidSeen: c.session.zxid, TimeoutMillis: int32(timeout.Milliseconds()),
		SessionID: c.session.id, Password: password, HasReadOnly: true,
	}
	b, mark := wire.BeginFrame(nil)
	b = request.Append(b)
	wire.EndFrame(b, mark)
	c.nc.SetDeadline(time.Now().Add(dialTimeout))
	if _, err := c.nc.Write(b); err != nil {
		return err
	}
	payload, err := c.frame()
	if err != nil {
		return err
	}
	var response wire.ConnectResponse
	r := jute.NewReader(payload)
	response.Decode(r)
	if err := r.Err(); err != nil {
		return err
	}
	if response.SessionID == 0 || response.TimeoutMillis <= 0 {
		return errSession
	}
	c.session.id = response.SessionID
	c.session.password = append([]byte(nil), response.Password...)
	c.nc.SetDeadline(time.Time{})
	return nil
}

// append adds a request to b; the writer sends b.
func (c *conn) append(b []byte, op wire.OpCode, body wire.Request) []byte {
	c.xid++
	return wire.AppendRequest(b, wire.RequestHeader{Xid: c.xid, Type: op}, body)
}

// appendPing adds a ping, whose reply read skips.
func (c *conn) appendPing(b []byte) []byte {
	return wire.AppendRequest(b, wire.RequestHeader{Xid: wire.XidPing, Type: wire.OpPing}, nil)
}

// frame returns the next payload, which is valid until the next call.
func (c *conn) frame() ([]byte, error) {
	header, err := c.r.Peek(wire.FrameLengthBytes)
	if err != nil {
		return nil, err
	}
	n, err := wire.CheckFrameLength([wire.FrameLengthBytes]byte(header), maxReply)
	if err != nil {
		return nil, err
	}
	if whole := wire.FrameLengthBytes + n; whole <= c.r.Size() {
		b, err := c.r.Peek(whole)
		if err != nil {
			return nil, err
		}
		_, err = c.r.Discard(whole) // b stays as it is until the next read
		return b[wire.FrameLengthBytes:], err
	}
	if _, err := c.r.Discard(wire.FrameLengthBytes); err != nil {
		return nil, err
	}
	if cap(c.large) < n {
		c.large = make([]byte, n)
	}
	_, err = io.ReadFull(c.r, c.large[:n])
	return c.large[:n], err
}

// ready reports whether the next frame has arrived whole.
func (c *conn) ready() bool {
	if c.r.Buffered() < wire.FrameLengthBytes {
		return false
	}
	header, err := c.r.Peek(wire.FrameLengthBytes)
	return err == nil &&
		c.r.Buffered() >= wire.FrameLengthBytes+int(binary.BigEndian.Uint32(header))
}

// read returns the next reply or notification; replies to pings are skipped.
func (c *conn) read() (reply, error) {
	for {
		if c.patience > 0 {
			c.nc.SetDeadline(time.Now().Add(c.patience))
		}
		payload, err := c.frame()
		if err != nil {
			return reply{}, err
		}
		if len(payload) < wire.ReplyHeaderBytes {
			return reply{}, fmt.Errorf("a reply of %d bytes has no header", len(payload))
		}
		var a reply
		a.Xid = wire.Xid(binary.BigEndian.Uint32(payload))
		a.Zxid = znode.Zxid(binary.BigEndian.Uint64(payload[4:]))
		a.Err = znode.Error(binary.BigEndian.Uint32(payload[12:]))
		a.body = payload[wire.ReplyHeaderBytes:]
		c.session.zxid = max(c.session.zxid, a.Zxid)
		if a.Xid != wire.XidPing {
			return a, nil
		}
		c.goAway = c.goAway || wire.IsGoAway(a.ReplyHeader)
	}
}

// do sends one request and returns its reply; notifications are dropped. The
// error code of the reply is an error.
func (c *conn) do(op wire.OpCode, body wire.Request) (reply, error) {
	if _, err := c.nc.Write(c.append(nil, op, body)); err != nil {
		return reply{}, fmt.Errorf("%s: %w", op, err)
	}
	for {
		a, err := c.read()
		if err != nil {
			return a, fmt.Errorf("%s: %w", op, err)
		}
		if a.Xid == c.xid {
			return a, a.Err.Err()
		}
	}
}

// closeSession ends the session and the connection.
func (c *conn) closeSession() error {
	c.nc.SetDeadline(time.Now().Add(dialTimeout))
	_, err := c.do(wire.OpCloseSession, nil)
	return errors.Join(err, c.nc.Close())
}
