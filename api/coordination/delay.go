package coordination

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// A lock delay is the same as that of the recipes: a holder with one leaves a mark beside the waiters, and the first
// waiter who finds that of another waits before it takes over. Only the first in the queue writes, on the condition
// that it is still there. The time is the leader's, as the state has it, and this server's from when a request first
// sees it.

// delay is the mark in a queue at one moment.
type delay struct {
	curator.DelayMark
	left time.Duration // by the time of the newest entry: it may be less
}

// delayBody shows it.
type delayBody struct {
	Ticket    string `json:"ticket"`              // the holder, or the one that was lost
	Delay     string `json:"delay"`               // after a loss
	Remaining string `json:"remaining,omitempty"` // at most; empty: it is held
}

// delayIn is the mark in the queue at dir, nil if there is none. What is no mark is an error.
func delayIn(v *server.View, dir string) (*delay, error) {
	path := znode.Join(dir, curator.DelayName)
	data, st, code := v.Tree().Get(path, superuser())
	if code != znode.OK {
		return nil, nil
	}
	m, err := curator.ParseDelayMark(data)
	if err != nil {
		return nil, &rest.Problem{Status: http.StatusConflict, Title: "no lock delay", Path: path,
			Detail: path + ": " + err.Error(), Hint: "delete the znode to go on without"}
	}
	return &delay{m, max(m.Remaining(st.Ctime, v.Machine().Time().UnixMilli()), 0)}, nil
}

// pending reports whether a lost holder's delay keeps the first in the queue waiting.
func (d *delay) pending(order []curator.Waiter) bool {
	return d != nil && (len(order) == 0 || order[0].Name != d.Holder)
}

// shownDelay is the mark as answers show it. pending: a lost holder's delay keeps the first, if there is one, waiting.
func shownDelay(q *rest.Request, dir string, first []queueEntry) (body *delayBody, pending bool) {
	var d *delay
	q.View(func(v *server.View) { d, _ = delayIn(v, dir) })
	if d == nil {
		return nil, false
	}
	body = &delayBody{Ticket: d.Holder, Delay: d.Delay.String()}
	if pending = len(first) == 0 || first[0].Ticket != d.Holder; pending {
		body.Remaining = d.left.String()
	}
	return body, pending
}

// takeOver makes the ticket, which is the first in the queue, the holder. It sets s.left if it has to wait before that;
// again: what was in the queue has changed.
func (l *queue) takeOver(q *rest.Request, s *position) (again bool, err error) {
	d := s.delay
	switch {
	case d == nil && l.delay == 0:
		return false, nil
	case d == nil:
		return true, l.replaceMark(q, false, l.mark())
	case d.Holder == l.ticket:
		l.marked = true
		return false, nil
	case !d.Lost:
		lost := d.DelayMark
		lost.Lost = true
		return true, l.replaceMark(q, true, lost.Bytes())
	}
	if l.over.IsZero() {
		if err := q.Barrier(); err != nil { // the newest entry may be old
			return false, err
		}
		q.View(func(v *server.View) { d, err = delayIn(v, l.path) })
		if d == nil || !d.Lost {
			return true, err
		}
		l.over = time.Now().Add(d.left)
	}
	if s.left = time.Until(l.over); s.left > 0 {
		return false, nil
	}
	if l.delay == 0 { // the next position is without a mark
		return true, l.replaceMark(q, true, nil)
	}
	return true, l.replaceMark(q, true, l.mark())
}

// mark is the ticket's own.
func (l *queue) mark() []byte {
	return curator.DelayMark{Delay: l.delay, Holder: l.ticket}.Bytes()
}

// replaceMark writes a mark, or deletes it if data is nil, as long as the ticket is in the queue. If that has changed
// meanwhile it does nothing. It is not of the request's Idempotency-Key: it follows from the queue.
func (l *queue) replaceMark(q *rest.Request, there bool, data []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.HTTP.Context()), rest.RequestTimeout)
	defer cancel()
	path := znode.Join(l.path, curator.DelayName)
	ops := []state.Command{{Op: state.OpCheck, Path: l.znode(), Version: znode.AnyVersion}}
	if there {
		ops = append(ops, state.Command{Op: state.OpDelete, Path: path, Version: znode.AnyVersion})
	}
	if data != nil {
		ops = append(ops, state.Command{Op: state.OpCreate, Path: path, Data: data, ACL: znode.ReadACL})
	}
	r, err := q.Core.Server.Do(ctx, &state.Command{
		Op: state.OpMulti, Ops: ops, Session: q.Session, Flags: state.FlagAnyServer, Identities: q.IDs,
	})
	if err != nil && !errors.Is(err, znode.ErrConnectionLoss) { // that one may have happened: look again
		return rest.UnknownOutcome(err, false)
	}
	if r.Code != znode.OK && len(r.Multi) == 0 {
		return rest.Fail(r.Code, path)
	}
	for _, one := range r.Multi {
		switch one.Code {
		case znode.OK, znode.ErrNoNode, znode.ErrNodeExists, znode.ErrRuntimeInconsistency:
		default:
			return rest.Fail(one.Code, path)
		}
	}
	return nil
}

// removeMark deletes the ticket's own mark, if there is one. A holder that releases its lock has ended its work.
func (l *queue) removeMark(q *rest.Request) error {
	var d *delay
	q.View(func(v *server.View) { d, _ = delayIn(v, l.path) })
	if d == nil || d.Holder != l.ticket {
		return nil
	}
	return l.replaceMark(q, true, nil)
}
