package zk

import (
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/grid"
	"github.com/zk-lite/zk-lite/internal/wire"
)

const (
	// pongPeriod is how far apart on the clock the times are at which pings that wait
	// are answered: those at which the server looks after its sessions, with the usual
	// tick of two seconds.
	pongPeriod = 500 * time.Millisecond
	// pongTimeout is the shortest timeout of a session whose pings wait. Its client
	// takes a server for dead that was silent for two thirds of the timeout, and pings
	// in the middle of that, so that a twentieth of the timeout hurts nobody.
	pongTimeout = 20 * pongPeriod
	// maxPongs bounds the pings that wait, and so the time for which answering them
	// keeps a processor, to about a millisecond.
	maxPongs = 256
)

// pongs are the connections on which a ping waits, and nothing else: such pings are
// answered together, since each by itself costs a wake-up of the client's process, and
// keeps the server awake for longer than its arrival does (ADR 0015).
//
// Nothing runs while none waits.
type pongs struct {
	// mu protects the fields below, and held of the connections. It is taken before
	// the server's locks.
	mu      sync.Mutex
	waiting []*conn
	timer   *time.Timer // runs while there is one
	closed  bool
}

// hold lets c's ping wait for the others. It reports false when it must not.
func (p *pongs) hold(c *conn) bool {
	if !c.patient || c.in.have() > 0 || c.pending.Load() > 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.waiting) == maxPongs {
		return false
	}
	if len(p.waiting) == 0 {
		p.timer = time.AfterFunc(grid.Next(pongPeriod), p.answer)
	}
	p.waiting = append(p.waiting, c)
	c.held.Store(true)
	return true
}

// settle executes c's ping if it still waits: what c's reader executes next is answered
// after it, and sent with it.
func (p *pongs) settle(c *conn) {
	if !c.held.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.held.Load() {
		c.pong()
	}
}

// answer executes the pings that wait, and sends the answers.
func (p *pongs) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.waiting {
		if c.held.Load() {
			c.pong()
			c.out.nudge()
		}
	}
	clear(p.waiting)
	p.waiting = p.waiting[:0]
}

// close answers all that wait. From now on none does.
func (p *pongs) close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.answer()
}

// pong executes the ping that waits, with pongs.mu held, so that the reader is not doing
// anything with c. Its latency, in the figures, begins now.
func (c *conn) pong() {
	c.held.Store(false)
	r := c.newRequest(wire.RequestHeader{Type: wire.OpPing})
	r.start = time.Now()
	if err := c.sc.Load().Read(r); err != nil {
		c.out.end("server: " + err.Error())
	}
}
