package server

import (
	"context"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Propose sends a command that belongs to no connection. One that may not be
// proposed (admit) gets its result at once, and is not sent.
func (s *Server) Propose(c *state.Command, w forward.Waiter) error {
	c.Flags |= s.flags
	if code := s.admit(c); code != znode.OK {
		s.View(func(*View) { w.Applied(refused(c.Op, code, 0)) })
		return nil
	}
	return s.consensus.Propose(c, w)
}

// Do proposes a command and waits for its result, of which it returns a copy
// that nobody changes. When ctx ends first, the error is ctx's and the outcome is
// unknown, unless it had ended before the call: then nothing is sent.
func (s *Server) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	if err := ctx.Err(); err != nil {
		return state.Result{}, err // nothing has been sent
	}
	w := &await{server: s, begun: time.Now(), done: make(chan struct{})}
	if err := s.Propose(c, w); err != nil {
		return state.Result{}, err
	}
	select {
	case <-w.done:
		if trace := insight.TraceOf(ctx); trace != nil {
			trace.Add(&w.stages, w.index, w.term)
		}
		return w.result, w.err
	case <-ctx.Done():
		return state.Result{}, ctx.Err()
	}
}

// await is a Waiter for one result.
type await struct {
	server *Server
	begun  time.Time
	result state.Result
	err    error
	done   chan struct{}

	stages      insight.Stages
	index, term uint64
}

func (w *await) Applied(r *state.Result) {
	w.result = *r
	w.result.Multi = append([]state.OpResult(nil), r.Multi...)
	if r.Session != nil {
		x := *r.Session // the table's own goes on changing
		w.result.Session = &x
	}
	times := w.server.current.times
	w.stages = insight.StagesOf(w.begun, times, time.Now())
	if times != nil {
		w.index, w.term = times.Index, times.Term
	}
	close(w.done)
}

func (w *await) Lost() {
	w.err = znode.ErrConnectionLoss
	close(w.done)
}

// nobody waits for a command whose result matters to no one.
type nobody struct{}

func (nobody) Applied(*state.Result) {}
func (nobody) Lost()                 {}
