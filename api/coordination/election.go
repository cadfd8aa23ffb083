package coordination

import (
	"context"
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// electionBody is an election as JSON.
type electionBody struct {
	Path       string       `json:"path"`
	Leader     *queueEntry  `json:"leader"`     // null: there is none
	Candidates []queueEntry `json:"candidates"` // who would be next, at most maxQueue
	Length     int          `json:"length"`     // how many candidates there are
	Delay      *delayBody   `json:"lock_delay,omitempty"`
}

// getElection shows the leader, and again whenever it changes if the
// client accepts a stream.
func (h *handlers) getElection(q *rest.Request) error {
	k := electionKind()
	dir, err := shownQueue(q, k)
	if err != nil {
		return err
	}
	if rest.WantsStream(q.HTTP) {
		return h.observe(q, k, dir)
	}
	all, length, err := listQueue(q, k, dir)
	if err != nil {
		return err
	}
	body := electionBody{Path: dir, Candidates: []queueEntry{}}
	pending := false
	switch body.Delay, pending = shownDelay(q, dir, all); {
	case pending:
		body.Candidates, body.Length = append(body.Candidates, all[:min(len(all), maxQueue)]...), length
	case len(all) > 0:
		body.Leader, body.Candidates, body.Length = &all[0], all[1:], length-1
	}
	return q.Answer(http.StatusOK, body)
}

// joinElection joins an election and waits to be the leader: POST
// /v1/elections/{path}. The body is what observers see of the candidate.
func (h *handlers) joinElection(q *rest.Request) error { return h.queueUp(q, electionKind()) }

// resign gives leadership, or a candidacy, up.
func (h *handlers) resign(q *rest.Request) error { return h.giveBack(q, electionKind()) }

// leaderEvent is the event leader of a stream.
type leaderEvent struct {
	Path   string      `json:"path"`
	Leader *queueEntry `json:"leader"` // null: there is none
	Zxid   string      `json:"zxid"`
}

// leadership is the leader at one moment, and the znode that must change for it to change.
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

// observe sends the leader, and again whenever it or its data has changed. A leader of
// a few milliseconds may be missing. A stream that is resumed begins
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

// untilLeaderMoves sends the events so far, and waits. It reports false when the stream
// has ended.
func (h *handlers) untilLeaderMoves(q *rest.Request, s *rest.EventStream, now *leadership) bool {
	st, err := h.server.Subscribe(now.filters, changes.Position{Zxid: now.zxid})
	if errors.Is(err, changes.ErrTooOld) {
		return s.Flush() // the state was replaced this moment: look again
	}
	if err != nil {
		s.Gone(rest.SubscribeProblem(q, err))
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

// lookForLeader finds the leader. As long as there is one only its znode can
// change that; else the first new child, or the election itself.
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
		if d, _ := delayIn(v, dir); d.pending(all) { // until it ends, or that candidate is another
			l.filters[0] = changes.Filter{
				Path: znode.Join(dir, curator.DelayName), Kind: changes.KindData, Identities: superuser(),
			}
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
