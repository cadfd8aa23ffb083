package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// maxQueue bounds how many of a queue an answer shows: the first ones.
const maxQueue = 1000

// queueEntry is one who holds or waits.
type queueEntry struct {
	Ticket       string `json:"ticket"`
	Path         string `json:"path"`
	FencingToken string `json:"fencing_token,omitempty"`
	Session      string `json:"session,omitempty"`
	Since        string `json:"since,omitempty"` // when it came into the queue
	content
	Error string `json:"error,omitempty"` // why it may not be read
}

// lockBody is a lock as JSON.
type lockBody struct {
	Path   string       `json:"path"`
	Holder *queueEntry  `json:"holder"` // null: it is free
	Queue  []queueEntry `json:"queue"`  // those who wait, at most maxQueue
	Length int          `json:"length"` // of the whole queue
}

// getLock shows who has a lock and who waits for it.
func (q *request) getLock() error {
	dir, err := q.shownQueue(lockKind())
	if err != nil {
		return err
	}
	all, length, err := q.listQueue(lockKind(), dir)
	if err != nil {
		return err
	}
	body := lockBody{Path: dir, Queue: []queueEntry{}}
	if len(all) > 0 {
		body.Holder, body.Queue, body.Length = &all[0], all[1:], length-1
	}
	return q.answer(http.StatusOK, body)
}

// shownQueue is the path of the lock or election that GET is to show.
func (q *request) shownQueue(k queueKind) (string, error) {
	path, err := q.queuePath(k)
	if _, is := curator.Parse(znode.Base(path), k.markers...); err == nil && is {
		err = shownBy(path, "/v1/"+k.noun+"s"+znode.Parent(path))
	}
	return path, err
}

// listQueue lists who stands in a queue, first come first, and says how many they are.
// A queue that does not exist is empty.
func (q *request) listQueue(k queueKind, dir string) (list []queueEntry, length int, err error) {
	var names []string
	var code znode.Error
	q.look(func(v *server.View) { names, _, code = v.Tree().Children(dir, q.ids) })
	switch code {
	case znode.OK:
	case znode.ErrNoNode:
		return nil, 0, nil
	default:
		return nil, 0, failure{code, dir}
	}
	order := curator.Order(names, k.markers...)
	shown := order[:min(len(order), maxQueue+1)]
	q.look(func(v *server.View) {
		for _, c := range shown {
			if e := entryAt(v.Tree(), dir, c.Name, q.ids); e != nil {
				list = append(list, *e)
			}
		}
	})
	return list, len(order) - len(shown) + len(list), nil
}
