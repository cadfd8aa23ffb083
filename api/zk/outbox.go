package zk

import (
	"net"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/tlsport"
	"github.com/zk-lite/zk-lite/server/insight"
)

const (
	// outboxHighWater is the bytes that may wait for a client before its reader
	// takes the next request: below Config.OutboxBytes by far, so that a client
	// that asks for much and reads slowly is slowed down and not cut off.
	outboxHighWater = 512 << 10
	// outboxUncounted is the bytes of one outbox that do not count for all.
	outboxUncounted = 64 << 10
	// writeChunk is what must be taken within Config.WriteTimeout.
	writeChunk = 256 << 10
	// endGrace is how long the last bytes of a connection that is ended may take.
	endGrace = time.Second
)

// outbox holds the replies and events for one client, in order.
type outbox struct {
	share   // of the bytes that wait
	pool    *buffers
	limit   int
	all     *shares
	timeout time.Duration
	send    func([]byte) (int, error) // writes to conn, which may have to wait
	ended   func()                    // called once, when an ended outbox has been sent or given up

	mu       sync.Mutex // protects the fields below
	changed  *sync.Cond // on mu: sending, writing or failed has changed; nil: no one has waited for that
	buf      *buffer    // bytes that no writer has taken yet; nil: none
	sending  int        // bytes that a writer has taken out of buf
	largest  int        // bytes of the largest message since nothing waited
	counted  int        // bytes that all has of this one
	writing  bool       // a goroutine writes, or is about to
	ending   bool       // nothing may be added
	failed   bool       // the rest will not be sent
	reported bool       // ended was called
	why      string     // the reason for ending
	stats    stats
	since    time.Time             // when the first reply in buf was given; zero: there is none
	slow     []insight.SlowRequest // whose replies are in buf
	isSlow   func(since time.Time, slow []insight.SlowRequest)
}

func (o *outbox) init(c net.Conn, pool *buffers, all *shares, cfg *Config, ended func()) {
	o.conn, o.pool, o.all, o.limit, o.timeout = c, pool, all, cfg.OutboxBytes, cfg.WriteTimeout
	o.ended = ended
	o.send = c.Write
	if port, ok := c.(*tlsport.Conn); ok {
		o.send = port.WriteFrames
	}
	o.stats.lastXid = -1
}

// begin locks the outbox for one message, which the caller appends to b and
// hands to commit at once. It reports false, and holds no lock, when nothing
// may be added. One message may be larger than the bound, and is not held against
// what follows it.
func (o *outbox) begin() (b []byte, ok bool) {
	o.mu.Lock()
	if !o.ending && o.waitingLocked()-o.largest > o.limit {
		o.all.closed.Add(1)
		o.endLocked("client does not read: the outbox is full")
	}
	if o.ending {
		o.mu.Unlock()
		return nil, false
	}
	if o.buf == nil {
		o.buf = o.pool.get()
	}
	return o.buf.b, true
}

// commit takes over what begin gave out and was appended to. With wake, a
// writer is started; else the reader promises to flush.
func (o *outbox) commit(b []byte, wake bool) {
	added := len(b) - len(o.buf.b)
	o.stats.server.out(int64(added))
	o.largest = max(o.largest, added)
	o.buf.b = b
	o.countLocked()
	if wake {
		o.wakeLocked()
	}
	o.mu.Unlock()
}

// countLocked updates this outbox's share. A small one is not counted: each message would update a shared counter.
func (o *outbox) countLocked() {
	waiting := o.waitingLocked()
	if waiting <= outboxUncounted {
		waiting = 0
	}
	if waiting != o.counted {
		o.counted = waiting
		o.all.hold(&o.share, waiting)
	}
}

func (o *outbox) waitingLocked() int {
	if o.buf == nil {
		return o.sending
	}
	return o.sending + len(o.buf.b)
}

// wakeLocked starts a writer if there is none.
func (o *outbox) wakeLocked() {
	if !o.writing {
		o.writing = true
		go o.write()
	}
}

// wake starts a writer if anything waits.
func (o *outbox) wake() {
	o.mu.Lock()
	if o.buf != nil {
		o.wakeLocked()
	}
	o.mu.Unlock()
}

// flush writes the bytes that wait, unless a writer is active.
func (o *outbox) flush() {
	o.mu.Lock()
	if o.buf == nil || o.writing {
		o.mu.Unlock()
		return
	}
	o.writing = true
	o.mu.Unlock()
	o.write()
}

// isFull reports whether a client gets more than it reads.
func (o *outbox) isFull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waitingLocked() > outboxHighWater
}

// flushNow is flush that does not wait for the client: if it has no room, a writer does.
func (o *outbox) flushNow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf == nil || o.writing {
		return
	}
	n := 0
	if o.isSlow == nil {
		n, _ = rawconn.WriteNow(o.conn, o.buf.b) // the writer finds the error, too
	}
	if n < len(o.buf.b) {
		o.buf.b = o.buf.b[:copy(o.buf.b, o.buf.b[n:])]
		o.wakeLocked()
		return
	}
	o.pool.put(o.buf)
	o.buf, o.largest = nil, 0
	o.countLocked()
}

// slowDown waits until a client that gets more than it reads has caught up.
func (o *outbox) slowDown() {
	o.mu.Lock()
	for o.waitingLocked() > outboxHighWater && !o.failed && !o.ending {
		if o.writing {
			o.waitForWriterLocked()
			continue
		}
		o.writing = true
		o.mu.Unlock()
		o.write()
		o.mu.Lock()
	}
	o.mu.Unlock()
}

// write sends until nothing waits. The caller has set writing.
func (o *outbox) write() {
	o.mu.Lock()
	for o.buf != nil && !o.failed {
		x := o.buf
		slow, since := o.slow, o.since
		o.buf, o.slow, o.since, o.sending = nil, nil, time.Time{}, len(x.b)
		o.sendLocked(x.b)
		o.sending = 0
		o.countLocked()
		if o.buf == nil {
			o.largest = 0
		}
		o.pool.put(x)
		o.changedLocked()
		if o.isSlow != nil && !since.IsZero() {
			o.mu.Unlock()
			o.isSlow(since, slow)
			o.mu.Lock()
		}
	}
	if o.ending && !o.reported {
		o.reported = true
		o.mu.Unlock()
		o.ended()
		o.mu.Lock()
	}
	o.writing = false
	o.changedLocked()
	o.mu.Unlock()
}

func (o *outbox) waitForWriterLocked() {
	if o.changed == nil {
		o.changed = sync.NewCond(&o.mu)
	}
	o.changed.Wait()
}

func (o *outbox) changedLocked() {
	if o.changed != nil {
		o.changed.Broadcast()
	}
}

// sendLocked writes b, without the lock. A client that takes nothing for too
// long has failed.
func (o *outbox) sendLocked(b []byte) {
	for len(b) > 0 && !o.failed {
		chunk := b[:min(len(b), writeChunk)]
		b = b[len(chunk):]
		o.mu.Unlock()
		n, err := rawconn.WriteNow(o.conn, chunk)
		o.mu.Lock()
		if err == nil && n < len(chunk) {
			err = o.waitLocked(chunk[n:])
		}
		if err != nil {
			o.failed = true
			// The reader must notice. Closing never blocks: no linger is set.
			_ = o.conn.Close()
		} else if len(b) > 0 && o.counted > 0 {
			o.all.took(&o.share)
		}
	}
}

// waitLocked writes b to a client that has no room for it yet, without the lock.
func (o *outbox) waitLocked(b []byte) error {
	patience := o.timeout
	if o.ending {
		patience = endGrace
	}
	if err := o.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	o.mu.Unlock()
	_, err := o.send(b)
	o.mu.Lock()
	if err == nil && !o.ending { // then the deadline is endLocked's
		err = o.conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// end accepts nothing more, has the rest sent, and then ended called. It
// never blocks. Only the first reason counts.
func (o *outbox) end(why string) {
	o.mu.Lock()
	o.endLocked(why)
	o.mu.Unlock()
}

func (o *outbox) endLocked(why string) {
	if o.ending {
		return
	}
	o.ending, o.why = true, why
	if o.writing {
		// It may be stuck; the connection is closed anyway if this fails.
		_ = o.conn.SetWriteDeadline(time.Now().Add(endGrace))
	}
	o.wakeLocked()
}

// reason returns why the outbox ends; empty: it does not.
func (o *outbox) reason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.why
}

// isEnding reports whether nothing more can be sent.
func (o *outbox) isEnding() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending
}

// close drops the bytes that wait and returns when no writer is left. The connection
// has been closed. It returns why the connection was ended, if it was.
func (o *outbox) close() (why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending, o.failed = true, true
	for o.writing {
		o.waitForWriterLocked()
	}
	if o.buf != nil {
		o.pool.put(o.buf)
		o.buf = nil
		o.countLocked()
	}
	return o.why
}
