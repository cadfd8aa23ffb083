package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/server/changes"
)

const (
	defaultWait = 30 * time.Second
	// maxWait is shorter than most proxies keep a silent connection.
	maxWait = 5 * time.Minute
)

// watchBody is the answer to a long poll: what has happened, and where to go on.
type watchBody struct {
	Events []change `json:"events"`
	Zxid   string   `json:"zxid"`
}

// watch reports changes: as a stream if the client accepts one, else it waits for
// the next ones.
func (q *request) watch() error {
	path, err := q.znodePath()
	if err != nil {
		return err
	}
	kind, err := parseKind("kind", q.query.text("kind"))
	if err != nil {
		return err
	}
	wait, err := q.query.duration("wait", defaultWait, 0, maxWait)
	if err != nil {
		return err
	}
	from, err := q.since()
	if err != nil {
		return err
	}
	filters := []changes.Filter{{Path: path, Kind: kind, Identities: q.ids}}
	if q.wantsStream() {
		if q.query.has("wait") {
			return badRequest("wait", "a stream does not end")
		}
		return q.stream(filters, from, nil)
	}
	return q.poll(filters, from, wait)
}

// wantsStream reports whether the client accepts server-sent events.
func (q *request) wantsStream() bool {
	for _, field := range q.http.Header.Values("Accept") {
		for media := range strings.SplitSeq(field, ",") {
			media, _, _ = strings.Cut(media, ";")
			if strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// follow opens a stream of changes within the door's bounds. The caller must call
// release.
func (q *request) follow(
	filters []changes.Filter, from changes.Position,
) (st *changes.Stream, release func(), err error) {
	leave, err := q.door.enterStream(q.address)
	if err != nil {
		return nil, nil, err
	}
	st, err = q.door.srv.Subscribe(filters, from)
	if err != nil {
		leave()
		return nil, nil, q.followProblem(err)
	}
	return st, func() { st.Close(); leave() }, nil
}

const readAfresh = "read the znodes again, and watch since the Zk-Zxid of that answer"

// followProblem explains why a stream cannot be opened or go on.
func (q *request) followProblem(err error) error {
	if !errors.Is(err, changes.ErrTooOld) {
		return err
	}
	p := &problem{
		Status: http.StatusGone, Title: "resume point too old", Detail: err.Error(), Hint: readAfresh,
	}
	if param, _ := q.resumePoint(); param != "" {
		p.Param, p.Detail = param, param+": "+p.Detail
	}
	return p
}

// poll waits for the next changes.
func (q *request) poll(filters []changes.Filter, from changes.Position, wait time.Duration) error {
	st, release, err := q.follow(filters, from)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(q.http.Context(), wait)
	defer cancel()
	defer context.AfterFunc(q.door.waiting.until(), cancel)()
	news, err := st.Next(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, changes.ErrStopping) {
		return q.followProblem(err)
	}
	body := watchBody{Events: make([]change, 0, len(news))}
	for i := range news {
		body.Events = append(body.Events, changeOf(&news[i]))
		from = news[i].At
	}
	at := reached(st, from)
	body.Zxid = formatPosition(at)
	q.setZxid(min(at.Zxid, q.zxid())) // the client may have been further, elsewhere
	return q.answer(http.StatusOK, body)
}
