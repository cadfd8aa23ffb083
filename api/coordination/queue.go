package coordination

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// queueKind is what a queue of ephemeral sequential znodes is for: a lock or an
// election. The znodes are those of Curator's recipes, so that its clients, and
// kazoo's, wait in the same queue.
type queueKind struct {
	noun    string
	base    string   // the marker in the names that are made here
	markers []string // those of all that are in the queue
}

func lockKind() queueKind {
	return queueKind{"lock", curator.Lock, []string{curator.Lock, curator.KazooLock}}
}

func electionKind() queueKind {
	return queueKind{"election", curator.Latch, []string{curator.Latch, curator.KazooLock}}
}

// queue is a waiter's view of a lock or an election: of the znode that is its own there,
// whose name is the ticket.
type queue struct {
	server Server
	kind   queueKind
	path   string        // of the lock or election
	ticket string        // empty before join
	waits  bool          // others were ahead when it came, and the request is to wait for them
	delay  time.Duration // its own lock delay; 0: none
	marked bool          // its mark is there
	over   time.Time     // when the delay after a lost holder has passed; zero: it has seen none
}

func (l *queue) znode() string { return znode.Join(l.path, l.ticket) }

// queuePath is the path of the lock or election in the URL.
func queuePath(q *rest.Request, k queueKind) (string, error) {
	path, err := q.ZnodePath()
	if err == nil && path == znode.RootPath {
		err = rest.BadRequest("path", "the root cannot be a%s %s; name one, such as /v1/%ss/app/leader",
			map[bool]string{true: "n"}[k.noun[0] == 'e'], k.noun, k.noun)
	}
	return path, err
}

// parseTicket reads a ticket, which is a name in the queue.
func (k *queueKind) parseTicket(text string) (string, error) {
	_, ok := curator.Parse(text, k.markers...)
	if !ok || rest.CheckPath("ticket", "/"+text) != nil || znode.Base("/"+text) != text {
		return "", rest.BadRequest("ticket", "%q is not a ticket of a%s %s, such as "+
			"_c_7d3f0c7e-5a3b-4b52-9c39-0d3b6a3f1c55-%s0000000004",
			text, map[bool]string{true: "n"}[k.noun[0] == 'e'], k.noun, k.base)
	}
	return text, nil
}

// join makes a znode at the end of the queue. The queue's own znode and those above it
// are made as containers: they go when they are empty.
func (l *queue) join(q *rest.Request, data []byte, acl []znode.ACL) error {
	c := state.Command{
		Op: state.OpCreate, Path: znode.Join(l.path, curator.Name(guid(q), l.kind.base)), Data: data, ACL: acl,
		Mode: znode.EphemeralSequential, Kind: znode.CreatePlain,
	}
	if err := rest.CheckPath("path", c.Path+"0000000000"); err != nil {
		return err
	}
	r, err := createInContainer(q, &c)
	if err == nil {
		l.ticket = znode.Base(r.Path)
	}
	return err
}

// createInContainer creates a znode, and if need be the missing ones above it, as
// containers that are open to all: others use them after this client.
func createInContainer(q *rest.Request, c *state.Command) (state.Result, error) {
	above := rest.Ancestors(c.Path)
	if len(above) > rest.MaxParents {
		return state.Result{}, rest.BadRequest("path", "%d levels; it goes %d deep at most", len(above),
			rest.MaxParents)
	}
	for range rest.MaxTries {
		one := *c
		r, err := q.Do(&one)
		if err != nil || r.Code == znode.OK {
			return r, err
		}
		if r.Code != znode.ErrNoNode {
			return r, rest.CreateFailure(r.Code, c.Path)
		}
		// With an Idempotency-Key the commands must follow from the results alone.
		todo := above
		if q.Key == "" {
			todo = above[len(above)-max(rest.Missing(q, above), 1):]
		}
		for _, path := range todo {
			r, err := q.Do(&state.Command{
				Op: state.OpCreate, Path: path, Data: []byte{}, ACL: znode.OpenACL,
				Mode: znode.Container, Kind: znode.CreateContainer,
			})
			switch {
			case err != nil:
				return r, err
			case r.Code != znode.OK && r.Code != znode.ErrNodeExists:
				return r, rest.CreateFailure(r.Code, path)
			}
		}
	}
	return state.Result{}, rest.TooMany(1, "%s: others create and delete the znodes above it too often", c.Path)
}

// guid makes the name of a znode the request's own. A request that is repeated
// with its Idempotency-Key has the same.
func guid(q *rest.Request) string {
	var b [16]byte
	if q.Key == "" {
		if _, err := rand.Read(b[:]); err != nil {
			panic(fmt.Sprintf("api: invariant broken: the system gives no random bytes: %v", err))
		}
	} else {
		sum := sha256.Sum256([]byte(q.Session.String() + "\n" + q.Key))
		copy(b[:], sum[:])
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562: version 4
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// leave gives the ticket back: it deletes the znode if it is there.
func (l *queue) leave(q *rest.Request) error {
	if err := l.checkOwner(q); err != nil {
		return err
	}
	if err := l.removeMark(q); err != nil {
		return err
	}
	r, err := q.Do(&state.Command{Op: state.OpDelete, Path: l.znode(), Version: znode.AnyVersion})
	if err != nil {
		return err
	}
	if r.Code != znode.OK {
		return l.noTicket(r.Code)
	}
	q.Begin(http.StatusNoContent)
	return nil
}

// checkOwner checks that the ticket, if it is in the queue, is the session's own.
func (l *queue) checkOwner(q *rest.Request) error {
	var st znode.Stat
	var code znode.Error
	for try := range 2 {
		q.View(func(v *server.View) { st, code = v.Tree().Exists(l.znode(), superuser()) })
		if code == znode.OK {
			break
		}
		if try == 0 {
			// It may have been given out by another server a moment ago.
			if err := q.Barrier(); err != nil {
				return err
			}
		}
	}
	switch {
	case code == znode.OK && st.EphemeralOwner != q.Session:
		return notYours(q, l.znode(), st.EphemeralOwner)
	case code == znode.OK, q.Key != "": // it may be this request that has deleted it
		return nil
	}
	return l.noTicket(code)
}

func (l *queue) noTicket(code znode.Error) error {
	if code != znode.ErrNoNode {
		return rest.Fail(code, l.znode())
	}
	return &rest.Problem{
		Status: http.StatusNotFound, Code: code, Path: l.znode(), Param: "ticket",
		Title:  "no such ticket",
		Detail: l.znode() + ": this ticket has been given back, or its session has ended",
		Hint:   "there is nothing to give back; POST queues anew",
	}
}

// notYours is the problem of a request that only the session that owns a znode may send. It names the owner to clients
// that may read the znode.
func notYours(q *rest.Request, path string, session znode.SessionID) error {
	owner := "another"
	q.View(func(v *server.View) {
		switch _, code := v.Tree().Exists(path, q.IDs); {
		case code != znode.OK:
		case session == 0:
			owner = "no session, it is not ephemeral"
		default:
			owner = "session " + session.String()
		}
	})
	return &rest.Problem{
		Status: http.StatusForbidden, Code: znode.ErrNoAuth, Param: rest.HeaderSession, Path: path,
		Title:  "another session's znode",
		Detail: path + ": it belongs to " + owner + ", not to the session of this request",
		Hint:   "send the " + rest.HeaderSession + " of the session that made it",
	}
}

// superuser may read everything. It is for decisions, not for answers to
// clients.
func superuser() []znode.ID { return []znode.ID{znode.SuperIDs} }

// shownBy is the problem of a path that is shown as a part of another resource.
func shownBy(path, resource string) *rest.Problem {
	return &rest.Problem{
		Status: http.StatusNotFound, Title: "shown elsewhere", Path: path,
		Detail: path + " has no resource of its own", Hint: "GET " + resource + " shows it with the others",
	}
}
