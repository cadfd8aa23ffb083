package mirror

import (
	"context"
	"errors"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fifo"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// carrier brings to the origin's leader, on one connection, what our clients ask for (state.Machine.Relays). The answer
// to most is the transaction that has their session and number, which the state machine finds; the others are here.
type carrier struct {
	f     *feed
	l     Learner
	ready chan struct{} // closed when the origin's leader is found
	wake  chan struct{} // has an element if there may be relays to send
	after uint64        // the last relay that was sent
	old   bool          // the origin is of ZooKeeper 3.4; set before ready
	// mine are the sessions that the origin has at this connection; it refuses the requests of others.
	mine map[znode.SessionID]bool

	mu     sync.Mutex                     // protects the fields below
	syncs  fifo.Queue[awaited]            // without an answer yet
	claims map[znode.SessionID]claimQueue // relays that wait for a session, by session; mark: none does
}

type claimQueue = *fifo.Queue[uint64]

// mark is no relay's number.
const mark = 0

// awaited is what the answer to a sync is for.
type awaited struct {
	number uint64      // of the relay; mark: our own
	code   znode.Error // that the relay gets
}

func newCarrier(f *feed, l Learner) *carrier {
	return &carrier{
		f: f, l: l, ready: make(chan struct{}), wake: make(chan struct{}, 1),
		mine: map[znode.SessionID]bool{}, claims: map[znode.SessionID]claimQueue{},
	}
}

// Wake implements server.Carrier.
func (m *Mirror) Wake() {
	if c := m.carrier.Load(); c != nil {
		notify(c.wake)
	}
}

// Touched implements server.Carrier: the origin keeps a session alive as long as it is named.
func (m *Mirror) Touched(ids []znode.SessionID) {
	c := m.carrier.Load()
	if c == nil {
		return
	}
	for _, id := range ids {
		if timeout, ok := m.log.Timeout(id); ok {
			_ = c.l.Touch(id, int32(timeout.Milliseconds())) // of an id that ZooKeeper must not see: there is none
		}
	}
}

// lose has all relays dropped that may have been sent, by a former leader or on a former connection.
func (m *Mirror) lose(ctx context.Context, term uint64) error {
	r, err := m.log.Do(ctx, &state.Command{Op: state.OpMirror, Mirror: state.MirrorLost, Term: term})
	if err != nil {
		return err
	}
	if r.Code == znode.OK {
		m.sent = false
	}
	return errorOf(r.Code)
}

// maxCarried is how many relays are looked for at once.
const maxCarried = 256

// relayed is a relay to be sent.
type relayed struct {
	number uint64
	*state.Command
}

// carry sends relays until the connection ends.
func (c *carrier) carry() {
	select {
	case <-c.ready:
	case <-c.f.ctx.Done():
		return
	}
	err := c.sync(markSession, awaited{number: mark})
	for err == nil {
		var batch []relayed
		c.f.m.log.Relays(c.f.term, c.after, func(number uint64, r *state.Command) bool {
			batch = append(batch, relayed{number, r})
			return len(batch) < maxCarried
		})
		for i := range batch {
			if err = c.send(&batch[i]); err != nil {
				break
			}
			c.after = batch[i].number
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-c.wake:
		case <-c.f.ctx.Done():
			return
		}
	}
	if !errors.Is(err, learner.ErrNotConnected) { // Follow knows better why
		c.f.fail(err)
	}
}

// markSession is in syncs of our own, which belong to no session: the leader does not refuse them.
const markSession = 1

// send sends one relay.
func (c *carrier) send(r *relayed) error {
	switch r.Op {
	case state.OpAttach:
		return c.claim(r.number, r.Session, int32(r.Timeout.Milliseconds()))
	case state.OpCreateSession:
		c.mine[r.Session] = true
	}
	op, record := requestOf(r.Command)
	switch {
	case c.old && newer(r.Command):
		return c.refuse(r, znode.ErrUnimplemented)
	case longest(r.Command, record) > c.f.m.cfg.Limits.MaxBuffer+extraBuffer:
		return c.refuse(r, znode.ErrBadArguments)
	}
	if !c.mine[r.Session] { // it was opened on an earlier connection
		timeout, _ := c.f.m.log.Timeout(r.Session)
		if err := c.claim(mark, r.Session, int32(timeout.Milliseconds())); err != nil {
			return err
		}
	}
	if r.Op == state.OpSync {
		return c.sync(r.Session, awaited{r.number, znode.OK})
	}
	return c.l.Request(r.Session, state.RelayCxid(r.number), int32(op), record, r.Identities)
}

// refuse answers a relay that is not sent, in its turn: behind the answers to those before it.
func (c *carrier) refuse(r *relayed, code znode.Error) error {
	return c.sync(markSession, awaited{r.number, code})
}

func (c *carrier) sync(session znode.SessionID, a awaited) error {
	c.mu.Lock()
	c.syncs.Push(a)
	c.mu.Unlock()
	return c.l.Sync(session, state.RelayCxid(a.number), znode.RootPath)
}

// claim has a session move to this connection.
func (c *carrier) claim(number uint64, session znode.SessionID, timeout int32) error {
	c.mine[session] = true
	c.mu.Lock()
	q := c.claims[session]
	if q == nil {
		q = new(fifo.Queue[uint64])
		c.claims[session] = q
	}
	q.Push(number)
	c.mu.Unlock()
	return c.l.Revalidate(session, timeout)
}

// revalidated takes the answer to the oldest claim of a session.
func (c *carrier) revalidated(session znode.SessionID, valid bool) error {
	c.mu.Lock()
	number, q := uint64(mark), c.claims[session]
	if q != nil {
		if number = q.Pop(); q.Len() == 0 {
			delete(c.claims, session)
		}
	}
	c.mu.Unlock()
	switch {
	case number == mark:
		return nil
	case !valid:
		return c.f.enqueue(answered(number, znode.ErrSessionExpired))
	}
	return c.f.enqueue(answered(number, znode.OK))
}

// synced takes the answer to the oldest sync. That to our own comes behind all that we had missed.
func (c *carrier) synced() error {
	c.mu.Lock()
	a := c.syncs.Pop() // the learner has counted them
	c.mu.Unlock()
	if a.number == mark {
		return c.f.enqueue(item{step: state.MirrorOnline})
	}
	return c.f.enqueue(answered(a.number, a.code))
}

func answered(number uint64, code znode.Error) item {
	return item{step: state.MirrorAnswer, raw: state.AppendAnswer(nil, number, code)}
}

// extraBuffer is how many bytes more than jute.maxbuffer a field of a packet may have: ZooKeeper up to 3.5.6 has this
// constant, later ones zookeeper.jute.maxbuffer.extrasize, which is no less (BinaryInputArchive).
const extraBuffer = 1024

// longest bounds the fields of the request that forwards a command, and of the transaction that it may become. If one
// is too long, the leader ends our connection, on which all clients wait, or ZooKeeper's followers end theirs to the
// leader: a client can make the transaction longer by identities, which replace "auth" in each ACL, and by sequential
// names.
func longest(c *state.Command, record []byte) int {
	const head = 45 // of a transaction, with its digest; that of a request is shorter
	ids, id := 0, 0
	for i := range c.Identities {
		n := 12 + len(c.Identities[i].Scheme) + len(c.Identities[i].ID)
		ids, id = ids+n, max(id, n)
	}
	n := head + len(record) + growth(c, ids)
	for i := range c.Ops {
		n += growth(&c.Ops[i], ids)
	}
	return max(n, id)
}

// growth is how much longer than its request a transaction may be, if the client's identities take ids bytes.
func growth(c *state.Command, ids int) (n int) {
	const digits = 10
	if c.Op == state.OpCreate && c.Mode.Sequential() {
		n = digits
	}
	for i := range c.ACL {
		if c.ACL[i].ID.Scheme == znode.AuthIDs.Scheme {
			n += ids
		}
	}
	return n
}

// newer reports whether ZooKeeper 3.4 does not know a request, which it would not answer.
func newer(c *state.Command) bool {
	for i := range c.Ops {
		if newer(&c.Ops[i]) {
			return true
		}
	}
	return c.Op == state.OpCreate && c.Kind != znode.CreatePlain
}

// requestOf is a command as a ZooKeeper server forwards it. A plain create is always the oldest of its requests, which
// all versions know: what the client is answered is made here.
func requestOf(c *state.Command) (wire.OpCode, []byte) {
	switch c.Op {
	case state.OpCreateSession:
		return wire.OpCode(replica.OpCreateSession), jute.AppendInt32(nil, int32(c.Timeout.Milliseconds()))
	case state.OpCloseSession:
		return wire.OpCloseSession, nil
	case state.OpSync:
		return wire.OpSync, nil // Learner.Sync makes the record
	case state.OpMulti:
		var multi wire.MultiRequest
		for i := range c.Ops {
			op, q := writeOf(&c.Ops[i])
			multi.Ops = append(multi.Ops, wire.MultiOp{Type: op, Request: q})
		}
		return wire.OpMulti, multi.Append(nil)
	}
	op, q := writeOf(c)
	return op, q.Append(nil)
}

func writeOf(c *state.Command) (wire.OpCode, wire.Request) {
	switch c.Op {
	case state.OpCreate:
		return createOf(c)
	case state.OpDelete:
		return wire.OpDelete, &wire.DeleteRequest{Path: c.Path, Version: c.Version}
	case state.OpSetData:
		return wire.OpSetData, &wire.SetDataRequest{Path: c.Path, Data: c.Data, Version: c.Version}
	case state.OpSetACL:
		return wire.OpSetACL, &wire.SetACLRequest{Path: c.Path, ACL: c.ACL, Version: c.Version}
	case state.OpCheck:
		return wire.OpCheck, &wire.CheckRequest{Path: c.Path, Version: c.Version}
	}
	panic("mirror: invariant broken: the state machine relays a command that ZooKeeper does not have: " + c.Op.String())
}

func createOf(c *state.Command) (wire.OpCode, wire.Request) {
	q := &wire.CreateRequest{Path: c.Path, Data: c.Data, ACL: c.ACL, Mode: c.Mode}
	switch c.Kind {
	case znode.CreateContainer:
		return wire.OpCreateContainer, q
	case znode.CreateTTL:
		return wire.OpCreateTTL, &wire.CreateTTLRequest{
			Path: c.Path, Data: c.Data, ACL: c.ACL, Mode: c.Mode, TTLMillis: c.TTL,
		}
	}
	return wire.OpCreate, q
}
