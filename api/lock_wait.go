package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// maxAhead bounds how many of those ahead an answer names: the first ones.
const maxAhead = 100

// grantBody answers whose turn has come.
type grantBody struct {
	Ticket       string `json:"ticket"`
	FencingToken string `json:"fencing_token"`
	Path         string `json:"path"`
}

// waiterBody answers who has to wait longer.
type waiterBody struct {
	Ticket   string   `json:"ticket"`
	Path     string   `json:"path"`
	Position int      `json:"position"` // how many are ahead
	Ahead    []string `json:"ahead"`    // their tickets, at most maxAhead
}

// standing is how a place stands in its queue at one moment.
type standing struct {
	zxid  znode.Zxid
	stat  znode.Stat       // of the znode
	ahead []curator.Waiter // first come first
}

// queueUp carries out the POST of a lock or an election: it takes a place, or goes on
// with that of ?ticket=, and waits for the turn.
func (q *request) queueUp(k queueKind) error {
	dir, err := q.queuePath(k)
	if err != nil {
		return err
	}
	if err := q.needSession(); err != nil {
		return err
	}
	wait, err := q.query.duration("wait", defaultWait, 0, maxWait)
	if err != nil {
		return err
	}
	if q.query.has("ticket") {
		return q.queueOn(k, dir, wait)
	}
	acl, err := q.query.acl("acl")
	if err != nil {
		return err
	}
	data, err := q.data()
	if err != nil {
		return err
	}
	// What has been sent is waited for even if the client goes: else nobody would know
	// of the znode, and it would be in the way until the session ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.http.Context()), requestTimeout)
	defer cancel()
	q.ctx = ctx
	p, err := q.join(k, dir, data, acl)
	if err != nil {
		return err
	}
	s, err := q.await(p, wait)
	held := err == nil && len(s.ahead) > 0
	gone := q.http.Context().Err() != nil && q.key == "" // who has a key comes back
	if err != nil || gone || held && wait == 0 {
		q.abandon(p)
	}
	switch {
	case gone:
		return nil // there is nobody to answer
	case err != nil && wait == 0 && q.w.Header().Get(headerReplayed) != "":
		return heldProblem(p, "another") // and the place was given up, the first time
	case err != nil:
		return err
	case held && wait == 0:
		return heldProblem(p, s.ahead[0].Name)
	}
	return q.stands(p, s)
}

// queueOn goes on waiting with a ticket.
func (q *request) queueOn(k queueKind, dir string, wait time.Duration) error {
	ticket, err := k.parseTicket(q.query.text("ticket"))
	if err != nil {
		return err
	}
	if q.query.has("acl") {
		return badRequest("acl", "it cannot be combined with ticket: the znode exists")
	}
	if data, err := q.body(0); err != nil || len(data) > 0 {
		return badRequest("body", "it cannot be combined with ticket: the znode exists")
	}
	p := &place{k, dir, ticket}
	q.key = "" // nothing is sent under it
	if err := q.ownTicket(p); err != nil {
		return err
	}
	s, err := q.await(p, wait)
	if err != nil {
		return err
	}
	return q.stands(p, s)
}

// stands answers with a grant, or with the place.
func (q *request) stands(p *place, s *standing) error {
	if len(s.ahead) == 0 {
		return q.answer(http.StatusOK, grantBody{p.ticket, fencingToken(s.stat.Czxid), p.path()})
	}
	body := waiterBody{Ticket: p.ticket, Path: p.path(), Position: len(s.ahead)}
	for _, c := range s.ahead[:min(len(s.ahead), maxAhead)] {
		body.Ahead = append(body.Ahead, c.Name)
	}
	return q.answer(http.StatusAccepted, body)
}

// heldProblem answers who wants to wait for nobody.
func heldProblem(p *place, holder string) error {
	return &problem{
		Status: http.StatusConflict, Title: "held by another", Path: znode.Join(p.dir, holder),
		Detail: p.dir + ": " + holder + " has it; the request did not want to wait",
		Hint:   "wait=30s waits in the queue",
	}
}

// await waits until nobody is ahead, the wait or the client ends, or this server
// stops. It wakes up only when the one directly ahead leaves, or the place itself.
// While it waits the session is heard of.
func (q *request) await(p *place, wait time.Duration) (*standing, error) {
	ctx, cancel := context.WithTimeout(q.http.Context(), wait)
	defer cancel()
	defer context.AfterFunc(q.door.waiting.until(), cancel)()
	leave := func() {}
	defer func() { leave() }()
	for waiting := false; ; waiting = true {
		s, err := q.stand(p)
		if err != nil {
			return nil, err
		}
		if len(s.ahead) == 0 && !q.door.srv.Serving() && !q.door.srv.Draining() {
			// The session may have ended, and another be first, elsewhere.
			return nil, q.notServing()
		}
		if len(s.ahead) == 0 || ctx.Err() != nil {
			return s, nil
		}
		if !waiting {
			if leave, err = q.door.enterStream(q.address); err != nil {
				leave = func() {}
				return nil, err
			}
		}
		if err := q.untilMoved(ctx, p, s); err != nil {
			return nil, err
		}
	}
}

// untilMoved waits until the one directly ahead or the place itself has changed, or
// ctx ends.
func (q *request) untilMoved(ctx context.Context, p *place, s *standing) error {
	var filters []changes.Filter
	for _, name := range []string{s.ahead[len(s.ahead)-1].Name, p.ticket} {
		filters = append(filters, changes.Filter{
			Path: znode.Join(p.dir, name), Kind: changes.KindData, Identities: superuser(),
		})
	}
	st, err := q.door.srv.Subscribe(filters, changes.Position{Zxid: s.zxid})
	if errors.Is(err, changes.ErrTooOld) {
		return nil // the state was replaced this moment: look again
	}
	if err != nil {
		return err
	}
	defer st.Close()
	every := max(q.timeout/beatsPerTimeout, time.Millisecond)
	for {
		beat, cancel := context.WithTimeout(ctx, every)
		_, err := st.Next(beat)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, changes.ErrTooOld),
			errors.Is(err, changes.ErrStopping):
			return nil
		}
		if taken(q.http, every) {
			q.door.srv.Touch(q.session)
		}
	}
}

// stand looks how a place stands. It is an error when it is there no more.
func (q *request) stand(p *place) (*standing, error) {
	s := &standing{}
	var names []string
	var code znode.Error
	ended := false
	q.look(func(v *server.View) {
		s.zxid = v.Zxid()
		if s.stat, code = v.Tree().Exists(p.path(), superuser()); code == znode.OK {
			names, _, code = v.Tree().Children(p.dir, q.ids)
		}
		ended = v.Machine().Sessions().Get(q.session) == nil
	})
	switch {
	case ended:
		return nil, failure{znode.ErrSessionExpired, p.path()}
	case code == znode.ErrNoNode || code == znode.OK && s.stat.EphemeralOwner != q.session:
		return nil, &problem{
			Status: http.StatusGone, Code: znode.ErrNoNode, Path: p.path(), Title: "ticket lost",
			Detail: p.path() + ": somebody has deleted it, or it was given back",
			Hint:   "POST without ticket= queues anew",
		}
	case code != znode.OK:
		return nil, failure{code, p.dir}
	}
	for _, c := range curator.Order(names, p.kind.markers...) {
		if c.Name == p.ticket {
			break
		}
		s.ahead = append(s.ahead, c)
	}
	return s, nil
}

// abandon deletes the znode of a place whose ticket nobody has. If that fails the
// znode stays until its session ends.
func (q *request) abandon(p *place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.http.Context()), requestTimeout)
	defer cancel()
	for ctx.Err() == nil {
		_, err := q.door.srv.Do(ctx, &state.Command{
			Op: state.OpDelete, Path: p.path(), Version: znode.AnyVersion,
			Session: q.session, Flags: state.FlagAnyServer, Identities: q.ids,
		})
		if !errors.Is(err, znode.ErrConnectionLoss) { // that one may not have happened
			if err != nil {
				q.door.cfg.Logger.Debug("a place in a queue stays until its session ends",
					"path", p.path(), "error", err)
			}
			return
		}
	}
}
