package server

import (
	"context"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// Moment is a time by this machine's clocks, of which none is ever set.
type Moment struct {
	at   time.Time     // the monotonic clock's, which stands still while the machine sleeps
	boot time.Duration // since the machine's start; goes on meanwhile, where the system has such a clock
}

// Now is the present moment.
func Now() Moment { return Moment{time.Now(), sinceBoot()} }

// Known reports whether m is a moment at all.
func (m Moment) Known() bool { return !m.at.IsZero() }

// Age is how long ago a moment was. What no clock of a virtual machine counts is missing: that its host had stopped it.
func (m Moment) Age() time.Duration { return max(time.Since(m.at), sinceBoot()-m.boot) }

// Freshness is how old this server's state may be: whatever any server had acknowledged before the newest completed
// barrier began is in it. Only this machine's clocks are asked, and none of what a leader says by itself: a
// heartbeat may have been on its way for long, and its sender may have been replaced meanwhile.
type Freshness struct {
	srv *Server

	mu      sync.Mutex // protects the fields below
	applied *Barrier   // of those that have been applied, the one begun last; nil: there was none
	running *Barrier   // of those that others may wait for, the one begun last; nil: it has ended
}

// Barrier is a command that changes nothing, on its way through the log.
type Barrier struct {
	began  Moment
	mirror bool          // the state was a mirror: ZooKeeper's leader was asked
	done   chan struct{} // closed when it has been applied, or err is set
	err    error
}

// Known returns a moment before which everything that was acknowledged is in the state, if one is known; ok: and is at
// most maxStale ago. A halted server, whose state is wrong, knows none.
func (f *Freshness) Known(maxStale time.Duration) (m Moment, ok bool) {
	f.mu.Lock()
	b := f.applied
	f.mu.Unlock()
	if b == nil || b.mirror != f.srv.Source.on.Load() || f.srv.Status().Halt != nil {
		return Moment{}, false
	}
	return b.began, b.began.Age() <= maxStale
}

// Within is Known after a barrier, if it needs one: that which is running, if it began at most maxStale ago, or
// another. The moment is at most maxStale before the call.
func (f *Freshness) Within(ctx context.Context, maxStale time.Duration) (Moment, error) {
	for {
		b, own := f.join(maxStale)
		if own {
			b.err = f.sync(ctx)
			f.end(b)
			return b.began, b.err
		}
		select {
		case <-b.done:
			if b.err == nil {
				return b.began, nil
			}
		case <-ctx.Done():
			return Moment{}, ctx.Err()
		}
	}
}

// join returns a barrier that began at most maxStale ago, or a new one that is the caller's to run.
func (f *Freshness) join(maxStale time.Duration) (b *Barrier, own bool) {
	b = f.Begin()
	halted := f.srv.Status().Halt != nil
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range []*Barrier{f.applied, f.running} {
		if of != nil && maxStale > 0 && of.began.Age() <= maxStale && of.mirror == b.mirror && !halted {
			return of, false
		}
	}
	f.running = b
	return b, true
}

// end takes in the outcome of a barrier for which others may wait.
func (f *Freshness) end(b *Barrier) {
	if b.err == nil {
		f.Applied(b)
	} else {
		close(b.done)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running == b {
		f.running = nil
	}
}

// Begin returns a barrier that is about to be sent.
func (f *Freshness) Begin() *Barrier {
	return &Barrier{began: Now(), mirror: f.srv.Source.on.Load(), done: make(chan struct{})}
}

// Applied takes in that this server has applied a barrier, and returns when that began.
func (f *Freshness) Applied(b *Barrier) Moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(b.done)
	if (f.applied == nil || b.began.at.After(f.applied.began.at)) && b.mirror == f.srv.Source.on.Load() {
		f.applied = b
	}
	return b.began
}

// sync sends a barrier and waits until this server has applied it.
func (f *Freshness) sync(ctx context.Context) error {
	s := f.srv
	c := &state.Command{Op: state.OpSync}
	if s.Source.on.Load() { // ZooKeeper's leader is asked
		if s.Source.Lost() {
			return ErrSourceLost
		}
		id, err := s.Source.ownSession(ctx)
		if err != nil {
			return err
		}
		c.Session, c.Flags = id, state.FlagAnyServer
	}
	r, err := s.Do(ctx, c)
	if err == nil && r.Code != znode.OK {
		err = r.Code
	}
	return err
}
