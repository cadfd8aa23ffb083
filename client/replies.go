package client

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// deadlineReader drops a connection that is silent for too long. Before the
// session timeout is known, the attempt to connect has its own deadline.
type deadlineReader struct {
	l    *link
	from time.Time // when the deadline was last moved
}

func (d *deadlineReader) Read(b []byte) (int, error) {
	if d.l.timeout == 0 {
		return d.l.conn.Read(b)
	}
	if now := time.Now(); d.from.IsZero() || now.Sub(d.from) > d.l.slack() {
		d.from = now
		if err := d.l.conn.SetReadDeadline(now.Add(d.l.silence())); err != nil {
			return 0, err
		}
	}
	return d.l.conn.Read(b)
}

// readAll is the reader's goroutine:
//
//	readAll         frame after frame, until the connection ends
//	  handle        header; what kind of frame is it?
//	    notify      an event: into the channels of the watches
//	    pong        a ping's answer: the session was alive when it was sent
//	    reply       takes the oldest operation, registers its watch,
//	                decodes the body, wakes the caller
//
// Everything happens in the order of the stream, so an event is in its channel
// before an operation completes whose reply came after it.
func (c *Client) readAll(l *link) error {
	var r jute.Reader
	for {
		payload, err := l.frames.Next()
		if err != nil {
			if isFrameLength(err) {
				err = fmt.Errorf("%w: %w", ErrProtocol, err)
			}
			return err
		}
		if err := c.handle(l, &r, payload); err != nil {
			return err
		}
	}
}

func (c *Client) handle(l *link, r *jute.Reader, payload []byte) error {
	r.Reset(payload)
	var h wire.ReplyHeader
	h.Decode(r)
	if err := r.Err(); err != nil {
		return protocolError("reply header: %w", err)
	}
	switch h.Xid {
	case wire.XidNotification:
		return c.notify(l, r, h.Zxid)
	case wire.XidPing:
		return c.pong(l, h)
	}
	return c.reply(l, r, h)
}

func (c *Client) notify(l *link, r *jute.Reader, zxid znode.Zxid) error {
	var e wire.WatcherEvent
	e.Decode(r)
	if err := r.Err(); err != nil {
		return protocolError("notification: %w", err)
	}
	if e.Type < znode.EventCreated || e.Type > znode.EventChildrenChanged {
		return protocolError("notification of type %d for %q, want 1 to 4", e.Type, e.Path)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return errLinkGone
	}
	if zxid <= 0 {
		zxid = NoZxid
	}
	// The zxid of an event does not become lastZxid: other events of the same
	// transaction may be in transit, and would be lost with the connection.
	c.watches.fireLocked(EventType(e.Type), e.Path, zxid)
	return nil
}

func (c *Client) pong(l *link, h wire.ReplyHeader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.link != l:
		return errLinkGone
	case wire.IsGoAway(h):
		l.taken = c.queue.First() // operations without a reply have not happened: send them again
		c.detachLocked(l, errServerLeaves)
		return errServerLeaves
	case len(l.pings) == 0:
		return protocolError("answer to a ping that was not sent")
	}
	c.noteAliveLocked(l.pings[0])
	l.pings = l.pings[1:]
	c.seenLocked(h.Zxid)
	return nil
}

// seenLocked records the zxid of a reply.
func (c *Client) seenLocked(z znode.Zxid) {
	if z > c.lastZxid {
		c.lastZxid = z
	}
	if c.restoring == 0 {
		c.restoreFrom = c.lastZxid
	}
}

func (c *Client) reply(l *link, r *jute.Reader, h wire.ReplyHeader) error {
	op, err := c.answered(l, h)
	if err != nil {
		return err
	}
	p := op.base()
	if h.Err != znode.OK && !p.missing {
		p.complete(h.Err)
		return nil
	}
	op.decode(r)
	if err := r.Err(); err != nil {
		// By the header it succeeded, but the result cannot be read.
		err = protocolError("%s reply: %w", p.op, err)
		p.err = nil
		c.discard(p)
		p.complete(p.lost(err))
		return err
	}
	if p.err != nil {
		c.discard(p)
	}
	p.complete(nil)
	return nil
}

// answered removes from the queue the operation that h answers. Replies come in
// the order of the requests, but those to auth may come earlier
// (ZooKeeperServer.processPacket answers them on another thread).
func (c *Client) answered(l *link, h wire.ReplyHeader) (operation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return nil, errLinkGone
	}
	if c.queue.Len() == 0 || c.queue.First() >= l.taken {
		return nil, protocolError("reply with xid %v, but no request is waiting", h.Xid)
	}
	op := c.queue.At(0)
	if p := op.base(); p.xid == h.Xid {
		c.queue.Pop()
	} else if op = c.takeAuthLocked(l, h.Xid); op == nil {
		return nil, protocolError("reply with xid %v, want %v (%s): replies are out of order",
			h.Xid, p.xid, p.op)
	}
	p := op.base()
	c.noteAliveLocked(p.at)
	c.seenLocked(h.Zxid)
	p.zxid = h.Zxid
	p.missing = p.op == wire.OpExists && h.Err == ErrNoNode
	if p.watch != nil {
		if p.missing {
			p.watch.kind = watchExist
		}
		c.watches.settleLocked(p, h.Err == znode.OK || p.missing)
	}
	if p.marks != nil {
		p.mark = p.marks.pushed
	}
	if p.settledLocked != nil {
		p.settledLocked(h.Err)
	}
	c.releaseLocked(p)
	return op, nil
}

// discard cancels the watch of an operation whose reply turns out to be an error.
func (c *Client) discard(p *call) {
	if p.watch != nil {
		p.watch.Cancel()
	}
}
