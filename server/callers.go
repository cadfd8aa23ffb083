package server

import (
	"context"
	"maps"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/internal/fair"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// caller is the client that a connection's requests count for: they take turns with those of others, and may fill a
// part of the queue to the leader.
type caller struct {
	name string
	uses int // connections and requests that have it; protected by callers.mu
	turn fair.Group
	room fair.Group
	budget
}

// Callers are the clients of a server, as far as they share it.
type Callers struct {
	rates Rates       // of each
	turns *fair.Turns // of connections that execute requests

	mu  sync.Mutex // protects the field below
	all map[string]*caller
}

// newCallers lets one connection fewer work at a time than there are processors, because Go looks for bytes that have
// come only where a processor has nothing to run, or every 10 ms.
func newCallers(rates Rates) *Callers {
	return &Callers{rates: rates, turns: fair.NewTurns(max(1, runtime.GOMAXPROCS(0)-1)), all: map[string]*caller{}}
}

// callerOf names the caller with these identities: the one that a certificate, SASL or a token has proved, else the
// address. A digest is no such proof: a client may make up a name for each connection. So may one that has a network of
// IPv6, whose 64 bits count as one address.
func callerOf(ids []znode.ID) string {
	address := ""
	for _, id := range ids {
		switch id.Scheme {
		case "x509", "sasl", "token":
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
func (t *Callers) join(ids []znode.ID) *caller {
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

func (t *Callers) leave(x *caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.uses--; x.uses == 0 && x.isPaid(time.Now()) {
		delete(t.all, x.name)
	}
}

// sweep forgets callers that are gone, and owe nothing any longer.
func (t *Callers) sweep(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(_ string, x *caller) bool { return x.uses == 0 && x.isPaid(now) })
}

// places are a connection's among the others that ask for something.
type places struct {
	turn  turn
	share fair.Member // of what may be pending
}

// busy returns c's places. Only its reading goroutine may call it.
func (c *Conn) busy() *places {
	if c.places == nil {
		c.places = new(places)
		c.places.turn.member.Join(&c.caller.turn)
		c.places.share.Join(&c.caller.room)
	}
	return c.places
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
	turns, t := c.server.Callers.turns, &c.busy().turn
	if t.has {
		if t.served++; !turns.Waits() || time.Since(t.since) < fair.Slice {
			return
		}
		c.Rest()
	}
	turns.Take(&t.member)
	c.noteHeld(&t.member)
	t.has, t.since, t.served = true, time.Now(), 1
}

// Rest ends the turn of a connection that executes nothing for now, such as one that waits for its client. Only the
// connection's reading goroutine may call it.
func (c *Conn) Rest() {
	if p := c.places; p != nil && p.turn.has {
		p.turn.has = false
		c.server.Callers.turns.Give(&p.turn.member, p.turn.served)
	}
}

// from is from whom the commands of c are.
func (c *Conn) from() forward.From {
	_, timeout := c.Session()
	return forward.From{Member: &c.busy().share, Patience: timeout}
}

// from is from whom a command of the client with these identities is, which waits until ctx's deadline at most. done
// must follow.
func (t *Callers) from(ctx context.Context, ids []znode.ID) (f forward.From, done func()) {
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

// Rates bound what a client may ask for in a second; 0: there is no bound.
type Rates struct{ Requests, Bytes int }

// burst is how long a client may have asked for nothing, and ask for all of that at once.
const burst = time.Second

// budget is what a caller may still ask for. Each field is when all that it has asked for would be paid for ("generic
// cell rate algorithm", ITU-T I.371).
type budget struct {
	mu              sync.Mutex // protects the fields below
	requests, bytes time.Time
}

// take counts a request of so many bytes, and returns how long it must wait; if that is more than most, it is not
// counted.
func (b *budget) take(now time.Time, r Rates, bytes int, most time.Duration) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	requestsDue, bytesDue := paid(b.requests, now, 1, r.Requests), paid(b.bytes, now, bytes, r.Bytes)
	if wait = max(0, requestsDue.Sub(now)-burst, bytesDue.Sub(now)-burst); wait <= most {
		b.requests, b.bytes = requestsDue, bytesDue
	}
	return wait
}

// isPaid reports whether nothing that was asked for counts any longer.
func (b *budget) isPaid(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.requests.After(now) && !b.bytes.After(now)
}

// paid is when n more are paid for at a rate, after what is until due.
func paid(due, now time.Time, n, rate int) time.Time {
	if rate == 0 {
		return now
	}
	if due.Before(now) {
		due = now
	}
	return due.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
}

// HasRates reports whether Pace may wait.
func (c *Conn) HasRates() bool { return c.server.Callers.rates != Rates{} }

// Pace waits until the client may send a request of so many bytes, as Rates has it. It reports false if gone is closed
// meanwhile. The session goes on: the client has sent more than it may, and has not stopped.
func (c *Conn) Pace(bytes int, gone <-chan struct{}) bool {
	wait := c.caller.take(time.Now(), c.server.Callers.rates, bytes, math.MaxInt64)
	if wait == 0 {
		return true
	}
	c.Rest()
	m := &c.busy().turn.member
	m.Waited += wait
	c.noteHeld(m)
	touch := time.NewTicker(c.server.cfg.Tick)
	defer touch.Stop()
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		select {
		case <-gone:
			return false
		case <-touch.C:
			c.Touch()
		case <-over.C:
			return true
		}
	}
}

// Pace reports for how long a client with these identities must wait before it sends a request of so many bytes; if
// that is more than 0, the request is refused.
func (t *Callers) Pace(ids []znode.ID, bytes int) (wait time.Duration) {
	if t.rates == (Rates{}) {
		return 0
	}
	x := t.join(ids)
	defer t.leave(x)
	return x.take(time.Now(), t.rates, bytes, 0)
}

// noteHeld counts for how long a member of c's was held back.
func (c *Conn) noteHeld(m *fair.Member) {
	if m.Waited > 0 {
		id, _ := c.Session()
		at, _ := netip.ParseAddrPort(c.client.Address())
		c.server.usage.Held(insight.Use{Session: id, Address: at.Addr()}, m.Waited)
		m.Waited = 0
	}
}
