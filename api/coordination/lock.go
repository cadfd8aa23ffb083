package coordination

import (
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// lockBody is a lock as JSON.
type lockBody struct {
	Path   string       `json:"path"`
	Holder *queueEntry  `json:"holder"` // null: it is free
	Queue  []queueEntry `json:"queue"`  // those who wait, at most maxQueue
	Length int          `json:"length"` // of the whole queue
	Delay  *delayBody   `json:"lock_delay,omitempty"`
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
	pending := false
	switch body.Delay, pending = shownDelay(q, dir, all); {
	case pending:
		body.Queue, body.Length = append(body.Queue, all[:min(len(all), maxQueue)]...), length
	case len(all) > 0:
		body.Holder, body.Queue, body.Length = &all[0], all[1:], length-1
	}
	return q.Answer(http.StatusOK, body)
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
