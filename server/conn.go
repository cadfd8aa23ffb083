package server

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/internal/fifo"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// ErrClosed is returned for a request on a Conn that was closed.
var ErrClosed = errors.New("connection closed")

// maxQueue bounds the requests of one connection that wait for an answer. A
// client that sends more is not read from until some are answered.
const maxQueue = 4096

// maxQueueBytes bounds the reads of one connection that wait for a write, with the replies that they will get, in
// bytes, beside the last one. Those are given all at once, before the client can have read any of them.
const maxQueueBytes = 1 << 20

// Op is one request of a client, made by a listener. Its methods are called with
// the view lock held and must not block.
type Op interface {
	// Read answers a read from v.
	Read(v *View)
	// Weight is about how many bytes a waiting read takes: its request, and the reply that it would get from v.
	Weight(v *View) int
	// Done answers a write that was applied with this result; r is valid
	// during the call only.
	Done(v *View, r *state.Result)
}

// Client is the listener's side of a Conn. Its methods may be called from any
// goroutine, with the view lock held, and must not block.
type Client interface {
	// Notify sends a watch event.
	Notify(n *watch.Notification)
	// Disconnect ends the connection once what is in its outbox has been sent, or
	// soon if that does not work. Nothing more may be sent. The listener then calls
	// Conn.Close.
	Disconnect(r Reason)
	// Address is the client's, such as 192.0.2.7:40001.
	Address() string
}

// request is an Op in a Conn's queue.
type request struct {
	op     Op
	write  bool
	weight int // bytes; see Op.Weight
}

// Conn is one client's connection: its place in the order of requests, its
// identities, its watches and its session.
type Conn struct {
	server  *Server
	client  Client
	shard   uint32
	watcher *watch.Watcher

	identities atomic.Pointer[[]znode.ID]
	heard      time.Time   // about when something last came; protected by connections.mu
	touched    atomic.Bool // something came from the client since the last report: c is in connections.touched
	readOnly   bool        // of read-only mode; nothing is written

	// The reading goroutine's own.
	caller *caller // changes under mu, for Close
	places *places // nil: it has asked for nothing since it was idle

	mu sync.Mutex // protects the fields below
	// queue holds the requests that wait: its head is always a write, whose
	// result is awaited; reads come after the write they must follow.
	queue   fifo.Queue[request]
	bytes   int        // weights of the requests in the queue
	room    *sync.Cond // on mu: the queue has room again, or closed; nil: no one has waited for that
	session znode.SessionID
	timeout time.Duration
	local   bool // the session is known to this server alone
	closed  bool
	// broken means that no more requests are taken: a result is missing, and later ones would be given the answers to
	// earlier ones, or the session is no longer c's.
	broken bool
}

// NewConn registers a client with the identities its connection has by itself,
// such as its address. Close it when the connection has ended.
func (s *Server) NewConn(client Client, identities []znode.ID) *Conn {
	return newConn(s, client, identities, false)
}

func newConn(s *Server, client Client, identities []znode.ID, readOnly bool) *Conn {
	c := &Conn{server: s, client: client, shard: s.nextShard.Add(1) % viewShards, readOnly: readOnly}
	c.identities.Store(&identities)
	c.watcher = s.watches.NewWatcher(c)
	c.caller = s.Callers.join(identities)
	s.conns.add(c)
	return c
}

// Idle frees what a connection needs only while its client asks for something. Only its reading goroutine may call it.
func (c *Conn) Idle() {
	c.Rest()
	c.places = nil
	c.mu.Lock()
	if c.queue.Len() == 0 {
		c.queue = fifo.Queue[request]{}
	}
	c.mu.Unlock()
}

// Identities returns the identities that the client has proved; do not modify.
func (c *Conn) Identities() []znode.ID { return *c.identities.Load() }

// AddIdentity adds an identity. Only the connection's reading goroutine may call it.
func (c *Conn) AddIdentity(id znode.ID) {
	old := c.Identities()
	if slices.Contains(old, id) {
		return
	}
	next := append(old[:len(old):len(old)], id)
	c.identities.Store(&next)
	if callers := c.server.Callers; callerOf(next) != c.caller.name {
		c.Rest()
		c.places = nil
		x := callers.join(next)
		c.mu.Lock()
		if !c.closed { // else Close has left the other
			x, c.caller = c.caller, x
		}
		c.mu.Unlock()
		callers.leave(x)
	}
}

// Session returns the session that the connection carries, 0 before there is one,
// and its negotiated timeout.
func (c *Conn) Session() (znode.SessionID, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.timeout
}

// WatcherSession returns the session of the connection that a watcher belongs to; 0 for one without, such as
// an HTTP client's.
func WatcherSession(w *watch.Watcher) znode.SessionID {
	if c, ok := w.Sink().(*Conn); ok {
		id, _ := c.Session()
		return id
	}
	return 0
}

// Watcher returns the connection's place in the table of watches.
func (c *Conn) Watcher() *watch.Watcher { return c.watcher }

// Read executes op.Read, at once if no write of this connection is pending,
// else right after the last of them was applied. It blocks while the queue is
// full. Errors: ErrClosed.
func (c *Conn) Read(op Op) error {
	s := c.server
	waits, err := c.waits()
	if err != nil {
		return err
	}
	if waits {
		c.Rest() // what follows may wait
		s.view.shards[c.shard].RLock()
		weight := op.Weight(&s.current)
		s.view.shards[c.shard].RUnlock()
		if queued, err := c.enqueue(request{op: op, weight: weight}); queued || err != nil {
			return err
		}
	}
	// Only this goroutine adds writes, so the queue stays empty.
	s.view.shards[c.shard].RLock()
	c.watcher.CatchUp() // a client has the events of the changes that it sees
	op.Read(&s.current)
	s.view.shards[c.shard].RUnlock()
	return nil
}

// Write sends a command for this connection's session and has op.Done called
// when it was applied, or, with ErrSystem, was not sent because the tree may not
// grow. In read-only mode nothing is sent. It blocks while too much is pending.
// An error means that the command was not sent: ErrClosed, or the one of
// Consensus.Propose.
func (c *Conn) Write(cmd *state.Command, op Op) error {
	if c.readOnly && cmd.Op != state.OpCloseSession {
		return c.Read(refusedWrite{op, cmd.Op, znode.ErrNotReadOnly})
	}
	if cmd.Op == state.OpSync && fault.On(fault.SyncWithoutLog) {
		return c.Read(idleSync{op})
	}
	cmd.Flags |= c.server.flags
	if cmd.Session == 0 {
		id, local := c.carries()
		switch {
		case local && cmd.Op == state.OpCloseSession:
			return c.closeLocal(op)
		case local && createsEphemeral(cmd):
			if !c.server.cfg.UpgradeLocalSessions {
				return c.Read(refusedEphemeral{op, cmd})
			}
			if err := c.upgrade(); err != nil {
				return err
			}
			cmd.Session = id
		case !local:
			cmd.Session = id
		}
	}
	if code := c.server.admission.check(cmd); code != znode.OK {
		return c.Read(refusedWrite{op, cmd.Op, code})
	}
	c.Rest() // what follows may wait
	if _, err := c.enqueue(request{op: op, write: true}); err != nil {
		return err
	}
	switch err := c.server.consensus.Propose(cmd, c.server.Source.waiter(c, cmd), c.from()); {
	case errors.Is(err, forward.ErrOverdue):
		c.cut(ReasonOverdue)
		return err
	case err != nil:
		c.cut(ReasonStopping)
		return err
	}
	return nil
}

// carries returns the connection's session, and whether that is known to this server alone.
func (c *Conn) carries() (id znode.SessionID, local bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.local
}

// cut has c take no more requests, and disconnects the client. Earlier ones still get their answers.
func (c *Conn) cut(r Reason) {
	c.mu.Lock()
	c.broken = true
	c.wakeLocked()
	c.mu.Unlock()
	c.client.Disconnect(r)
}

// waits reports whether a write is pending, for which a read has to wait.
func (c *Conn) waits() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.broken {
		return false, ErrClosed
	}
	return c.queue.Len() > 0, nil
}

// enqueue puts r into the queue; a read only if something is there.
func (c *Conn) enqueue(r request) (queued bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.queue.Len() >= maxQueue || c.bytes > maxQueueBytes && !r.write) && !c.closed && !c.broken {
		c.waitLocked()
	}
	switch {
	case c.closed, c.broken:
		return false, ErrClosed
	case !r.write && (c.queue.Len() == 0 || fault.On(fault.ReadBeforeWrite)):
		return false, nil
	}
	c.queue.Push(r)
	c.bytes += r.weight
	return true, nil
}

// waitLocked waits until wakeLocked is called.
func (c *Conn) waitLocked() {
	if c.room == nil {
		c.room = sync.NewCond(&c.mu)
	}
	c.room.Wait()
}

func (c *Conn) wakeLocked() {
	if c.room != nil {
		c.room.Broadcast()
	}
}

// dequeue takes the head of the queue if it is a write, or, with write false, a read.
func (c *Conn) dequeue(write bool) (op Op, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue.Len() == 0 || c.queue.At(0).write != write {
		return nil, false
	}
	r := c.queue.Pop()
	c.bytes -= r.weight
	c.wakeLocked()
	return r.op, true
}

// clearLocked drops all requests that wait.
func (c *Conn) clearLocked() {
	c.queue, c.bytes = fifo.Queue[request]{}, 0
	c.wakeLocked()
}

// Applied implements Waiter: the oldest write has this result. The reads
// after it are answered here and now, before the next write is applied:
// requests of a client are executed in the order it sent them.
func (c *Conn) Applied(r *state.Result) {
	if c.server.Source.follows(r, c) {
		return
	}
	v := &c.server.current
	write, ok := c.dequeue(true)
	if !ok {
		return // closed meanwhile
	}
	switch r.Op {
	case state.OpCreateSession, state.OpAttach:
		if r.Code == znode.OK {
			c.server.conns.bind(c, r.Session, false)
		}
	case state.OpCloseSession:
		h := &c.server.handler
		h.closedElsewhere = slices.DeleteFunc(h.closedElsewhere, func(o *Conn) bool { return o == c })
	}
	c.watcher.CatchUp() // as in Read
	write.Done(v, r)
	for read, ok := c.dequeue(false); ok; read, ok = c.dequeue(false) {
		read.Read(v)
	}
}

// Lost implements Waiter: the oldest write's result will never be known here, because the state was replaced by a
// snapshot, or because ZooKeeper, which was to carry it out, has not answered.
// The requests after it are given up too. The results of those that are still
// to be applied find no request and are dropped.
func (c *Conn) Lost() {
	c.mu.Lock()
	c.broken = true
	c.clearLocked()
	c.mu.Unlock()
	c.client.Disconnect(ReasonReset)
}

// Notify implements watch.Sink. A client that may not read the znode does not learn
// of the event (ZooKeeper's CVE-2024-23944); the watch is used up all the same.
func (c *Conn) Notify(n *watch.Notification) {
	if znode.Permits(n.ACL, znode.PermRead, c.Identities()) {
		c.client.Notify(n)
	}
}

// Close frees what the connection holds here, but for its turn, which Rest ends; reason is why it has ended. The
// session goes on until it is closed or expires. Only the first call has an effect. Any goroutine may call it.
func (c *Conn) Close(reason string) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	c.clearLocked()
	id, x := c.session, c.caller
	c.mu.Unlock()
	c.server.Source.room.Broadcast()
	watches := c.watcher.Paths()
	c.server.watches.Drop(c.watcher)
	c.server.Callers.leave(x)
	if c.server.conns.remove(c, id) {
		c.server.expired.Disconnected(id, c.Who(), reason, watches)
	}
}

// refusedWrite answers a refused write in its place among its connection's requests.
type refusedWrite struct {
	Op
	kind state.Op
	code znode.Error
}

func (w refusedWrite) Read(v *View) { w.Done(v, refused(w.kind, w.code, v.Zxid())) }

// idleSync answers a sync with what this server happens to have: a deliberate fault.
type idleSync struct{ Op }

func (s idleSync) Read(v *View) { s.Done(v, &state.Result{Op: state.OpSync, Zxid: v.Zxid()}) }
