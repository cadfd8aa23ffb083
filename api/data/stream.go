package data

import (
	"context"
	"errors"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

var errSessionEnded = errors.New("the session has ended")

// keeper is the session that a stream keeps alive.
type keeper struct {
	id    znode.SessionID
	every time.Duration
	ended <-chan struct{}
}

// watchStream is a stream of changes. It belongs to one goroutine.
type watchStream struct {
	*rest.EventStream
	q       *rest.Request
	changes *changes.Stream
	keeper  *keeper   // nil: none
	due     time.Time // of the next heartbeat or progress mark
}

// stream sends changes as server-sent events until the client goes, the server
// stops or the session, if there is one, ends.
func (h *handlers) stream(
	q *rest.Request, filters []changes.Filter, from changes.Position, k *keeper,
) error {
	st, release, err := h.subscribe(q, filters, from)
	if err != nil {
		return err
	}
	defer release()
	s := &watchStream{rest.StartEvents(q, from), q, st, k, time.Time{}}
	defer s.Close()
	every := rest.ProgressInterval
	if k != nil {
		every = min(every, k.every)
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			select {
			case <-k.ended:
				s.Cancel(errSessionEnded)
			case <-s.Context.Done():
			}
		}()
		defer func() { s.Cancel(nil); <-watching }()
	}
	s.run(every)
	return nil
}

// run sends until there is a reason to end.
func (s *watchStream) run(every time.Duration) {
	s.Progress(s.changes)
	for {
		s.keep(every)
		if !s.Flush() {
			return
		}
		quiet, cancel := context.WithDeadline(s.Context, s.due)
		news, err := s.changes.Next(quiet)
		cancel()
		for i := range news {
			s.At = news[i].At
			s.Event(changeName(news[i].Type), changeOf(&news[i]))
		}
		switch {
		case err == nil:
		case errors.Is(err, changes.ErrTooOld):
			s.Gone(s.q.SubscribeProblem(err))
			return
		case errors.Is(err, changes.ErrStopping):
			s.Reconnect(rest.ErrStopping, s.changes)
			return
		case s.Context.Err() != nil:
			s.end(context.Cause(s.Context))
			return
		default:
			s.Progress(s.changes)
		}
	}
}

// keep notes that the session is alive, once in a while: its client must have
// taken what it was sent since the last time.
func (s *watchStream) keep(every time.Duration) {
	now := time.Now()
	if now.Before(s.due) {
		return
	}
	first := s.due.IsZero()
	s.due = now.Add(every)
	if s.keeper != nil && (first || rest.Taken(s.q.HTTP, every)) {
		s.q.Core.Server.Touch(s.keeper.id)
	}
}

// end reports why the stream ends.
func (s *watchStream) end(why error) {
	if !errors.Is(why, errSessionEnded) {
		s.Reconnect(why, s.changes)
		return
	}
	s.Event("ended", map[string]string{"id": s.keeper.id.String(), "reason": why.Error()})
	s.Flush()
}
