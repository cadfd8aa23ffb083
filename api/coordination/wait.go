package coordination

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// maxAhead bounds how many of those ahead an answer names: the first ones.
const maxAhead = 100

// grantBody answers when the turn has come.
type grantBody struct {
	Ticket       string `json:"ticket"`
	FencingToken string `json:"fencing_token"`
	Path         string `json:"path"`
}

// waiterBody answers when the wait has ended before.
type waiterBody struct {
	Ticket   string   `json:"ticket"`
	Path     string   `json:"path"`
	Position int      `json:"position"` // how many are ahead
	Ahead    []string `json:"ahead"`    // their tickets, at most maxAhead
	// Delay is what is left of the lock delay after the one ahead was lost; empty: it is there.
	Delay string `json:"lock_delay,omitempty"`
}

// position is where a ticket is in its queue at one moment.
type position struct {
	zxid  znode.Zxid
	stat  znode.Stat       // of the znode
	ahead []curator.Waiter // first come first
	delay *delay           // nil: there is none, or others are ahead
	left  time.Duration    // of the lock delay of a lost holder
}

// first reports whether it is the ticket's turn.
func (s *position) first() bool { return len(s.ahead) == 0 && s.left <= 0 }

// queueUp carries out the POST of a lock or an election: it joins the queue, or continues
// with ?ticket=, and waits for the turn.
func (h *handlers) queueUp(q *rest.Request, k queueKind) error {
	path, err := queuePath(q, k)
	if err != nil {
		return err
	}
	if err := q.NeedSession(); err != nil {
		return err
	}
	wait, err := q.Query.Duration("wait", rest.DefaultWait, 0, rest.MaxWait)
	if err != nil {
		return err
	}
	l := &queue{server: h.server, kind: k, path: path}
	if l.delay, err = q.Query.Duration("lock_delay", 0, 0, curator.MaxDelay); err != nil {
		return err
	}
	if q.Query.Has("ticket") {
		return l.resume(q, wait)
	}
	return l.enter(q, wait)
}

// enter joins the queue and waits. It gives the ticket back if the client does not learn of it, or does not want to
// wait.
func (l *queue) enter(q *rest.Request, wait time.Duration) error {
	acl, err := q.Query.ACL("acl")
	if err != nil {
		return err
	}
	data, err := q.Data()
	if err != nil {
		return err
	}
	// Wait for the result even if the client goes: else no one would know
	// of the znode, and it would be in the way until the session ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.HTTP.Context()), rest.RequestTimeout)
	defer cancel()
	q.Context = ctx
	if err := l.join(q, data, acl); err != nil {
		return err
	}
	s, err := l.await(q, wait)
	held := err == nil && !s.first()
	gone := l.waits && q.HTTP.Context().Err() != nil && q.Key == "" // a client with a key comes back
	if err != nil || gone || held && wait == 0 {
		l.abandon(q)
	}
	switch {
	case gone:
		return clientGone()
	case err != nil && wait == 0 && q.W.Header().Get(rest.HeaderReplayed) != "":
		return l.heldBy("another") // and the ticket was given back, the first time
	case err != nil:
		return err
	case held && wait == 0 && s.left > 0:
		return l.delayed(s)
	case held && wait == 0:
		return l.heldBy(s.ahead[0].Name)
	}
	return l.answer(q, s)
}

// resume continues to wait with a ticket.
func (l *queue) resume(q *rest.Request, wait time.Duration) (err error) {
	if l.ticket, err = l.kind.parseTicket(q.Query.Text("ticket")); err != nil {
		return err
	}
	if q.Query.Has("acl") {
		return rest.BadRequest("acl", "it cannot be combined with ticket: the znode exists")
	}
	if data, err := q.Body(0); err != nil || len(data) > 0 {
		return rest.BadRequest("body", "it cannot be combined with ticket: the znode exists")
	}
	q.Key = "" // nothing is sent under it
	if err := l.checkOwner(q); err != nil {
		return err
	}
	s, err := l.await(q, wait)
	if err != nil {
		return err
	}
	return l.answer(q, s)
}

// answer answers with a grant, or with the position.
func (l *queue) answer(q *rest.Request, s *position) error {
	if s.first() {
		return q.Answer(http.StatusOK, grantBody{l.ticket, fencingToken(s.stat.Czxid), l.znode()})
	}
	body := waiterBody{Ticket: l.ticket, Path: l.znode(), Position: len(s.ahead)}
	for _, c := range s.ahead[:min(len(s.ahead), maxAhead)] {
		body.Ahead = append(body.Ahead, c.Name)
	}
	if s.left > 0 { // the one that was lost counts as one ahead
		body.Position, body.Ahead, body.Delay = 1, []string{s.delay.Holder}, roundUp(s.left)
	}
	return q.Answer(http.StatusAccepted, body)
}

// clientGone answers a client that has closed its side of the connection, which may be all of it: a lock must not be
// left to a client that has disconnected.
func clientGone() error {
	return &rest.Problem{
		Status: http.StatusBadRequest, Title: "nobody waits",
		Detail: "the client has closed its side of the connection, so it does not wait any more; nothing is held",
		Hint:   "keep both sides open, or send an " + rest.HeaderKey,
	}
}

// heldBy is the problem of a request that does not wait.
func (l *queue) heldBy(holder string) error {
	return &rest.Problem{
		Status: http.StatusConflict, Title: "held by another", Path: znode.Join(l.path, holder),
		Detail: l.path + ": " + holder + " has it; the request does not wait",
		Hint:   "wait=30s waits in the queue",
	}
}

// delayed is the problem of a request that does not wait, during the lock delay of a holder that was lost.
func (l *queue) delayed(s *position) error {
	return &rest.Problem{
		Status: http.StatusConflict, Title: "lock delay", Path: l.path,
		Detail: fmt.Sprintf("%s: its holder %s was lost, whose lock delay ends in %s; the request does not wait",
			l.path, s.delay.Holder, roundUp(s.left)),
		Hint: "wait=30s waits in the queue",
	}
}

// roundUp is a time as answers have it, in whole milliseconds.
func roundUp(d time.Duration) string {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).String()
}

// await waits until no one is ahead, the wait or the client ends, or this server
// stops. It wakes up only when the one directly ahead leaves, or the ticket itself.
// While it waits the session is kept alive.
func (l *queue) await(q *rest.Request, wait time.Duration) (*position, error) {
	ctx, cancel := context.WithTimeout(q.HTTP.Context(), wait)
	defer cancel()
	defer context.AfterFunc(q.Core.Long.Until(), cancel)()
	leave, waiting, tries := func() {}, false, 0
	defer func() { leave() }()
	for {
		s, err := l.position(q)
		if err != nil {
			return nil, err
		}
		if len(s.ahead) == 0 && !q.Core.Server.Serving() && !q.Core.Server.Draining() {
			// The session may have ended, and another be first, elsewhere.
			return nil, q.Core.NotServing()
		}
		if len(s.ahead) == 0 {
			if again, err := l.takeOver(q, s); err != nil {
				return nil, err
			} else if again {
				if tries++; tries > rest.MaxTries {
					return nil, rest.TooMany(1, "%s: others change the lock delay too often", l.path)
				}
				continue
			}
		}
		l.waits = l.waits || !s.first() && wait > 0
		if s.first() || ctx.Err() != nil {
			return s, nil
		}
		if !waiting {
			waiting = true
			if leave, err = q.EnterLong(); err != nil {
				leave = func() {}
				return nil, err
			}
		}
		if err := l.untilMoved(ctx, q, s); err != nil {
			return nil, err
		}
	}
}

// untilMoved waits until the one directly ahead or the ticket itself has changed, or
// ctx ends.
func (l *queue) untilMoved(ctx context.Context, q *rest.Request, s *position) error {
	var filters []changes.Filter
	before := curator.DelayName
	if len(s.ahead) > 0 {
		before = curator.Predecessor(s.ahead).Name
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.left)
		defer cancel()
	}
	for _, name := range []string{before, l.ticket} {
		filters = append(filters, changes.Filter{
			Path: znode.Join(l.path, name), Kind: changes.KindData, Identities: superuser(),
		})
	}
	st, err := l.server.Subscribe(filters, changes.Position{Zxid: s.zxid})
	if errors.Is(err, changes.ErrTooOld) {
		return nil // the state was replaced this moment: look again
	}
	if err != nil {
		return err
	}
	defer st.Close()
	every := max(q.Timeout/rest.TouchesPerTimeout, time.Millisecond)
	for {
		quiet, cancel := context.WithTimeout(ctx, every)
		_, err := st.Next(quiet)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, changes.ErrTooOld),
			errors.Is(err, changes.ErrStopping):
			return nil
		}
		if rest.Taken(q.HTTP, every) {
			q.Core.Server.Touch(q.Session)
		}
	}
}

// position returns where the ticket is. It is an error if it is no longer in the queue.
func (l *queue) position(q *rest.Request) (*position, error) {
	s := &position{}
	var names []string
	var code znode.Error
	ended, queued := false, false
	var err error
	q.View(func(v *server.View) {
		s.zxid = v.Zxid()
		if s.stat, code = v.Tree().Exists(l.znode(), superuser()); code == znode.OK {
			names, _, code = v.Tree().Children(l.path, q.IDs)
		}
		ended = v.Machine().Sessions().Get(q.Session) == nil
		if s.ahead, queued = curator.Ahead(names, l.ticket, l.kind.markers...); queued && len(s.ahead) == 0 {
			s.delay, err = delayIn(v, l.path)
		}
	})
	switch {
	case ended:
		return nil, rest.Fail(znode.ErrSessionExpired, l.znode())
	case code == znode.ErrNoNode || code == znode.OK && (s.stat.EphemeralOwner != q.Session || !queued):
		return nil, &rest.Problem{
			Status: http.StatusGone, Code: znode.ErrNoNode, Path: l.znode(), Title: "ticket lost",
			Detail: l.znode() + ": it was deleted or given back",
			Hint:   "POST without ticket= queues anew",
		}
	case code != znode.OK:
		return nil, rest.Fail(code, l.path)
	}
	return s, err
}

// abandon deletes the znode of a ticket that no client has. If that fails the
// znode stays until its session ends.
func (l *queue) abandon(q *rest.Request) {
	if l.marked {
		_ = l.removeMark(q) // with the znode alone others wait for the delay
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.HTTP.Context()), rest.RequestTimeout)
	defer cancel()
	for ctx.Err() == nil {
		_, err := q.Core.Server.Do(ctx, &state.Command{
			Op: state.OpDelete, Path: l.znode(), Version: znode.AnyVersion,
			Session: q.Session, Flags: state.FlagAnyServer, Identities: q.IDs,
		})
		if !errors.Is(err, znode.ErrConnectionLoss) { // that one may not have happened
			if err != nil {
				q.Core.Config.Logger.Debug("a znode in a queue stays until its session ends",
					"path", l.znode(), "error", err)
			}
			return
		}
	}
}
