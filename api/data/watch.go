package data

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"

	"github.com/zk-lite/zk-lite/server/changes"
)

// watchBody is the answer to a long poll: what has happened, and where to go on.
type watchBody struct {
	Events []change `json:"events"`
	Zxid   string   `json:"zxid"`
}

// watch reports changes: as a stream if the client accepts one, else it waits for
// the next ones.
func (h *handlers) watch(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	kind, err := parseKind("kind", q.Query.Text("kind"))
	if err != nil {
		return err
	}
	wait, err := q.Query.Duration("wait", rest.DefaultWait, 0, rest.MaxWait)
	if err != nil {
		return err
	}
	from, err := since(q)
	if err != nil {
		return err
	}
	filters := []changes.Filter{{Path: path, Kind: kind, Identities: q.IDs}}
	if rest.WantsStream(q.HTTP) {
		if q.Query.Has("wait") {
			return rest.BadRequest("wait", "a stream does not end")
		}
		return h.stream(q, filters, from, nil)
	}
	return h.poll(q, filters, from, wait)
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
		return nil, nil, q.SubscribeProblem(err)
	}
	return st, func() { st.Close(); leave() }, nil
}

// poll waits for the next changes.
func (h *handlers) poll(q *rest.Request, filters []changes.Filter, from changes.Position, wait time.Duration) error {
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
		return q.SubscribeProblem(err)
	}
	body := watchBody{Events: make([]change, 0, len(news))}
	for i := range news {
		body.Events = append(body.Events, changeOf(&news[i]))
		from = news[i].At
	}
	at := rest.Reached(st, from)
	body.Zxid = rest.FormatPosition(at)
	q.SetZxid(min(at.Zxid, q.Zxid())) // the client may have been further, elsewhere
	return q.Answer(http.StatusOK, body)
}
