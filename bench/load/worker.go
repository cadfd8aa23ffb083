package load

import (
	"errors"
	"fmt"
	"time"
)

const (
	// burstBytes is how much a connection may have under way and still be
	// served by one goroutine that writes all before it reads: well below what
	// the sockets of both sides buffer, so that the write never waits for a
	// server that waits for its replies to be read.
	burstBytes = 64 << 10
	// flushBytes is how much a writer gathers before it sends, even if more is due.
	flushBytes = 16 << 10
	// drainTimeout is how long the replies to the last requests may take.
	drainTimeout = 10 * time.Second
)

// worker is one connection with its loop.
type worker struct {
	id       int
	conn     *conn
	requests *requester
	inFlight int
	rec      *Recorder
	timeout  time.Duration // of the session
	// acknowledged is Config's.
	acknowledged func(zxid int64, at time.Time)
	// pace is the open loop's; nil in a closed loop. next is its next request.
	pace *pace
	next int
	// again returns another connection after one has ended; nil, also as a function: the worker ends.
	again func(*conn) *conn
}

// run sends until the end of the measured time and takes the last replies.
func (w *worker) run() error {
	defer w.unsent()
	for {
		loop := w.split
		if w.pace == nil && w.requests.windowBytes(w.inFlight) <= burstBytes {
			loop = w.burst
		}
		err := loop()
		if err == nil {
			return nil
		}
		w.rec.Dropped()
		var c *conn
		if w.again != nil {
			c = w.again(w.conn)
		}
		if c == nil {
			return fmt.Errorf("connection %d: %w", w.id, err)
		}
		w.conn = c
	}
}

// burst is a closed loop in one goroutine: fill the window, write it with one call, read all
// replies that have arrived, fill the window again.
func (w *worker) burst() error {
	var (
		b       []byte
		window  = make([]sent, w.inFlight) // a ring
		first   int                        // of the oldest
		pending int
		now     = time.Now()
		s       sent
	)
	defer func() {
		for i := range pending {
			w.rec.Unanswered(window[(first+i)%len(window)].start)
		}
	}()
	w.conn.nc.SetReadDeadline(w.rec.Until().Add(drainTimeout))
	for {
		b = b[:0]
		for ; pending < w.inFlight && now.Before(w.rec.Until()); pending++ {
			b, s = w.requests.append(w.conn, b, now)
			window[(first+pending)%len(window)] = s
		}
		if len(b) > 0 {
			if _, err := w.conn.nc.Write(b); err != nil {
				return err
			}
		}
		if pending == 0 {
			return nil
		}
		for came := false; pending > 0 && (!came || w.conn.ready()); came = true {
			a, err := w.conn.read()
			if err != nil {
				return err
			}
			if !came {
				now = time.Now()
			}
			w.answer(&window[first], &a, now)
			first = (first + 1) % len(window)
			pending--
		}
	}
}

// answer records one reply.
func (w *worker) answer(s *sent, a *reply, now time.Time) {
	if a.Err != 0 {
		w.rec.Error(s.op, a.Err.Err())
		return
	}
	if s.op == Multi {
		if err := multiError(a.body); err != nil {
			w.rec.Error(s.op, err)
			return
		}
	}
	w.requests.done(s)
	if w.acknowledged != nil {
		w.acknowledged(int64(a.Zxid), now)
	}
	w.rec.Answer(w.id, s.op, s.start, now)
}

// split is a loop of two goroutines: this one reads, the other writes.
func (w *worker) split() error {
	l := &lane{window: make(chan sent, w.inFlight), slots: make(chan struct{}, w.inFlight),
		stop: make(chan struct{}), over: make(chan struct{})}
	defer time.AfterFunc(time.Until(w.rec.Until()), func() { close(l.over) }).Stop()
	written := make(chan error, 1)
	go func() {
		defer close(l.window)
		written <- w.write(l)
	}()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		w.keepAlive(l)
	}()
	w.conn.nc.SetReadDeadline(w.rec.Until().Add(drainTimeout))
	err := w.take(l)
	close(l.stop)
	if err != nil {
		w.conn.nc.SetWriteDeadline(time.Now()) // the writer may wait for a server that has ended
	}
	for s := range l.window {
		w.rec.Unanswered(s.start)
	}
	<-kept
	if writeErr := <-written; err == nil {
		err = writeErr
	}
	return err
}

// lane joins the reader and the writer of a connection.
type lane struct {
	window chan sent     // the sent requests, in order; has room for every slot
	slots  chan struct{} // one for each request without a reply
	stop   chan struct{} // closed when the reader has ended
	over   chan struct{} // closed at the end of the measured time
	b      []byte        // the writer's: appended and not yet sent
}

// take reads replies until the window is closed and empty.
func (w *worker) take(l *lane) error {
	var now time.Time
	for s := range l.window {
		waits := !w.conn.ready()
		a, err := w.conn.read()
		if err != nil {
			w.rec.Unanswered(s.start)
			return err
		}
		if waits || now.IsZero() {
			now = time.Now()
		}
		w.answer(&s, &a, now)
		<-l.slots
	}
	return nil
}

// write sends until the end: at its pace, or as fast as the window permits.
func (w *worker) write(l *lane) error {
	for {
		var start time.Time
		if w.pace != nil {
			start = w.pace.at(w.next)
			if !start.Before(w.rec.Until()) {
				return w.await(l, w.rec.Until()) // the session lives as long as the run
			}
			if err := w.await(l, start); err != nil {
				return err
			}
			start = w.pace.start(w.next)
		}
		if goOn, err := w.enter(l); !goOn {
			return err
		}
		if w.pace == nil {
			if start = time.Now(); !start.Before(w.rec.Until()) {
				return w.flush(l)
			}
		}
		var s sent
		l.b, s = w.requests.append(w.conn, l.b, start)
		l.window <- s
		w.next++
		if len(l.b) >= flushBytes {
			if err := w.flush(l); err != nil {
				return err
			}
		}
	}
}

// enter takes a slot of the window; if there is none, it sends what is due before it waits for
// one. It returns false when the reader has ended, or the time is over and still there is no
// room.
func (w *worker) enter(l *lane) (bool, error) {
	select {
	case l.slots <- struct{}{}:
		return true, nil
	default:
	}
	if err := w.flush(l); err != nil {
		return false, err
	}
	select {
	case l.slots <- struct{}{}:
		return true, nil
	case <-l.stop:
		return false, nil
	case <-l.over:
		return false, nil
	}
}

// unsent counts the requests that should have been sent and were not, because the server did not
// keep up with the rate.
func (w *worker) unsent() {
	if w.pace == nil {
		return
	}
	over := w.rec.Until()
	if now := time.Now(); now.Before(over) {
		over = now // interrupted, or without a connection
	}
	for ; w.pace.at(w.next).Before(over); w.next++ {
		w.rec.Unanswered(w.pace.at(w.next))
	}
}

func (w *worker) flush(l *lane) error {
	if len(l.b) == 0 {
		return nil
	}
	_, err := w.conn.nc.Write(l.b)
	l.b = l.b[:0]
	return err
}

// pingsATimeout is how many pings keep a session alive per timeout, as ZooKeeper's clients send
// them when they have sent nothing else: with its window full a client sends nothing until replies
// arrive.
const pingsATimeout = 3

// keepAlive sends pings beside the writer until the reader has ended.
func (w *worker) keepAlive(l *lane) {
	tick := time.NewTicker(w.timeout / pingsATimeout)
	defer tick.Stop()
	ping := w.conn.appendPing(nil)
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			if _, err := w.conn.nc.Write(ping); err != nil {
				return // the reader has the reason
			}
		}
	}
}

// await sends what is due and sleeps until a moment.
func (w *worker) await(l *lane, moment time.Time) error {
	left := time.Until(moment)
	if left <= 0 && time.Now().Before(w.rec.Until()) {
		return nil
	}
	if err := w.flush(l); err != nil {
		return err
	}
	if !w.pace.sleep(left, l.stop) {
		return errStopped
	}
	return nil
}

// errStopped ends the writer after the reader, which has the reason.
var errStopped = errors.New("the connection has ended")
