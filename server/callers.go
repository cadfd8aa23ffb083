package server

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/internal/fair"
	"github.com/zk-lite/zk-lite/znode"
)

// caller is the client that a connection's requests count for: they take turns with those of others, and may fill a
// part of the queue to the leader.
type caller struct {
	name string
	uses int // connections and requests that have it; protected by callers.mu
	turn fair.Group
	room fair.Group
}

// callers are the callers of a server.
type callers struct {
	turns *fair.Turns // of connections that execute requests

	mu  sync.Mutex // protects the field below
	all map[string]*caller
}

// newCallers lets one connection fewer work at a time than there are processors, because Go looks for bytes that have
// come only where a processor has nothing to run, or every 10 ms.
func newCallers() *callers {
	return &callers{turns: fair.NewTurns(max(1, runtime.GOMAXPROCS(0)-1)), all: map[string]*caller{}}
}

// callerOf names the caller with these identities: the one that a certificate or SASL has proved, else the address. A
// digest is no such proof: a client may make up a name for each connection. So may one that has a network of IPv6,
// whose 64 bits count as one address.
func callerOf(ids []znode.ID) string {
	address := ""
	for _, id := range ids {
		switch id.Scheme {
		case "x509", "sasl":
			return id.Scheme + ":" + id.ID
		case "ip":
			address = id.ID
		}
	}
	if a, err := netip.ParseAddr(address); err == nil && a.Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return address
}

// join returns the caller with these identities; leave must follow.
func (t *callers) join(ids []znode.ID) *caller {
	name := callerOf(ids)
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.all[name]
	if x == nil {
		x = &caller{name: name}
		t.all[name] = x
	}
	x.uses++
	return x
}

func (t *callers) leave(x *caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.uses--; x.uses == 0 {
		delete(t.all, x.name)
	}
}

// turn is a connection's place among those that want to execute requests. It belongs to the connection's reading
// goroutine.
type turn struct {
	member fair.Member
	has    bool
	since  time.Time
	served int // requests in it
}

// Work returns once c may execute a request: connections that read much take turns with those that read little. It has
// its turn until Rest, or until it has had it for long enough and others wait. Writes, and reads that wait for one, end
// it. Only the connection's reading goroutine may call it.
func (c *Conn) Work() {
	turns, t := c.server.callers.turns, &c.turn
	if t.has {
		if t.served++; !turns.Waits() || time.Since(t.since) < fair.Slice {
			return
		}
		c.Rest()
	}
	turns.Take(&t.member)
	t.has, t.since, t.served = true, time.Now(), 1
}

// Rest ends the turn of a connection that executes nothing for now, such as one that waits for its client. Only the
// connection's reading goroutine may call it.
func (c *Conn) Rest() {
	if t := &c.turn; t.has {
		t.has = false
		c.server.callers.turns.Give(&t.member, t.served)
	}
}

// from is from whom the commands of c are.
func (c *Conn) from() forward.From {
	_, timeout := c.Session()
	return forward.From{Member: &c.share, Patience: timeout}
}

// from is from whom a command of the client with these identities is, which waits until ctx's deadline at most. done
// must follow.
func (t *callers) from(ctx context.Context, ids []znode.ID) (f forward.From, done func()) {
	if len(ids) == 0 {
		return f, func() {}
	}
	x := t.join(ids)
	f.Member = new(fair.Member)
	f.Member.Join(&x.room)
	if deadline, ok := ctx.Deadline(); ok {
		f.Patience = max(time.Until(deadline), 1)
	}
	return f, func() { t.leave(x) }
}
