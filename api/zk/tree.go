package zk

import (
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// Bounds of the subtrees that are kept for clients: what is replaced meanwhile stays in memory.
const (
	maxTrees      = 2                // clients that read one at a time; the others wait
	maxTreePaths  = 2                // subtrees of a client's state: those that it compares
	treeIdle      = 30 * time.Second // after this time without a request a state is given up
	slowestReader = 1 << 20          // bytes a second that a client must read, after treeIdle,
	perZnode      = 1 << 10          // which are so many more for each znode: it may write them elsewhere
	treeZnodes    = 2000             // in one reply
	treeBytes     = 1 << 20          // of a reply, before its last znode
)

// trees are the states of which clients read subtrees, by session. A client that has another connection to this server
// continues.
type trees struct {
	listing *sync.WaitGroup // the goroutines that sort them

	mu     sync.Mutex // protects the fields below
	open   map[znode.SessionID]*openTree
	kept   int // states in memory: those in open, and those given up that are still being sorted
	closed bool
}

// openTree is a state of which a client reads subtrees.
type openTree struct {
	id     int64 // the client's choice
	zxid   znode.Zxid
	ids    []znode.ID // the client's; another connection must prove the same
	subs   []*znode.Subtree
	done   []bool      // which of them have been read to their ends
	listed bool        // they can be read
	until  time.Time   // the client must have read all
	idle   *time.Timer // nil before listed
}

// tree answers with a part of a subtree. The first request for a large one has it frozen and sorted; until that is
// done, the client asks again.
func (r *request) tree(v *server.View) {
	q := r.body.(*wire.TreeRequest)
	ts, session := &r.c.listener.trees, r.c.session()
	ts.mu.Lock()
	x, code := wire.TreeResponse{Zxid: wire.FromNow, Next: -1}, znode.OK
	switch t := ts.open[session]; {
	case q.Place < 0:
		if t != nil && t.id == q.ID {
			ts.closeLocked(session)
		}
	case len(q.Paths) > 0 && (t == nil || t.id != q.ID):
		code = ts.beginLocked(r, v, q, session, &x)
	case t == nil || t.id != q.ID || !slices.Equal(t.ids, r.ids) || int(q.Subtree) < 0 || int(q.Subtree) >= len(t.subs):
		x.Gone = true
	case !t.listed || len(q.Paths) > 0: // the reply to its beginning may have been lost
		x.Zxid, x.Wait = t.zxid, true
	case time.Now().After(t.until) || slices.ContainsFunc(t.subs, (*znode.Subtree).Outgrown):
		ts.closeLocked(session)
		x.Gone = true
	default:
		t.idle.Reset(treeIdle)
		readTree(t.subs[q.Subtree], q.Place, &x)
		if x.Next < 0 {
			if t.done[q.Subtree] = true; !slices.Contains(t.done, false) {
				ts.closeLocked(session)
			}
		}
	}
	ts.mu.Unlock()
	bytes := 0
	for i := range x.Znodes {
		bytes += treeZnodeBytes(&x.Znodes[i])
	}
	if bytes > min(r.c.listener.cfg.OutboxBytes, maxReply) {
		r.c.listener.longReplies.Add(1)
		code = znode.ErrSystem
	}
	r.replyLong(v.Zxid(), code, bytes, x.Append)
}

// beginLocked reads one small subtree at once, and keeps the state for what takes several replies. It ends the one that
// the client has.
func (ts *trees) beginLocked(
	r *request, v *server.View, q *wire.TreeRequest, session znode.SessionID, x *wire.TreeResponse,
) znode.Error {
	ts.closeLocked(session)
	paths := q.Paths
	if len(paths) > maxTreePaths {
		return znode.ErrBadArguments
	}
	for _, path := range paths {
		if znode.ValidatePath(path) != nil {
			return znode.ErrBadArguments
		}
	}
	sub, code := v.Subtree(paths[0], r.ids, true)
	switch {
	case code != znode.OK:
		return code
	case sub != nil && len(paths) == 1:
		sub.List()
		if readTree(sub, 0, x); x.Next < 0 {
			x.Zxid = v.Zxid()
			return znode.OK
		}
		x.Znodes = nil
	}
	if x.Wait = true; ts.closed || ts.kept >= maxTrees {
		return znode.OK
	}
	t := &openTree{id: q.ID, zxid: v.Zxid(), ids: r.ids, done: make([]bool, len(paths))}
	ts.kept++
	for _, path := range paths {
		sub, code := v.Subtree(path, r.ids, false)
		if code != znode.OK {
			ts.releaseLocked(t)
			return code
		}
		t.subs = append(t.subs, sub)
	}
	ts.open[session], x.Zxid = t, t.zxid
	ts.listing.Go(func() { ts.list(t, session) })
	return znode.OK
}

// list sorts the subtrees, so that they can be read, unless the client has given them up meanwhile.
func (ts *trees) list(t *openTree, session znode.SessionID) {
	size := int64(0)
	for _, sub := range t.subs {
		sub.List()
		znodes, bytes := sub.Size()
		size += bytes + int64(znodes)*perZnode
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.open[session] != t {
		ts.releaseLocked(t)
		return
	}
	t.listed, t.until = true, time.Now().Add(treeIdle+time.Duration(size/slowestReader)*time.Second)
	t.idle = time.AfterFunc(treeIdle, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if ts.open[session] == t {
			ts.closeLocked(session)
		}
	})
}

// closeLocked gives up the state of a session, if it has one.
func (ts *trees) closeLocked(session znode.SessionID) {
	t := ts.open[session]
	delete(ts.open, session)
	if t != nil && t.listed { // else list does it
		t.idle.Stop()
		ts.releaseLocked(t)
	}
}

// close gives up all states. There will be no others.
func (ts *trees) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	for session := range ts.open {
		ts.closeLocked(session)
	}
}

func (ts *trees) releaseLocked(t *openTree) {
	ts.kept--
	for _, sub := range t.subs {
		sub.Release()
	}
}

// readTree reads the part of a subtree that begins at a place.
func readTree(sub *znode.Subtree, place int64, x *wire.TreeResponse) {
	sub.GoTo(place)
	for bytes := 0; bytes < treeBytes && len(x.Znodes) < treeZnodes; {
		z, ok := sub.Next()
		if !ok {
			x.Next = -1
			return
		}
		x.Znodes = append(x.Znodes, wire.TreeZnode{
			Path: z.Path, Mode: z.Mode, Hidden: z.Hidden, Data: z.Data, Stat: z.Stat, ACL: z.ACL,
		})
		bytes += treeZnodeBytes(&x.Znodes[len(x.Znodes)-1])
	}
	x.Next = sub.Place()
}

// treeZnodeBytes is about how long a znode is in a reply.
func treeZnodeBytes(z *wire.TreeZnode) int {
	const fields, perACL = wire.StatBytes + 32, 32
	n := fields + len(z.Path) + len(z.Data)
	for i := range z.ACL {
		n += perACL + len(z.ACL[i].ID.ID)
	}
	return n
}
