package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// run is the goroutine that connects. It alone decides when and where, and
// starts the two goroutines of a connection; it goes on when both have ended, so
// nothing of an old connection can be taken for something of the next.
func (c *Client) run() {
	for c.ctx.Err() == nil {
		l := c.connect()
		if l == nil {
			return
		}
		c.serve(l)
		c.hosts.preferred = l.target
		leaves := errors.Is(l.err, errServerLeaves)
		if leaves || isTimeout(l.err) {
			// It stops, or has gone silent: ask the others first.
			c.hosts.preferred = target{}
		}
		if leaves {
			continue
		}
		if c.clock()-l.since > c.backoff.max {
			c.backoff.reset()
		} else if !c.rest() {
			// It accepts sessions and drops them: not at full speed.
			return
		}
	}
}

// connect tries the servers until one accepts, and returns nil if the client is
// stopped before.
func (c *Client) connect() *link {
	for {
		for t, err := range c.hosts.round(c.ctx, c.attemptTime()) {
			var l *link
			if err == nil {
				l, err = c.attempt(t)
			}
			if err == nil {
				return l
			}
			if c.ctx.Err() != nil {
				return nil
			}
			c.cfg.logger.Info("connecting failed", "server", t.address, "error", err)
			c.mu.Lock()
			c.connectErr = err
			fatal := errors.Is(err, ErrAuthFailed) && !c.everConnectedLocked()
			c.mu.Unlock()
			if fatal {
				c.giveUp(err)
				return nil
			}
			if c.hosts.preferred == t {
				c.hosts.preferred = target{}
			}
		}
		if !c.rest() {
			return nil
		}
	}
}

// giveUp ends a client that was never connected, from the goroutine that connects.
func (c *Client) giveUp(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuseLocked(err)
	c.failQueueLocked(err)
	c.stop()
}

func (c *Client) everConnectedLocked() bool {
	select {
	case <-c.first:
		return true
	default:
		return false
	}
}

// rest waits between rounds and reports whether to go on.
func (c *Client) rest() bool {
	t := time.NewTimer(c.backoff.pause())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// attemptTime is how long one server may take: its share of the session timeout,
// or of what is left of it, so that a server that is silent leaves time for the
// others.
func (c *Client) attemptTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.cfg.timeout
	if s := c.session; s.timeout > 0 {
		d = max(s.aliveAt+s.lifetimeLocked()-c.clock(), minAttempt)
	}
	return max(d/time.Duration(len(c.hosts.list)), min(minAttempt, d))
}

// serve runs a connection until it ends.
func (c *Client) serve(l *link) {
	var wg sync.WaitGroup
	wg.Go(func() { l.fail(c.write(l)) })
	wg.Go(func() { l.fail(c.readAll(l)) })
	<-l.gone
	c.mu.Lock()
	c.detachLocked(l, l.err)
	c.mu.Unlock()
	wg.Wait()
	if c.ctx.Err() == nil {
		c.cfg.logger.Info("connection lost", "server", l.target.address, "error", l.err)
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
