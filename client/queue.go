package client

import (
	"context"
	"math"
	"slices"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// waiter is a caller that waits for room for its operation. Waiters get room in
// the order of their calls.
type waiter struct {
	size    int
	ready   chan struct{} // closed when granted or refused
	granted bool
}

// submit queues an operation, or completes it with an error. It blocks until
// there is room or ctx ends.
func (c *Client) submit(ctx context.Context, op operation) {
	p := op.base()
	switch {
	case p.err != nil:
		p.complete(nil)
		return
	case ctx.Err() != nil:
		p.complete(contextError(ctx))
		return
	case p.size-requestOverhead > c.cfg.maxRequest:
		p.complete(ErrTooLarge)
		return
	}
	c.mu.Lock()
	if len(c.waiters) > 0 || !c.fitsLocked(p.size) {
		w := &waiter{size: p.size, ready: make(chan struct{})}
		c.waiters = append(c.waiters, w)
		c.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if !w.granted {
			c.waiters = slices.DeleteFunc(c.waiters, func(o *waiter) bool { return o == w })
			c.used++
			c.bytes += p.size // so that release is right in every case below
		}
	} else {
		c.used++
		c.bytes += p.size
	}
	var buf []byte
	var l *link
	err := c.admitLocked(ctx)
	if err == nil {
		buf, err = c.startLocked(op)
		l = c.link
	}
	if err != nil {
		c.releaseLocked(p)
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		p.complete(err)
	case buf != nil:
		c.sendDirect(l, buf, p.at)
	}
}

// startLocked is pushLocked, but the caller must write what it returns: a single
// request on an idle connection gains nothing by waiting for others.
func (c *Client) startLocked(op operation) ([]byte, error) {
	first, err := c.appendLocked(op)
	if err != nil || !first {
		return nil, err
	}
	if l := c.link; l.direct != nil && c.queue.Len() == 1 && len(l.out) <= directBytes {
		return c.takeLocked(l), nil
	}
	c.link.wakeWriter()
	return nil, nil
}

func (c *Client) fitsLocked(size int) bool {
	// One request alone always fits, whatever its size.
	return c.used < c.cfg.maxInFlight && (c.used == 0 || c.bytes+size <= c.cfg.maxQueued)
}

// admitLocked reports why an operation cannot be accepted now.
func (c *Client) admitLocked(ctx context.Context) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	if c.refusal != nil {
		return c.refusal
	}
	if s, ok := ctx.Value(sessionKey{}).(*session); ok && s != c.session {
		return ErrSessionExpired
	}
	return nil
}

// pushLocked appends an operation to the queue, and to what the writer will
// send if there is a connection.
func (c *Client) pushLocked(op operation) error {
	first, err := c.appendLocked(op)
	if first {
		c.link.wakeWriter()
	}
	return err
}

// appendLocked is pushLocked without waking the writer. It reports whether the
// writer must be woken: nothing was waiting, and no goroutine is writing.
func (c *Client) appendLocked(op operation) (first bool, err error) {
	if l := c.link; l != nil {
		idle := len(l.out) == 0
		if err := c.encodeLocked(l, op); err != nil {
			return false, err
		}
		first = idle && !l.writing
	}
	if p := op.base(); p.watch != nil {
		c.watches.expectLocked(p.full)
	}
	c.queue.Push(op)
	return first, nil
}

// encodeLocked appends the frame of op to the output of l.
func (c *Client) encodeLocked(l *link, op operation) error {
	p := op.base()
	if len(l.out) == 0 {
		l.outSince = c.clock()
	}
	p.at = l.outSince
	p.xid = c.nextXidLocked(p.op)
	start := len(l.out)
	header := wire.RequestHeader{Xid: p.xid, Type: p.op}
	l.out = wire.AppendRequest(l.out, header, op.request())
	if n := len(l.out) - start - wire.FrameLengthBytes; n > c.cfg.maxRequest && !p.internal {
		l.out = l.out[:start]
		return ErrTooLarge
	}
	return nil
}

func (c *Client) nextXidLocked(op wire.OpCode) wire.Xid {
	if op == wire.OpAuth {
		return wire.XidAuth
	}
	if c.xid == math.MaxInt32 {
		c.xid = 0
	}
	c.xid++
	return c.xid
}

// releaseLocked gives the room of an operation that left the queue to waiters.
func (c *Client) releaseLocked(p *call) {
	if p.internal {
		return
	}
	c.used--
	c.bytes -= p.size
	for len(c.waiters) > 0 && c.fitsLocked(c.waiters[0].size) {
		w := c.waiters[0]
		c.waiters = c.waiters[1:]
		c.used++
		c.bytes += w.size
		w.granted = true
		close(w.ready)
	}
}

// refuseLocked lets no operation in from now on. The first reason stays.
func (c *Client) refuseLocked(cause error) {
	if c.refusal == nil {
		c.refusal = cause
	}
	for _, w := range c.waiters {
		close(w.ready)
	}
	c.waiters = nil
}

// failQueueLocked fails the operations that have not been sent.
func (c *Client) failQueueLocked(cause error) {
	for c.queue.Len() > 0 {
		c.finishLocked(c.queue.Pop(), cause)
	}
}

// finishLocked completes an operation without an answer that was just taken
// from the queue.
func (c *Client) finishLocked(op operation, cause error) {
	p := op.base()
	if p.watch != nil {
		c.watches.settleLocked(p, false)
	}
	c.releaseLocked(p)
	p.complete(cause)
}

// abandon is called when the caller stops waiting for p because of cause. It
// returns the error to report, and false if p has been answered meanwhile.
func (c *Client) abandon(p *call, cause error) (err error, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-p.done:
		return nil, false
	default:
	}
	p.abandoned = true
	if c.link == nil && c.removeLocked(p) {
		// It was never sent: without a connection the queue holds
		// nothing else.
		if p.watch != nil {
			c.watches.settleLocked(p, false)
		}
		c.releaseLocked(p)
		return cause, true
	}
	return p.lost(cause), true
}

// removeLocked takes an operation out of the queue, and reports whether it was there.
func (c *Client) removeLocked(p *call) bool {
	for i := range c.queue.Len() {
		if c.queue.At(i).base() == p {
			c.queue.Delete(i)
			return true
		}
	}
	return false
}
