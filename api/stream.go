package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// progressEvery is how long a stream is silent at most: short enough for a
	// client to notice soon that its server has gone, and far below what proxies
	// tolerate.
	progressEvery = 5 * time.Second
	// reconnectMillis is how long a browser waits before it connects again.
	reconnectMillis = 1000
)

// keeper is the session that a stream keeps alive.
type keeper struct {
	id    znode.SessionID
	every time.Duration
	ended <-chan struct{}
}

// stream sends changes as server-sent events until the client goes, the server
// stops or the session, if there is one, ends.
func (q *request) stream(filters []changes.Filter, from changes.Position, k *keeper) error {
	st, release, err := q.follow(filters, from)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancelCause(q.http.Context())
	defer cancel(nil)
	long := q.door.waiting.until()
	defer context.AfterFunc(long, func() { cancel(context.Cause(long)) })()
	every := progressEvery
	if k != nil {
		every = min(every, k.every)
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			select {
			case <-k.ended:
				cancel(errSessionEnded)
			case <-ctx.Done():
			}
		}()
		defer func() { cancel(nil); <-watching }()
	}
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect events before it passes them on
	q.begin(http.StatusOK)
	s := &eventStream{q: q, st: st, at: from, keeper: k}
	s.retry(reconnectMillis)
	return s.run(ctx, every)
}

// eventStream is a running stream. It belongs to one goroutine.
type eventStream struct {
	q      *request
	st     *changes.Stream
	at     changes.Position
	keeper *keeper
	out    []byte    // to be sent
	due    time.Time // of the next heartbeat or progress mark
}

// run sends until there is a reason to end. Its errors have been told: the answer
// has begun long ago.
func (s *eventStream) run(ctx context.Context, every time.Duration) error {
	s.progress()
	for {
		s.keep(every)
		if !s.flush() {
			return nil
		}
		quiet, cancel := context.WithDeadline(ctx, s.due)
		news, err := s.st.Next(quiet)
		cancel()
		for i := range news {
			s.change(&news[i])
		}
		switch {
		case err == nil:
		case errors.Is(err, changes.ErrTooOld):
			s.event("gone", problemOf(s.q.followProblem(err), false).document())
			s.flush()
			return nil
		case errors.Is(err, changes.ErrStopping):
			s.end(errStopping)
			return nil
		case ctx.Err() != nil:
			s.end(context.Cause(ctx))
			return nil
		default:
			s.progress()
		}
	}
}

// keep notes that the session is alive, once in a while: its client must have
// taken what it was sent since the last time.
func (s *eventStream) keep(every time.Duration) {
	now := time.Now()
	if now.Before(s.due) {
		return
	}
	first := s.due.IsZero()
	s.due = now.Add(every)
	if s.keeper != nil && (first || taken(s.q.http, every)) {
		s.q.door.srv.Touch(s.keeper.id)
	}
}

// end says why the stream ends; a client that has gone is not there to hear it.
func (s *eventStream) end(why error) {
	switch {
	case errors.Is(why, errSessionEnded):
		s.event("ended", map[string]string{"id": s.keeper.id.String(), "reason": why.Error()})
	case errors.Is(why, errStopping), errors.Is(why, errDraining), errors.Is(why, errNotServing):
		s.at = reached(s.st, s.at)
		s.retry(0)
		s.event("reconnect", map[string]any{
			"zxid": formatPosition(s.at), "reason": why.Error(), "servers": s.q.door.others(),
		})
	default:
		return
	}
	s.flush()
}

func (s *eventStream) change(c *changes.Change) {
	s.at = c.At
	s.event(changeName(c.Type), changeOf(c))
}

// progress says how far the client has come although nothing happened to it.
func (s *eventStream) progress() {
	s.at = reached(s.st, s.at)
	s.event("progress", map[string]string{"zxid": formatPosition(s.at)})
}

// event adds one to what is to be sent (HTML standard, 9.2 Server-sent events).
func (s *eventStream) event(name string, data any) {
	text, err := json.Marshal(data) // in one line
	if err != nil {
		panic("api: invariant broken: an event cannot be encoded: " + err.Error())
	}
	s.out = append(s.out, "id: "+formatPosition(s.at)+"\nevent: "+name+"\ndata: "...)
	s.out = append(append(s.out, text...), "\n\n"...)
}

func (s *eventStream) retry(millis int) {
	s.out = fmt.Appendf(s.out, "retry: %d\n\n", millis)
}

// flush sends what there is and reports false when the client has gone, or does
// not read.
func (s *eventStream) flush() bool {
	ctl := http.NewResponseController(s.q.w)
	_ = ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.q.w.Write(s.out)
	s.out = s.out[:0]
	return err == nil && ctl.Flush() == nil
}

// others are the HTTP addresses of the other servers, as far as they are known.
func (d *Door) others() []string {
	list := []string{}
	d.srv.View(func(v *server.View) {
		for id, m := range v.Machine().Members() {
			if id != d.srv.Config().ID && m.HTTP != "" {
				list = append(list, m.HTTP)
			}
		}
	})
	return list
}

// enterStream takes one of the door's places for streams and long polls.
func (d *Door) enterStream(address string) (leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.open >= maxStreams:
		return nil, tooMany(10, "this server has %d streams and long polls open", d.open)
	case d.streams[address] >= maxStreamsPerAddress:
		return nil, tooMany(10, "%s has %d streams and long polls open", address,
			d.streams[address])
	}
	d.open++
	d.streams[address]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open--
		if d.streams[address]--; d.streams[address] == 0 {
			delete(d.streams, address)
		}
	}, nil
}
