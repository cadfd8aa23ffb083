package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// Serving reports whether new clients are served: whether a leader was known
// to have a majority a short while ago, and this server has, since it came back in
// touch with one, caught up with what had been acknowledged by then.
func (s *Server) Serving() bool {
	return s.catchUp.upToDate() && !s.draining.Load()
}

// catchingUp is how a server that was out of touch comes back: in touch, it sends a
// command that changes nothing, and when it has applied that, it has applied all that
// came before. ZooKeeper's learners synchronise with the leader before they serve.
type catchingUp struct {
	srv *Server

	mu     sync.Mutex // protects the fields below
	lapse  uint64     // counts the times when it was found out of touch
	sent   *sentSync  // under way; nil: none
	done   bool       // caught up since the last lapse
	ever   bool       // caught up since the start
	logged bool       // done, as the log has it
}

// upToDate reports whether this server is in touch and has caught up, and sends the command
// with which it catches up if it is time to.
func (c *catchingUp) upToDate() bool {
	s := c.srv
	status := s.Status()
	done, news := c.check(status.Contact <= s.cfg.patience(s.cfg.MinSessionTimeout))
	switch {
	case !news:
	case done:
		s.logger.Info("serving clients", "role", status.Role, "leader", status.Leader)
	default:
		s.logger.Warn("not serving clients: out of touch with a leader and a majority",
			"role", status.Role, "leader", status.Leader)
	}
	return done
}

// check reports whether the server has caught up, and whether that is news for the log.
func (c *catchingUp) check(inTouch bool) (done, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ever = c.ever || c.done
	switch {
	case !inTouch:
		if c.done || c.sent != nil {
			c.lapse++
			c.done, c.sent = false, nil
		}
	case !c.done && c.sent == nil:
		w := &sentSync{c, c.lapse}
		c.sent = w
		go func() { // it may have to wait for room
			if c.srv.Propose(&state.Command{Op: state.OpSync}, w) != nil {
				w.end(false)
			}
		}()
	}
	news = c.done != c.logged
	c.logged = c.done
	return c.done, news
}

// hasCaughtUp reports whether this server has been in touch, and has caught up, since its start.
func (c *catchingUp) hasCaughtUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ever
}

// sentSync waits for the command's way through the log, which may begin only when there
// is room for it.
type sentSync struct {
	c     *catchingUp
	lapse uint64
}

// Applied implements Waiter. A lapse in between makes the answer worthless.
func (w *sentSync) Applied(*state.Result) { w.end(true) }

// Lost implements Waiter: the next check sends another.
func (w *sentSync) Lost() { w.end(false) }

func (w *sentSync) end(applied bool) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.c.lapse == w.lapse {
		w.c.done, w.c.sent = applied, nil
	}
}

// disconnectCutOff disconnects the clients that have been without a leader for too
// long, ours or that of the ensemble that is mirrored. Those without a session count as one with the shortest timeout;
// those of read-only mode stay.
func (s *Server) disconnectCutOff() {
	contact := max(s.Status().Contact, s.Source.silence())
	if contact <= s.cfg.patience(s.cfg.MinSessionTimeout) {
		return
	}
	s.conns.disconnect(ReasonNoLeader, func(c *Conn) bool {
		_, timeout := c.Session()
		return !c.readOnly && contact > s.cfg.patience(max(timeout, s.cfg.MinSessionTimeout))
	})
}

// Stalled reports whether requests have waited for longer than clients are kept without a leader, and nothing
// was applied meanwhile.
func (s *Server) Stalled() bool {
	return time.Since(s.started)-time.Duration(s.progress.at.Load()) > s.cfg.Grace
}

// progress notices that commands of this server wait and nothing is applied, though there is a leader: the
// disks of the others may be full. Housekeeping calls note.
type progress struct {
	applied uint64       // at the last change
	at      atomic.Int64 // of the last change, or of the last time when none waited; since Server.started
}

// note takes a status in; since is its time after Server.started.
func (p *progress) note(status consensus.Status, since time.Duration) {
	if status.Pending == 0 || status.AppliedIndex != p.applied {
		p.applied = status.AppliedIndex
		p.at.Store(int64(since))
	}
}

// Drain makes this server ready to be stopped: it takes no new clients, hands over
// leadership, and disconnects its clients, who take their sessions to other servers.
// When it returns nil, the ensemble can do without this server. With
// membership.ErrTooFew it cannot, and nothing has been done.
func (s *Server) Drain(ctx context.Context) error {
	if s.Status().Halt == nil { // the ensemble does without a halted server already
		if err := s.ensemble.CheckStop(ctx); err != nil {
			return err
		}
	}
	s.draining.Store(true)
	if s.Status().Role == consensus.RoleLeader {
		if err := s.ensemble.TransferTo(ctx, state.NoServer); err != nil {
			s.draining.Store(false)
			return err
		}
	}
	s.conns.disconnectAll(ReasonStopping)
	s.logger.Info("drained: no new clients are taken, and this server can be stopped")
	return nil
}

// Undrain takes clients again.
func (s *Server) Undrain() { s.draining.Store(false) }

// Draining reports whether Drain was called last.
func (s *Server) Draining() bool { return s.draining.Load() }
