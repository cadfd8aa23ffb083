package data

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// watchBody is the answer to a long poll: the events, and the position to continue from.
type watchBody struct {
	Events []change `json:"events"`
	Zxid   string   `json:"zxid"`
}

// watch reports changes.
func (h *handlers) watch(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	kind, err := parseKind("kind", q.Query.Text("kind"))
	if err != nil {
		return err
	}
	return h.report(q, &changes.Filter{Path: path, Kind: kind, Identities: q.IDs}, hints{})
}

// report reports the changes that the filter matches: as a stream if the client accepts one, else it waits for the next
// ones.
func (h *handlers) report(q *rest.Request, f *changes.Filter, as form) error {
	wait, err := q.Query.Duration("wait", rest.DefaultWait, 0, rest.MaxWait)
	if err != nil {
		return err
	}
	from, err := since(q)
	if err != nil {
		return err
	}
	filters := []changes.Filter{*f}
	if rest.WantsStream(q.HTTP) {
		if q.Query.Has("wait") {
			return streamsEndless()
		}
		return h.stream(q, filters, from, as, nil, nil)
	}
	return h.poll(q, filters, from, as, wait)
}

func streamsEndless() error { return rest.BadRequest("wait", "a stream does not end") }

// form is how changes are written: as hints to read again, or with their values.
type form interface {
	// body is the answer to a long poll, with the position from which to continue.
	body(news []changes.Change, position string) any
	// send sends the changes as events of a stream. It returns false if the client has disconnected.
	send(s *rest.EventStream, news []changes.Change) bool
}

// hints is the form that names znodes to read again.
type hints struct{}

func (hints) body(news []changes.Change, position string) any {
	body := watchBody{Events: make([]change, 0, len(news)), Zxid: position}
	for i := range news {
		body.Events = append(body.Events, changeOf(&news[i]))
	}
	return body
}

func (hints) send(s *rest.EventStream, news []changes.Change) bool {
	for i := range news {
		s.At = news[i].At
		s.Event(changeName(news[i].Type), changeOf(&news[i]))
	}
	return s.Flush()
}

// subscribe opens a stream of changes within the server's limits. The caller must call
// release.
func (h *handlers) subscribe(
	q *rest.Request, filters []changes.Filter, from changes.Position,
) (st *changes.Stream, release func(), err error) {
	leave, err := q.EnterLong()
	if err != nil {
		return nil, nil, err
	}
	st, err = h.server.Subscribe(filters, from)
	if err != nil {
		leave()
		return nil, nil, rest.SubscribeProblem(q, err)
	}
	return st, func() { st.Close(); leave() }, nil
}

// poll waits for the next changes.
func (h *handlers) poll(
	q *rest.Request, filters []changes.Filter, from changes.Position, as form, wait time.Duration,
) error {
	st, release, err := h.subscribe(q, filters, from)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(q.HTTP.Context(), wait)
	defer cancel()
	defer context.AfterFunc(q.Core.Long.Until(), cancel)()
	news, err := st.Next(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, changes.ErrStopping) {
		return rest.SubscribeProblem(q, err)
	}
	if len(news) > 0 {
		from = news[len(news)-1].At
	}
	at := rest.Reached(st, from)
	q.SetZxid(min(at.Zxid, q.Zxid())) // the client may have been further, elsewhere
	return q.Answer(http.StatusOK, as.body(news, rest.FormatPosition(at)))
}

const (
	// maxWatches bounds the paths of one session's stream.
	maxWatches = 1000
)

// sessionEvents is a stream that keeps its session alive while it is open, and
// reports the changes that ?watch=kind:/path asks for.
func (h *handlers) sessionEvents(q *rest.Request) error {
	if err := ownSession(q); err != nil {
		return err
	}
	watches := q.Query.Values["watch"]
	if len(watches) > maxWatches {
		return rest.BadRequest("watch", "%d of them; one stream has %d at most", len(watches), maxWatches)
	}
	filters := make([]changes.Filter, 0, len(watches))
	for _, text := range watches {
		name, path, ok := strings.Cut(text, ":")
		if !ok {
			return rest.BadRequest("watch", "%q is not kind:/path, such as children:/app", text)
		}
		kind, err := parseKind("watch", name)
		if err != nil {
			return err
		}
		if err := rest.CheckPath("watch", path); err != nil {
			return err
		}
		filters = append(filters, changes.Filter{Path: path, Kind: kind, Identities: q.IDs})
	}
	from, err := since(q)
	if err != nil {
		return err
	}
	ended, cancel := h.server.SessionEnd(q.Session)
	defer cancel()
	every := max(q.Timeout/rest.TouchesPerTimeout, time.Millisecond)
	return h.stream(q, filters, from, hints{}, nil, &keeper{id: q.Session, every: every, ended: ended})
}

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
	form    form
	keeper  *keeper   // nil: none
	due     time.Time // of the next heartbeat or progress mark
}

// stream sends changes as server-sent events until the client goes, the server
// stops or the session, if there is one, ends. What begin sends comes first; nil: nothing, and false: the end.
func (h *handlers) stream(
	q *rest.Request, filters []changes.Filter, from changes.Position, as form, begin func(*watchStream) bool, k *keeper,
) error {
	st, release, err := h.subscribe(q, filters, from)
	if err != nil {
		return err
	}
	defer release()
	s := &watchStream{rest.StartEvents(q, from), q, st, as, k, time.Time{}}
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
	if begin == nil || begin(s) {
		s.run(every)
	}
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
		switch {
		case err == nil:
			if !s.form.send(s.EventStream, news) {
				return
			}
		case errors.Is(err, changes.ErrTooOld):
			s.Gone(rest.SubscribeProblem(s.q, err))
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
// acknowledged what it was sent since the last time.
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

// since is where the client wants to continue: ?since= or Last-Event-ID, which a
// browser sends when it connects again and is therefore the newer one; else now.
// This server is brought there first.
func since(q *rest.Request) (changes.Position, error) {
	param, text := rest.ResumePoint(q)
	if param == "" {
		return changes.Position{Zxid: q.Zxid()}, nil
	}
	p, err := rest.ParsePosition(param, text)
	if err != nil {
		return p, err
	}
	now, err := q.WaitForZxid(p.Zxid)
	if err == nil && now < p.Zxid {
		err = &rest.Problem{
			Status: http.StatusGone, Title: "resume point never reached", Param: param,
			Detail: fmt.Sprintf("%s: this ensemble is at %[3]v and has never reached %[2]v; the position is of "+
				"another one, or its data are gone", param, p.Zxid, now),
			Hint: rest.ReadAgain,
		}
	}
	return p, err
}

// change is a change as JSON.
type change struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Zxid string `json:"zxid"`
}

func changeOf(c *changes.Change) change {
	return change{changeName(c.Type), c.Path, c.At.Zxid.String()}
}

func changeName(t znode.EventType) string {
	switch t {
	case znode.EventCreated:
		return "created"
	case znode.EventDeleted:
		return "deleted"
	case znode.EventDataChanged:
		return "changed"
	case znode.EventChildrenChanged:
		return "children"
	}
	panic("api: invariant broken: a change of type " + t.String())
}

// parseKind reads a kind of watch; data when it is empty.
func parseKind(param, text string) (changes.Kind, error) {
	switch text {
	case "", "data":
		return changes.KindData, nil
	case "exists":
		return changes.KindExists, nil
	case "children":
		return changes.KindChildren, nil
	case "persistent":
		return changes.KindPersistent, nil
	case "recursive":
		return changes.KindRecursive, nil
	}
	return 0, rest.BadRequest(param, "%q is none of data, children, exists, persistent, recursive", text)
}
