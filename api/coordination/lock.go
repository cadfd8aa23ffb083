package coordination

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// maxQueue bounds how many of a queue an answer shows: the first ones.
const maxQueue = 1000

// queueEntry is a holder or a waiter.
type queueEntry struct {
	Ticket       string `json:"ticket"`
	Path         string `json:"path"`
	FencingToken string `json:"fencing_token,omitempty"`
	Session      string `json:"session,omitempty"`
	Since        string `json:"since,omitempty"` // when it came into the queue
	rest.Content
	Error string `json:"error,omitempty"` // why it may not be read
}

// lockBody is a lock as JSON.
type lockBody struct {
	Path   string       `json:"path"`
	Holder *queueEntry  `json:"holder"` // null: it is free
	Queue  []queueEntry `json:"queue"`  // those who wait, at most maxQueue
	Length int          `json:"length"` // of the whole queue
}

// getLock shows the holder of a lock and its waiters.
func getLock(q *rest.Request) error {
	dir, err := shownQueue(q, lockKind())
	if err != nil {
		return err
	}
	all, length, err := listQueue(q, lockKind(), dir)
	if err != nil {
		return err
	}
	body := lockBody{Path: dir, Queue: []queueEntry{}}
	if len(all) > 0 {
		body.Holder, body.Queue, body.Length = &all[0], all[1:], length-1
	}
	return q.Answer(http.StatusOK, body)
}

// shownQueue is the path of the lock or election that GET is to show.
func shownQueue(q *rest.Request, k queueKind) (string, error) {
	path, err := queuePath(q, k)
	if _, is := curator.Parse(znode.Base(path), k.markers...); err == nil && is {
		err = shownBy(path, "/v1/"+k.noun+"s"+znode.Parent(path))
	}
	return path, err
}

// listQueue lists the waiters of a queue, first come first, and returns how many they are.
// A queue that does not exist is empty.
func listQueue(q *rest.Request, k queueKind, dir string) (list []queueEntry, length int, err error) {
	var names []string
	var code znode.Error
	q.View(func(v *server.View) { names, _, code = v.Tree().Children(dir, q.IDs) })
	switch code {
	case znode.OK:
	case znode.ErrNoNode:
		return nil, 0, nil
	default:
		return nil, 0, rest.Fail(code, dir)
	}
	order := curator.Order(names, k.markers...)
	shown := order[:min(len(order), maxQueue+1)]
	q.View(func(v *server.View) {
		for _, c := range shown {
			if e := entryAt(v.Tree(), dir, c.Name, q.IDs); e != nil {
				list = append(list, *e)
			}
		}
	})
	return list, len(order) - len(shown) + len(list), nil
}

// takeLock waits for a lock, whose path is the URL's: POST /v1/locks/{path}.
func (h *handlers) takeLock(q *rest.Request) error { return h.queueUp(q, lockKind()) }

// releaseLock gives a lock, or the ticket of a waiter, back.
func (h *handlers) releaseLock(q *rest.Request) error { return h.giveBack(q, lockKind()) }

// giveBack carries out the DELETE of a ticket.
func (h *handlers) giveBack(q *rest.Request, k queueKind) error {
	ticket, err := k.parseTicket(q.Vars["ticket"]) // first: it may be missing, and be the path's end
	if err != nil {
		return err
	}
	dir, err := queuePath(q, k)
	if err != nil {
		return err
	}
	if err := q.NeedSession(); err != nil {
		return err
	}
	return (&queue{server: h.server, kind: k, path: dir, ticket: ticket}).leave(q)
}

// electionBody is an election as JSON.
type electionBody struct {
	Path       string       `json:"path"`
	Leader     *queueEntry  `json:"leader"`     // null: there is none
	Candidates []queueEntry `json:"candidates"` // who would be next, at most maxQueue
	Length     int          `json:"length"`     // how many candidates there are
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
	if len(all) > 0 {
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

// entryAt is a waiter in a queue, as these identities may see it; nil if it has
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
