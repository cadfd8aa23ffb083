package coordination

import (
	"context"
	"errors"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
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

// leaderMark differs when there is something new to send.
type leaderMark struct {
	ticket string
	mzxid  znode.Zxid
}

// observe sends the leader, and again whenever it or its data has changed. Who leads
// for less time than it takes to look may be missing. A stream that is resumed begins
// with the leader of the moment, too.
func (h *handlers) observe(q *rest.Request, k queueKind, dir string) error {
	now, err := lookForLeader(q, k, dir)
	if err != nil {
		return err
	}
	leave, err := q.EnterLong()
	if err != nil {
		return err
	}
	defer leave()
	s := rest.StartEvents(q, changes.Position{})
	defer s.Close()
	var sent *leaderMark
	for {
		if sent == nil || *sent != now.mark {
			sent = &now.mark
			s.At = changes.Position{Zxid: now.zxid}
			s.Event("leader", leaderEvent{dir, now.leader, now.zxid.String()})
		}
		if !h.untilLeaderMoves(q, s, now) {
			return nil
		}
		if now, err = lookForLeader(q, k, dir); err != nil {
			s.Gone(err)
			return nil
		}
	}
}

// untilLeaderMoves sends what there is, and waits. It reports false when the stream
// has ended.
func (h *handlers) untilLeaderMoves(q *rest.Request, s *rest.EventStream, now *leadership) bool {
	st, err := h.server.Subscribe(now.filters, changes.Position{Zxid: now.zxid})
	if errors.Is(err, changes.ErrTooOld) {
		return s.Flush() // the state was replaced this moment: look again
	}
	if err != nil {
		s.Gone(q.SubscribeProblem(err))
		return false
	}
	defer st.Close()
	for {
		if !s.Flush() {
			return false
		}
		quiet, cancel := context.WithTimeout(s.Context, rest.ProgressInterval)
		_, err := st.Next(quiet)
		cancel()
		switch {
		case err == nil, errors.Is(err, changes.ErrTooOld):
			return true
		case errors.Is(err, changes.ErrStopping):
			s.Reconnect(rest.ErrStopping, st)
			return false
		case s.Context.Err() != nil:
			s.Reconnect(context.Cause(s.Context), st)
			return false
		}
		s.Progress(st)
	}
}

// lookForLeader finds who leads. As long as there is a leader only its znode can
// change that; else the first child that comes, or the election itself.
func lookForLeader(q *rest.Request, k queueKind, dir string) (*leadership, error) {
	l := &leadership{filters: []changes.Filter{
		{Path: dir, Kind: changes.KindPersistent, Identities: superuser()},
	}}
	var code znode.Error
	q.View(func(v *server.View) {
		l.zxid = v.Zxid()
		var names []string
		names, _, code = v.Tree().Children(dir, q.IDs)
		all := curator.Order(names, k.markers...)
		if code != znode.OK || len(all) == 0 {
			return
		}
		e := entryAt(v.Tree(), dir, all[0].Name, q.IDs)
		st, _ := v.Tree().Exists(e.Path, superuser())
		l.leader, l.mark = e, leaderMark{e.Ticket, st.Mzxid}
		l.filters[0] = changes.Filter{Path: e.Path, Kind: changes.KindData, Identities: superuser()}
	})
	if code != znode.OK && code != znode.ErrNoNode {
		return nil, rest.Fail(code, dir)
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
		e.Since, e.Content = timeText(st.Ctime), rest.ContentOf(data)
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
