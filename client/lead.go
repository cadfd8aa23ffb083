package client

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// A caller that waits for the answer to the only request on a connection can as well
// read it itself, which saves the way through the reader's goroutine: two changes of
// goroutine and a read that finds nothing. Since nothing can call back a read from a
// socket cheaply, the reader's goroutine must not have begun one. So it parks itself
// when such callers have come one after the other, and they are the leaders, as in the
// pattern of leader and followers. It reads again as soon as something is under way
// that no leader waits for, and when no leader has come for leaseTime.

// leadStreak is how many answers in a row must have gone to callers that were alone
// and waited before the reader's goroutine parks. With more callers than one at a time
// the queue is rarely empty so often.
const leadStreak = 16

// leaseTime is for how long nobody may read after a leader has ended. A server has
// nothing to say then but that the connection ends, because there are no watches; so
// that is noticed so much later.
const leaseTime = 5 * time.Millisecond

// aheadBytes is what is read at a time, and the largest answer that a leader reads.
const aheadBytes = 32 << 10

// park has the reader's goroutine leave reading to callers, and reports false if it
// must go on.
func (c *Client) park(l *link) bool {
	if l.streak < leadStreak || l.ahead.Buffered() > 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.parked = c.link == l && !l.pendingLocked(c)
	return l.parked
}

// pendingLocked reports whether something has come, or may come, that is no leader's
// business.
func (l *link) pendingLocked(c *Client) bool {
	return c.queue.n > 0 || len(l.pings) > 0 || len(c.watches.paths) > 0
}

// stayParked waits until the reader's goroutine has to read again.
func (c *Client) stayParked(l *link, lease *time.Timer) error {
	lease.Reset(c.cfg.lease)
	for {
		select {
		case <-l.resume:
			l.dropGuard()
			return nil
		case <-l.gone: // and perhaps a leader is still reading
			return l.err
		case <-lease.C:
			left := c.leaseLeft(l)
			if left <= 0 {
				l.dropGuard()
				return nil
			}
			lease.Reset(left)
		}
	}
}

// leaseLeft ends the parking if no leader has come for long enough, and returns 0 or
// less; otherwise it returns when to ask again.
func (c *Client) leaseLeft(l *link) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.parked || l.leader != nil {
		return c.cfg.lease
	}
	left := l.led + c.cfg.lease - c.clock()
	if left <= 0 {
		l.parked, l.streak = false, 0
	}
	return left
}

// leadLocked makes the caller of p, which is about to be written, the leader if the
// reader's goroutine is parked. The caller must call lead then.
func (l *link) leadLocked(p *call, done <-chan struct{}) {
	if l.parked && l.leader == nil {
		l.leader, l.leaderDone, l.interrupted = p, done, false
		p.leads = l
		l.leaders.Add(1)
	}
}

// resumeLocked ends the parking of the reader's goroutine, unless there is a leader.
func (l *link) resumeLocked() {
	if l.parked && l.leader == nil {
		l.parked = false
		l.resume <- struct{}{} // has room: it is taken before the goroutine parks again
	}
}

// lead reads until p has its answer, ctx ends, or the connection does.
func (c *Client) lead(ctx context.Context, p *call) {
	l := p.leads
	p.leads = nil
	l.leading = true
	if err := c.readUntil(ctx, l, p); err != nil {
		l.fail(err)
	}
	l.leading = false
	c.mu.Lock()
	l.leader, l.leaderDone = nil, nil
	l.led = c.clock()
	if l.interrupted {
		l.readFrom = -l.silence() // the deadline of reads has passed, whatever was read
	}
	if c.link == l && (l.pendingLocked(c) || l.ahead.Buffered() > 0) {
		l.resumeLocked()
	}
	c.mu.Unlock()
	l.leaders.Done()
}

// readUntil is lead without what goes before and after. An error is the connection's.
func (c *Client) readUntil(ctx context.Context, l *link, p *call) error {
	if c.clock()-l.readFrom > l.slack() {
		if err := c.setReadDeadline(l); err != nil {
			return err
		}
	}
	c.guard(ctx, l)
	// Asked after a deadline was set, which may have undone what guard had done.
	for ctx.Err() == nil {
		fits, err := l.peek()
		switch {
		case err != nil && c.wasInterrupted(l):
			continue // the next reader sets its own deadline
		case err != nil:
			return err
		case !fits:
			return nil
		}
		if err := c.next(l); err != nil {
			return err
		}
		select {
		case <-p.done:
			return nil
		default:
		}
		// It was the answer to a ping: the server is slow, but there.
		if err := c.setReadDeadline(l); err != nil {
			return err
		}
	}
	return nil
}

// peek waits until the next frame is buffered whole, and reports false if there is no
// room for it. Unlike reading a frame it can be tried again after an error.
func (l *link) peek() (fits bool, err error) {
	head, err := l.ahead.Peek(wire.FrameLengthBytes)
	if err == nil {
		length := binary.BigEndian.Uint32(head)
		if length > aheadBytes-wire.FrameLengthBytes {
			return false, nil
		}
		_, err = l.ahead.Peek(wire.FrameLengthBytes + int(length))
	}
	if errors.Is(err, io.EOF) && l.ahead.Buffered() > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err == nil, err
}

// guard has the read of a leader end with the leader's context. It stays for the next
// one, whose context is often the same.
func (c *Client) guard(ctx context.Context, l *link) {
	done := ctx.Done()
	if done == l.guarded {
		return
	}
	l.dropGuard()
	if done == nil {
		return
	}
	l.guarded = done
	l.unguard = context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		// Another leader, or none, may read by now.
		if l.leader != nil && l.leaderDone == done {
			l.interrupted = true
			_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // fails if the read has ended, too
		}
	})
}

func (l *link) dropGuard() {
	if l.unguard != nil {
		l.unguard()
	}
	l.guarded, l.unguard = nil, nil
}

// wasInterrupted reports whether a read was ended by guard.
func (c *Client) wasInterrupted(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.interrupted
}
