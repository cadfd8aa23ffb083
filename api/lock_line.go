package api

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// queueKind is what a queue of ephemeral sequential znodes is for: a lock or an
// election. The znodes are those of Curator's recipes, so that its clients, and
// kazoo's, stand in the same queue.
type queueKind struct {
	noun    string
	base    string   // the marker in the names that are made here
	markers []string // those of all that stand in the queue
}

func lockKind() queueKind {
	return queueKind{"lock", curator.Lock, []string{curator.Lock, curator.KazooLock}}
}

func electionKind() queueKind {
	return queueKind{"election", curator.Latch, []string{curator.Latch, curator.KazooLock}}
}

// place is a znode in a queue. Its name is the ticket.
type place struct {
	kind   queueKind
	dir    string
	ticket string
}

func (p *place) path() string { return znode.Join(p.dir, p.ticket) }

// queuePath is the path of the lock or election in the URL.
func (q *request) queuePath(k queueKind) (string, error) {
	path, err := q.znodePath()
	if err == nil && path == znode.RootPath {
		err = badRequest("path", "the root cannot be a%s %s; name one, such as /v1/%ss/app/leader",
			map[bool]string{true: "n"}[k.noun[0] == 'e'], k.noun, k.noun)
	}
	return path, err
}

// needSession refuses a request without Zk-Session.
func (q *request) needSession() error {
	if q.session != 0 {
		return nil
	}
	p := badRequest(headerSession, "this operation needs a session")
	p.Hint = "POST /v1/sessions opens one; send the header " + headerSession +
		": <id>.<secret>"
	return p
}

// parseTicket reads a ticket, which is a name that stands in the queue.
func (k *queueKind) parseTicket(text string) (string, error) {
	_, ok := curator.Parse(text, k.markers...)
	if !ok || checkPath("ticket", "/"+text) != nil || znode.Base("/"+text) != text {
		return "", badRequest("ticket", "%q is not a ticket of a%s %s, such as "+
			"_c_7d3f0c7e-5a3b-4b52-9c39-0d3b6a3f1c55-%s0000000004",
			text, map[bool]string{true: "n"}[k.noun[0] == 'e'], k.noun, k.base)
	}
	return text, nil
}

// join takes a place at the end of a queue, whose znode and those above it it makes as
// containers: they go when they are empty.
func (q *request) join(k queueKind, dir string, data []byte, acl []znode.ACL) (*place, error) {
	c := state.Command{
		Op: state.OpCreate, Path: znode.Join(dir, curator.Name(q.guid(), k.base)), Data: data, ACL: acl,
		Mode: znode.EphemeralSequential, Kind: znode.CreatePlain,
	}
	if err := checkPath("path", c.Path+"0000000000"); err != nil {
		return nil, err
	}
	r, err := q.createInContainer(&c)
	if err != nil {
		return nil, err
	}
	return &place{k, dir, znode.Base(r.Path)}, nil
}

// createInContainer creates a znode, and if need be what is missing above it, as
// containers that are open to all: others use them after this client.
func (q *request) createInContainer(c *state.Command) (state.Result, error) {
	above := ancestors(c.Path)
	if len(above) > maxParents {
		return state.Result{}, badRequest("path", "%d levels; it goes %d deep at most", len(above),
			maxParents)
	}
	for range maxTries {
		one := *c
		r, err := q.do(&one)
		if err != nil || r.Code == znode.OK {
			return r, err
		}
		if r.Code != znode.ErrNoNode {
			return r, createFailure(r.Code, c.Path)
		}
		// With an Idempotency-Key what is sent must follow from the results alone.
		todo := above
		if q.key == "" {
			todo = above[len(above)-max(q.missing(above), 1):]
		}
		for _, path := range todo {
			r, err := q.do(&state.Command{
				Op: state.OpCreate, Path: path, Data: []byte{}, ACL: znode.OpenACL,
				Mode: znode.Container, Kind: znode.CreateContainer,
			})
			switch {
			case err != nil:
				return r, err
			case r.Code != znode.OK && r.Code != znode.ErrNodeExists:
				return r, createFailure(r.Code, path)
			}
		}
	}
	return state.Result{}, tooMany(1, "%s: the znodes above it come and go too fast", c.Path)
}

// guid is what makes the name of a znode the request's own. A request that is repeated
// with its Idempotency-Key has the same.
func (q *request) guid() string {
	var b [16]byte
	if q.key == "" {
		if _, err := rand.Read(b[:]); err != nil {
			panic(fmt.Sprintf("api: invariant broken: the system gives no random bytes: %v", err))
		}
	} else {
		sum := sha256.Sum256([]byte(q.session.String() + "\n" + q.key))
		copy(b[:], sum[:])
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562: version 4
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// leave gives a place up: it deletes the znode if it is there.
func (q *request) leave(p *place) error {
	if err := q.ownTicket(p); err != nil {
		return err
	}
	r, err := q.do(&state.Command{Op: state.OpDelete, Path: p.path(), Version: znode.AnyVersion})
	if err != nil {
		return err
	}
	if r.Code != znode.OK {
		return noTicket(r.Code, p)
	}
	q.begin(http.StatusNoContent)
	return nil
}

// ownTicket checks that a place, if there is one, is the session's own.
func (q *request) ownTicket(p *place) error {
	var st znode.Stat
	var code znode.Error
	for try := range 2 {
		q.look(func(v *server.View) { st, code = v.Tree().Exists(p.path(), superuser()) })
		if code == znode.OK {
			break
		}
		if try == 0 {
			// It may have been given out by another server a moment ago.
			if err := q.barrier(); err != nil {
				return err
			}
		}
	}
	switch {
	case code == znode.OK && st.EphemeralOwner != q.session:
		return notYours(p.path(), "session "+st.EphemeralOwner.String())
	case code == znode.OK, q.key != "": // it may be this request that has deleted it
		return nil
	}
	return noTicket(code, p)
}

func noTicket(code znode.Error, p *place) error {
	if code != znode.ErrNoNode {
		return failure{code, p.path()}
	}
	return &problem{
		Status: http.StatusNotFound, Code: code, Path: p.path(), Param: "ticket",
		Title:  "no such ticket",
		Detail: p.path() + ": this ticket has been given back, or its session has ended",
		Hint:   "there is nothing to give back; POST queues anew",
	}
}

// notYours refuses what only the session may do that owns a znode.
func notYours(path, owner string) error {
	return &problem{
		Status: http.StatusForbidden, Code: znode.ErrNoAuth, Param: headerSession, Path: path,
		Title:  "another session's znode",
		Detail: path + ": it belongs to " + owner + ", not to the session of this request",
		Hint:   "send the " + headerSession + " of the session that made it",
	}
}

// superuser may read everything. It is for looking at what decides, not for what is
// told to clients.
func superuser() []znode.ID { return []znode.ID{znode.SuperIDs} }
