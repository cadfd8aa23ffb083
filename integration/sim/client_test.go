package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// client is one program that uses the ensemble, with one session at a time. Its fields are its own
// goroutine's.
type client struct {
	w    *world
	id   int
	rng  *rand.Rand
	stop <-chan struct{}

	session  znode.SessionID // 0: none
	password session.Password
	timeout  time.Duration
	seen     znode.Zxid // the newest state it knows, on any server
	versions map[string]znode.Version
	mine     []string // ephemerals
	// replicated: an ephemeral was acknowledged, so that all servers know the session, if it was local before.
	replicated bool
	ttls       []ttlZnode
	// watches are those that it believes to have. Protected by the mutex of its present connection.
	watches map[watched]bool
	values  int
}

func newClient(w *world, id int, stop <-chan struct{}) *client {
	return &client{
		w: w, id: id, stop: stop, rng: rand.New(rand.NewPCG(w.seed, uint64(100+id))),
		versions: map[string]znode.Version{}, watches: map[watched]bool{},
	}
}

func (c *client) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// sleep reports whether there is still something to do.
func (c *client) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.stop:
		return false
	}
}

// ms is a random time.
func (c *client) ms(least, spread int) time.Duration {
	return time.Duration(least)*time.Millisecond + time.Duration(c.rng.Int64N(int64(spread)*int64(time.Millisecond)))
}

// value is one that no other write carries.
func (c *client) value() string {
	c.values++
	return fmt.Sprintf("c%d-%d", c.id, c.values)
}

// connection is a client's connection to one life of a server. It is the server.Client.
type connection struct {
	c            *client
	number       int
	life         *life
	sc           *server.Conn
	disconnected chan struct{}
	sent         int // its client's own

	mu      sync.Mutex // protects the fields below
	over    bool       // nothing more is received
	why     string
	arrived int
	seen    znode.Zxid
}

// patience is how long a client waits for an answer before it tries another server, as ZooKeeper's
// clients do: two thirds of the session's timeout.
func (c *client) patience() time.Duration {
	if c.timeout == 0 {
		return minTimeout
	}
	return c.timeout * 2 / 3
}

// Notify implements server.Client.
func (x *connection) Notify(n *watch.Notification) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deafLocked() {
		return
	}
	if x.c.eavesdrops(n.Path) {
		x.c.w.record.violation("Permissions", "client %d, who may not read it, was told of %v %s", x.c.id, n.Type, n.Path)
		return
	}
	x.firedLocked(n.Type, n.Path)
	x.arrived++
	x.seen = max(x.seen, n.Zxid)
	x.c.w.record.event(check.Event{
		Client: x.c.id, Conn: x.number, At: x.c.w.now(), Arrival: x.arrived, Type: n.Type,
		Path: strings.Clone(n.Path), Zxid: n.Zxid,
	})
}

func (x *connection) deafLocked() bool { return x.over || x.life.dead.Load() }

// Address implements server.Client.
func (x *connection) Address() string { return "" }

// Disconnect implements server.Client.
func (x *connection) Disconnect(r server.Reason) { x.end(r.String()) }

// end makes the connection deaf.
func (x *connection) end(why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.over, x.why = true, why
		close(x.disconnected)
	}
}

// close is the client's end of it.
func (x *connection) close() {
	x.end("closed by the client")
	x.sc.Close("")
	x.c.seen = max(x.c.seen, x.seen)
}

// connect finds a server and takes the session there, or a new one.
func (c *client) connect(want int) *connection {
	for try := 0; !c.stopped(); try++ {
		i := want
		if i < 0 {
			i = c.rng.IntN(len(c.w.servers))
		}
		l := c.w.servers[i].running()
		if l == nil || c.w.clientsCut[i].Load() || l.freeze.closed() != nil || !l.srv.Serving() || c.ahead(l) {
			if !c.sleep(c.ms(5, 100)) {
				return nil
			}
			continue
		}
		x := &connection{c: c, number: c.w.record.nextConn(), life: l, disconnected: make(chan struct{})}
		x.sc = l.srv.NewConn(x, c.identities())
		session, seen := c.session, c.seen
		if c.shake(x) && (c.session != session || c.setWatches(x, seen)) {
			return x
		}
		x.close()
		if !c.sleep(c.ms(1, 50)) {
			return nil
		}
	}
	return nil
}

// ahead does what the ZooKeeper listener does: a client without a session is turned away by a server that is behind.
func (c *client) ahead(l *life) (ahead bool) {
	if c.session != 0 {
		return false
	}
	l.srv.View(func(v *server.View) { ahead = c.seen > v.Zxid() })
	return ahead
}

// shake is the handshake.
func (c *client) shake(x *connection) bool {
	op, cmd := check.Op{Kind: check.AttachSession}, &state.Command{
		Session: c.session, Password: c.password, Timeout: c.timeout,
	}
	if c.session == 0 {
		op.Kind = check.OpenSession
		cmd.Timeout = c.ms(2000, 8000)
	}
	k, ok := x.send(op, cmd)
	if !ok || !x.await(k) {
		return false
	}
	switch k.op.Code {
	case znode.OK:
		c.session, c.password, c.timeout = k.session.ID, k.session.Password, k.session.Timeout
		return true
	case znode.ErrSessionExpired:
		if c.w.truth.endOf(c.session) == check.Alive && (!c.w.opt.local || c.replicated) {
			c.w.record.violation("Sessions", "client %d was told that session %v is over at %v, which lives",
				c.id, c.session, c.w.now())
		}
		c.forget()
	}
	return false
}

// forget begins a life without a session.
func (c *client) forget() {
	c.session, c.timeout, c.mine, c.replicated = 0, 0, nil, false
	clear(c.watches)
}

// run works until it is stopped.
func (c *client) run() {
	for !c.stopped() {
		x := c.connect(-1)
		if x == nil {
			return
		}
		for !c.stopped() && c.round(x) {
			if !c.sleep(c.ms(1, c.w.opt.think)) {
				break
			}
		}
		x.close()
		if c.rng.IntN(12) == 0 { // long enough to lose the session, perhaps
			c.sleep(c.ms(0, int(3*maxTimeout/2/time.Millisecond)/2))
		}
	}
}

// round is some requests at once, and their answers. False ends the connection.
func (c *client) round(x *connection) bool {
	switch n := c.rng.IntN(400); {
	case n == 0:
		return c.closeSession(x)
	case n < 4:
		return false // goes elsewhere
	case n < 8:
		return c.idle(x)
	case n < 20:
		return c.lock(x)
	}
	var calls []*call
	for range 1 + c.rng.IntN(c.w.opt.pipeline) {
		more, ok := c.request(x)
		calls = append(calls, more...)
		if !ok {
			return false
		}
	}
	if c.rng.IntN(5) == 0 {
		kind := c.permission
		if c.rng.IntN(2) == 0 {
			kind = c.expire
		}
		more, ok := kind(x)
		calls = append(calls, more...)
		if !ok {
			return false
		}
	}
	if c.rng.IntN(60) == 0 {
		return false // breaks with its requests under way
	}
	ok := x.await(calls...)
	for _, k := range calls {
		c.learn(k)
	}
	return ok
}

// learn remembers versions for conditional writes, and what is its own.
func (c *client) learn(k *call) {
	select {
	case <-k.done:
	default:
		return
	}
	o := k.op
	if o.Outcome != check.OK {
		if o.Code == znode.ErrNoNode {
			delete(c.versions, o.Path)
			c.forgetTTL(o.Path)
		}
		return
	}
	switch o.Kind {
	case check.Get, check.Exists, check.Set:
		c.versions[o.Path] = o.Stat.Version
	case check.Create:
		c.versions[o.Created] = 0
		if o.Mode.Ephemeral() {
			c.mine, c.replicated = append(c.mine, o.Created), true
		}
		if ttl, ok := lifeOf(o.Value); ok {
			c.ttls = append(c.ttls, ttlZnode{o.Created, ttl})
		}
	}
}

// closeSession ends the session, and the connection.
func (c *client) closeSession(x *connection) bool {
	k, ok := x.send(check.Op{Kind: check.CloseSession}, &state.Command{Op: state.OpCloseSession})
	if ok && x.await(k) {
		c.forget()
	}
	return false
}

// idle only pings for a while.
func (c *client) idle(x *connection) bool {
	for range 1 + c.rng.IntN(6) {
		if !c.sleep(c.timeout / 3) {
			return false
		}
		if !x.reach() {
			return false
		}
		x.sc.Touch()
		x.mu.Lock()
		if !x.deafLocked() {
			c.w.truth.told(c.session)
		}
		x.mu.Unlock()
	}
	return true
}
