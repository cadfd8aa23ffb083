package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// leaderEvent is the event leader of a stream.
type leaderEvent struct {
	Path   string      `json:"path"`
	Leader *queueEntry `json:"leader"` // null: there is none
	Zxid   string      `json:"zxid"`
}

// leadership is who leads at one moment, and what has to change for that to change.
type leadership struct {
	zxid    znode.Zxid
	leader  *queueEntry
	mark    leaderMark
	filters []changes.Filter
}

// leaderMark differs when there is something new to tell.
type leaderMark struct {
	ticket string
	mzxid  znode.Zxid
}

// observe sends the leader, and again whenever it or its data has changed. Who leads
// for less time than it takes to look may be missing. A stream that is resumed begins
// with the leader of the moment, too.
func (q *request) observe(k queueKind, dir string) error {
	now, err := q.lookForLeader(k, dir)
	if err != nil {
		return err
	}
	leave, err := q.door.enterStream(q.address)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(q.http.Context())
	defer cancel(nil)
	long := q.door.waiting.until()
	defer context.AfterFunc(long, func() { cancel(context.Cause(long)) })()
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	q.begin(http.StatusOK)
	s := &eventStream{q: q}
	s.retry(reconnectMillis)
	var told *leaderMark
	for {
		if told == nil || *told != now.mark {
			told = &now.mark
			s.at = changes.Position{Zxid: now.zxid}
			s.event("leader", leaderEvent{dir, now.leader, now.zxid.String()})
		}
		if !s.untilLeaderMoves(ctx, now) {
			return nil
		}
		if now, err = q.lookForLeader(k, dir); err != nil {
			s.event("gone", problemOf(err, q.anonymous).document())
			s.flush()
			return nil
		}
	}
}

// untilLeaderMoves sends what there is, and waits. It reports false when the stream
// has ended.
func (s *eventStream) untilLeaderMoves(ctx context.Context, now *leadership) bool {
	st, err := s.q.door.srv.Subscribe(now.filters, changes.Position{Zxid: now.zxid})
	if errors.Is(err, changes.ErrTooOld) {
		return s.flush() // the state was replaced this moment: look again
	}
	if err != nil {
		s.event("gone", problemOf(s.q.followProblem(err), s.q.anonymous).document())
		s.flush()
		return false
	}
	defer st.Close()
	s.st = st
	for {
		if !s.flush() {
			return false
		}
		quiet, cancel := context.WithTimeout(ctx, progressEvery)
		_, err := st.Next(quiet)
		cancel()
		switch {
		case err == nil, errors.Is(err, changes.ErrTooOld):
			return true
		case errors.Is(err, changes.ErrStopping):
			s.end(errStopping)
			return false
		case ctx.Err() != nil:
			s.end(context.Cause(ctx))
			return false
		}
		s.progress()
	}
}

// lookForLeader finds who leads. As long as there is a leader only its znode can
// change that; else the first child that comes, or the election itself.
func (q *request) lookForLeader(k queueKind, dir string) (*leadership, error) {
	l := &leadership{filters: []changes.Filter{
		{Path: dir, Kind: changes.KindPersistent, Identities: superuser()},
	}}
	var code znode.Error
	q.look(func(v *server.View) {
		l.zxid = v.Zxid()
		var names []string
		names, _, code = v.Tree().Children(dir, q.ids)
		all := curator.Order(names, k.markers...)
		if code != znode.OK || len(all) == 0 {
			return
		}
		e := entryAt(v.Tree(), dir, all[0].Name, q.ids)
		st, _ := v.Tree().Exists(e.Path, superuser())
		l.leader, l.mark = e, leaderMark{e.Ticket, st.Mzxid}
		l.filters[0] = changes.Filter{Path: e.Path, Kind: changes.KindData, Identities: superuser()}
	})
	if code != znode.OK && code != znode.ErrNoNode {
		return nil, failure{code, dir}
	}
	return l, nil
}

// entryAt is one who stands in a queue, as these identities may see it; nil if it has
// left.
func entryAt(tree *znode.Tree, dir, name string, ids []znode.ID) *queueEntry {
	e := &queueEntry{Ticket: name, Path: znode.Join(dir, name)}
	data, st, code := tree.Get(e.Path, ids)
	switch code {
	case znode.OK:
		e.FencingToken, e.Session = fencingToken(st.Czxid), st.EphemeralOwner.String()
		e.Since, e.content = timeText(st.Ctime), contentOf(data)
	case znode.ErrNoNode:
		return nil
	default:
		e.Error = code.Name()
	}
	return e
}

// timeText is a time in milliseconds as RFC 3339 has it.
func timeText(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}
