package zk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/tlsport"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
)

// lingerTime is how long an ended connection waits for its client's FIN. To
// close at once would make the kernel send a reset if bytes of the client are
// unread, and the client could lose the last replies.
const lingerTime = time.Second

const (
	// quietTime is how long a client must have been silent before its connection is closed, when this server stops. One
	// that sends requests is disconnected with a reply: its next request is not on its way then.
	quietTime = 20 * time.Millisecond
	// defaultLeaveTimeout bounds the whole, for a client that never pauses and for requests that no leader answers.
	defaultLeaveTimeout = time.Second
)

// endReason returns why a connection has ended: why, if this server has ended it.
func endReason(err error, why string) string {
	switch {
	case why != "":
		return why
	case errors.Is(err, io.EOF):
		return "closed by the client"
	case err != nil:
		return err.Error()
	}
	return ""
}

// maxBroken is how many lines about clients that broke the protocol there are in repeats.Every.
const maxBroken = 10

// report logs why the connection has ended, on level debug if that is nothing unusual.
func (c *conn) report(err error, why string) {
	var bad *protocolError
	var ahead *aheadError
	var plain *tlsport.PlainError
	var unshaken *tlsport.HandshakeError
	switch {
	case errors.As(err, &ahead):
		c.listener.logRefusal("ahead", "remote", c.remote, "error", ahead)
	case errors.As(err, &bad), errors.As(err, &plain), errors.As(err, &unshaken):
		if unshaken != nil {
			c.note("login", audit.Failure, unshaken.Error())
		}
		level := slog.LevelDebug
		if pass, _ := c.listener.refusals.PassSome(maxBroken, "broken"); pass {
			level = slog.LevelInfo
		}
		c.listener.logger.Log(context.Background(), level, "a client broke the protocol",
			"remote", c.remote, "session", c.session(), "error", err)
	case why != "":
		c.listener.logger.Debug("client disconnected",
			"remote", c.remote, "session", c.session(), "reason", why)
	default:
		c.listener.logger.Debug("client has gone",
			"remote", c.remote, "session", c.session(), "error", err)
	}
}

// protocolError is a client's breach of the protocol that costs it the
// connection.
type protocolError struct{ problem string }

func (e *protocolError) Error() string { return e.problem }

func badf(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// linger lets the last replies of an ended connection arrive: it reads and
// discards until the client or the linger timer closes the connection.
func (c *conn) linger(err error) error {
	if sc := c.sc.Load(); sc != nil && !errors.Is(err, errWaits) {
		sc.Rest()
	}
	if errors.Is(err, errWaits) || err != nil && !c.out.isEnding() {
		return err
	}
	// The linger timer ends this, and no deadline from before.
	if c.net.SetReadDeadline(time.Time{}) != nil {
		return err
	}
	for {
		c.in.discard()
		if fillErr := c.in.fill(); fillErr != nil {
			// A client that only closed its sending side, as nc does, still waits
			// for the answer. The outbox gives up by itself (endGrace).
			<-c.gone
			return err
		}
	}
}

// ended closes the sending side, after the last bytes.
func (c *conn) ended() {
	close(c.gone)
	if sc := c.sc.Load(); sc != nil {
		sc.Close(c.out.reason()) // wakes a reader that waits for room in its queue
	}
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = c.net.Close()
		return
	}
	c.lingering.Store(time.AfterFunc(lingerTime, func() { _ = c.net.Close() }))
}

// Address implements server.Client.
func (c *conn) Address() string { return c.remote }

// Disconnect implements server.Client.
func (c *conn) Disconnect(r server.Reason) {
	if r == server.ReasonStopping || r == server.ReasonShed {
		c.leave(r)
		return
	}
	c.out.end(r.String())
}

// errLeaving interrupts a reader that waits for its client.
var errLeaving = errors.New("the client is to leave")

// leave ends the connection, because this server stops or is to have fewer clients, at a moment when all requests that
// it has read are answered. It never blocks.
func (c *conn) leave(r server.Reason) {
	if c.sc.Load() == nil { // there is nothing to answer yet
		c.out.end(r.String())
		return
	}
	if !c.leaving.CompareAndSwap(0, int32(r)) {
		return
	}
	_ = c.net.SetReadDeadline(time.Now()) // the reader looks at leaving
	rawconn.Wake(c.net)
	time.AfterFunc(c.listener.cfg.LeaveTimeout, func() { c.out.end(r.String()) })
}

// leaveNow is called by the reader when its client is to leave and no whole frame waits. It reports whether it has
// ended the connection, after the last reply; if not, there is more to read.
func (c *conn) leaveNow(served bool) (bool, error) {
	if c.in.have() > 0 || !served && c.pending.Load() == 0 {
		if err := c.net.SetReadDeadline(time.Now().Add(quietTime)); err != nil {
			return false, err
		}
		if err := c.in.fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return false, err
		}
	}
	c.closing = true
	c.submitted(c.sc.Load().Read(goAway{c}))
	return true, nil
}

// goAway is the last operation on a connection whose client is to leave. It implements server.Op.
type goAway struct{ c *conn }

// Read implements server.Op.
func (g goAway) Read(v *server.View) {
	if b, ok := g.c.out.begin(); ok {
		g.c.out.commit(wire.AppendReply(b, wire.GoAway(v.Zxid()), nil), false)
	}
	g.c.out.end(server.Reason(g.c.leaving.Load()).String())
}

// Weight implements server.Op.
func (goAway) Weight(*server.View) int { return 0 }

// Done implements server.Op; it is no write.
func (goAway) Done(*server.View, *state.Result) {}
