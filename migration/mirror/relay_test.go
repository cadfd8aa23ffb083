package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Request implements Learner: it commits what is asked for, if the session is this connection's.
func (c *connection) Request(id znode.SessionID, cxid, op int32, record []byte, _ []znode.ID) error {
	o := c.origin
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, fmt.Sprintf("%v of %v", replica.Op(op), id))
	if o.owners == nil {
		o.owners = map[znode.SessionID]*connection{}
	}
	r := jute.NewReader(record)
	switch {
	case o.silent.Load():
	case replica.Op(op) == replica.OpCreateSession:
		o.owners[id] = c
		o.commitLocked(id, cxid, replica.OpCreateSession, record)
	case o.owners[id] != c:
		o.commitLocked(id, cxid, replica.OpError, jute.AppendInt32(nil, int32(znode.ErrSessionMoved)))
	case wire.OpCode(op) == wire.OpCreate:
		var q wire.CreateRequest
		q.Decode(r)
		b := jute.AppendVectorLen(jute.AppendBuffer(jute.AppendUstring(nil, q.Path), q.Data), 1)
		b = jute.AppendUstring(jute.AppendUstring(jute.AppendInt32(b, 31), "world"), "anyone")
		o.commitLocked(id, cxid, replica.OpCreate, jute.AppendInt32(jute.AppendBool(b, q.Mode.Ephemeral()), -1))
	default:
		o.commitLocked(id, cxid, replica.OpError, jute.AppendInt32(nil, int32(znode.ErrNoNode)))
	}
	return nil
}

// Revalidate implements Learner.
func (c *connection) Revalidate(id znode.SessionID, _ int32) error {
	c.origin.mu.Lock()
	defer c.origin.mu.Unlock()
	c.asked = append(c.asked, fmt.Sprintf("revalidate %v", id))
	valid := c.r.Sessions.Get(id) != nil
	if c.owners == nil {
		c.owners = map[znode.SessionID]*connection{}
	}
	if valid {
		c.owners[id] = c
	}
	c.later(func(h learner.Handler) error { return h.Revalidated(id, valid) })
	return nil
}

// Sync implements Learner.
func (c *connection) Sync(id znode.SessionID, _ int32, _ string) error {
	c.origin.mu.Lock()
	defer c.origin.mu.Unlock()
	c.asked = append(c.asked, fmt.Sprintf("sync of %v", id))
	c.later(learner.Handler.Synced)
	return nil
}

func (c *connection) later(answer func(learner.Handler) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, due{c.r.Zxid, answer})
}

// due is an answer that is no transaction, and comes behind one.
type due struct {
	behind znode.Zxid
	call   func(learner.Handler) error
}

// deliver delivers the answers that come behind a transaction, or one before it.
func (c *connection) deliver(h learner.Handler, last znode.Zxid) error {
	for {
		c.mu.Lock()
		if len(c.answers) == 0 || c.answers[0].behind > last {
			c.mu.Unlock()
			return nil
		}
		call := c.answers[0].call
		c.answers = c.answers[1:]
		c.mu.Unlock()
		if err := call(h); err != nil {
			return err
		}
	}
}

// Touch implements Learner.
func (c *connection) Touch(id znode.SessionID, timeout int32) error {
	c.origin.mu.Lock()
	defer c.origin.mu.Unlock()
	c.asked = append(c.asked, fmt.Sprintf("touch %v %d", id, timeout))
	return nil
}

// Relays implements Log.
func (n *node) Relays(term, after uint64, visit func(uint64, *state.Command) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.machine.Relays(term, after, visit)
}

// Timeout implements Log.
func (n *node) Timeout(id znode.SessionID) (time.Duration, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.machine.Sessions().Get(id); s != nil {
		return s.Timeout, true
	}
	return 0, false
}

// ask has a command of a client of the first server applied.
func (g *rig) ask(c state.Command) {
	g.t.Helper()
	n := &node{ensemble: g.ensemble, number: 7, seq: g.clients}
	g.clients++
	if r, err := n.Do(g.t.Context(), &c); err != nil || r.Relay == 0 {
		g.t.Fatalf("%v: %+v, %v; want it relayed", c.Op, r, err)
	}
}

// online waits until clients may be served.
func (g *rig) online() {
	g.t.Helper()
	g.until("online", func() bool { now, on := g.mirror(); return on && now.Online })
}

func (g *rig) until(what string, is func() bool) {
	g.t.Helper()
	for range 600 {
		if is() {
			return
		}
		clock.Sleep(100 * time.Millisecond)
	}
	g.t.Fatalf("after a minute not %s; log:\n%v", what, &g.log)
}

// took takes the outcomes of relays.
func (g *rig) took(n int) []string {
	g.t.Helper()
	var all []string
	g.until(fmt.Sprintf("%d outcomes", n), func() bool {
		g.ensemble.mu.Lock()
		defer g.ensemble.mu.Unlock()
		all = slices.Clone(g.outcomes)
		return len(all) >= n
	})
	g.ensemble.mu.Lock()
	defer g.ensemble.mu.Unlock()
	g.outcomes = nil
	return all
}

func (g *rig) requests() []string {
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	all := g.asked
	g.asked = nil
	return all
}

func createOfClient(id znode.SessionID, path string) state.Command {
	return state.Command{Op: state.OpCreate, Session: id, Path: path, ACL: znode.OpenACL}
}

func (g *rig) want(what string, got []string, want ...string) {
	g.t.Helper()
	if !slices.Equal(got, want) {
		g.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

const client, itsID = "0x100", znode.SessionID(0x100)

var itsPassword = session.CompatiblePassword(itsID)

// What clients ask for is sent once and in order, sessions are claimed before their first request on a connection, and
// what may have been sent is never sent again.
func TestMirror_Relays(t *testing.T) {
	mirroring(t, 2, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.online()
		g.want("at first", g.requests(), "sync of 0x1")
		g.ask(state.Command{Op: state.OpCreateSession, Session: itsID, Timeout: 4 * time.Second, Password: itsPassword})
		g.took(1)
		g.ask(createOfClient(itsID, "/b"))
		g.ask(state.Command{Op: state.OpSync, Session: itsID})
		g.ask(createOfClient(itsID, "/c"))
		g.ask(state.Command{Op: state.OpDelete, Session: itsID, Path: "/x"})
		g.want("outcomes", g.took(4), "2 create OK", "3 sync OK", "4 create OK", "5 delete NONODE")
	})
}

// When the connection ends, what was sent on it is lost, and what comes meanwhile is sent on the next one.
func TestMirror_Relays_Lost(t *testing.T) {
	mirroring(t, 2, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.online()
		for _, id := range []znode.SessionID{itsID, itsID + 1} {
			g.ask(state.Command{Op: state.OpCreateSession, Session: id, Timeout: 4 * time.Second, Password: session.CompatiblePassword(id)})
		}
		g.took(2)
		g.mirrors[0].Touched([]znode.SessionID{itsID, 0x999})
		g.mirrors[1].Touched([]znode.SessionID{itsID})
		g.want("sent", g.requests(), "sync of 0x1", "createSession of 0x100", "createSession of 0x101", "touch 0x100 4000")
		g.silent.Store(true)
		g.ask(createOfClient(itsID, "/b"))
		if n := g.mirrors[1].Status().Relays; n != 1 {
			t.Errorf("%d requests wait, want 1", n)
		}
		g.until("sent", func() bool { return slices.Contains(g.requests(), "create of 0x100") })
		g.cut.Store(true)
		g.want("outcomes", g.took(1), "3 create CONNECTIONLOSS")
		g.silent.Store(false)
		g.ask(createOfClient(itsID+1, "/c")) // perhaps before the next connection
		g.want("outcomes then", g.took(1), "4 create OK")
		got := strings.Join(g.requests(), ", ")
		if !strings.HasSuffix(got, "revalidate 0x101, create of 0x101") || strings.Contains(got, "of 0x100") {
			t.Errorf("sent then: %s; want the session claimed before its request, and nothing again", got)
		}
		g.ask(state.Command{Op: state.OpAttach, Session: itsID, Timeout: time.Second, Password: itsPassword})
		g.ask(state.Command{Op: state.OpAttach, Session: 0x555, Timeout: time.Second, Password: session.CompatiblePassword(0x555)})
		g.want("outcomes of moves", g.took(2), "5 attach OK", "6 attach SESSIONEXPIRED")
	})
}

// A new leader sends nothing that a former one may have sent.
func TestMirror_Relays_AnotherLeader(t *testing.T) {
	mirroring(t, 2, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.online()
		g.ask(state.Command{Op: state.OpCreateSession, Session: itsID, Timeout: 4 * time.Second, Password: itsPassword})
		g.took(1)
		g.silent.Store(true)
		g.ask(createOfClient(itsID, "/b"))
		g.until("sent", func() bool { return slices.Contains(g.requests(), "create of 0x100") })
		g.lead(1)
		g.want("outcomes", g.took(1), "2 create CONNECTIONLOSS")
		g.silent.Store(false)
		g.online()
		g.ask(state.Command{Op: state.OpAttach, Session: itsID, Timeout: time.Second, Password: itsPassword})
		g.want("outcomes then", g.took(1), "3 attach OK")
		if got := strings.Join(g.requests(), ", "); strings.Contains(got, "create of 0x100") {
			t.Errorf("sent then: %s; want nothing again", got)
		}
	})
}

// What ZooKeeper's leader would not survive, or not answer, is refused alone and in its turn: a request, or the transaction
// that it becomes, of more than jute.maxbuffer and 1024 bytes ends our connection, with all clients that wait.
func TestMirror_Relays_Refused(t *testing.T) {
	const limit = 500 + extraBuffer
	at := func(bytes int) state.Command { // the longest that passes has limit bytes
		c := createOfClient(itsID, "/b")
		c.Data = make([]byte, bytes-45-(4+2)-4-(4+23)-4)
		return c
	}
	auth := createOfClient(itsID, "/auth")
	auth.ACL = []znode.ACL{{Perms: znode.PermAll, ID: znode.AuthIDs}}
	auth.Identities = []znode.ID{{Scheme: "digest", ID: strings.Repeat("u", limit/2)}}
	two := state.Command{Op: state.OpMulti, Session: itsID, Identities: auth.Identities, Ops: []state.Command{auth, auth}}
	long := state.Command{Op: state.OpDelete, Session: itsID, Path: "/x", Identities: []znode.ID{{Scheme: "x509", ID: strings.Repeat("u", limit)}}}
	many := state.Command{Op: state.OpMulti, Session: itsID}
	for range 30 { // 40 bytes each, and 10 digits
		many.Ops = append(many.Ops, state.Command{Op: state.OpCreate, Path: "/s-", Mode: znode.PersistentSequential, ACL: []znode.ACL{{ID: znode.ID{Scheme: "ip"}}}})
	}
	container := createOfClient(itsID, "/c")
	container.Kind = znode.CreateContainer
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		g.edit(func() { g.old = true })
		g.begin(false)
		g.settle()
		g.online()
		g.ask(state.Command{Op: state.OpCreateSession, Session: itsID, Timeout: 4 * time.Second, Password: itsPassword})
		g.took(1)
		g.requests()
		for _, c := range []state.Command{
			createOfClient(itsID, "/first"), at(limit + 1), at(limit), two, long, many, container, createOfClient(itsID, "/last"), auth,
		} {
			g.ask(c)
		}
		g.want("outcomes", g.took(9), "2 create OK", "3 create BADARGUMENTS", "4 create OK", "5 multi BADARGUMENTS",
			"6 delete BADARGUMENTS", "7 multi BADARGUMENTS", "8 create UNIMPLEMENTED", "9 create OK", "10 create OK")
		g.want("sent", g.requests(), "create of 0x100", "sync of 0x1", "create of 0x100", "sync of 0x1", "sync of 0x1", "sync of 0x1",
			"sync of 0x1", "create of 0x100", "create of 0x100")
	})
}

// A command becomes the request that a ZooKeeper server would forward.
func TestRequestOf(t *testing.T) {
	ttl := state.Command{Op: state.OpCreate, Path: "/t", Kind: znode.CreateTTL, Mode: znode.PersistentTTL, TTL: 5, ACL: znode.OpenACL}
	container := state.Command{Op: state.OpCreate, Path: "/c", Kind: znode.CreateContainer, Mode: znode.Container, ACL: znode.OpenACL}
	multi := state.Command{Op: state.OpMulti, Ops: []state.Command{
		ttl, container, {Op: state.OpCreate, Path: "/a", Mode: znode.Ephemeral}, {Op: state.OpCheck, Path: "/a", Version: 3},
		{Op: state.OpDelete, Path: "/a", Version: 3}, {Op: state.OpSetData, Path: "/a", Version: 3},
	}}
	for _, tt := range []struct {
		c     state.Command
		op    wire.OpCode
		newer bool
	}{
		{ttl, wire.OpCreateTTL, true},
		{container, wire.OpCreateContainer, true},
		{multi, wire.OpMulti, true},
		{state.Command{Op: state.OpCreate, Path: "/a"}, wire.OpCreate, false},
		{state.Command{Op: state.OpSetACL, Path: "/a", ACL: znode.OpenACL}, wire.OpSetACL, false},
		{state.Command{Op: state.OpSetData, Path: "/a", Data: []byte{}}, wire.OpSetData, false},
		{state.Command{Op: state.OpDelete, Path: "/a", Version: -1}, wire.OpDelete, false},
	} {
		op, record := requestOf(&tt.c)
		if op != tt.op || newer(&tt.c) != tt.newer {
			t.Errorf("%v is %v, newer %v; want %v, %v", tt.c.Op, op, newer(&tt.c), tt.op, tt.newer)
		}
		back := wire.NewRequest(op)
		r := jute.NewReader(record)
		if back.Decode(r); r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("%v: %d bytes are left, error %v; want none", op, r.Remaining(), r.Err())
		}
	}
	if op, record := requestOf(&state.Command{Op: state.OpCreateSession, Timeout: time.Second}); op != -10 || len(record) != 4 {
		t.Errorf("a session is %v with %d bytes, want -10 with 4", op, len(record))
	}
	if op, record := requestOf(&state.Command{Op: state.OpCloseSession}); op != -11 || len(record) != 0 {
		t.Errorf("its end is %v with %d bytes, want -11 with 0", op, len(record))
	}
}
