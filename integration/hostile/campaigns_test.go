//go:build privileged

package hostile_test

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// gatePairs is how many pairs of extremes the gate sends, besides those of a field and the identities.
const gatePairs = 100

// campaign is one manner of sending.
type campaign struct {
	name       string
	attack     func(*arena)
	noMajority bool
}

var campaigns = []campaign{
	{name: "always reading: reads", attack: readers(func(x *shape) bool { return !x.op.Write() && !x.isMultiRead() })},
	{name: "always reading: many reads in one", attack: readers((*shape).isMultiRead)},
	{name: "always reading: lists of ACLs", attack: readers((*shape).hasACL)},
	{name: "always reading: other writes", attack: readers(func(x *shape) bool { return x.op.Write() && !x.hasACL() })},
	{name: "never reading: the same", attack: deafToTheSame},
	{name: "never reading: each another", attack: deaf},
	{name: "never reading: many reads in one", attack: deafToMultiReads},
	{name: "many that leave something behind", attack: hoarders},
	{name: "creates and deletes of the longest names", attack: churn},
	{name: "without a majority", attack: behind, noMajority: true},
	{name: "every operation of the HTTP port", attack: func(a *arena) { overHTTP(a); deafHTTP(a) }},
	{name: "HTTP bodies that do not come", attack: bodiesThatStop},
	{name: "all HTTP connections", attack: floodHTTP},
	{name: "a backup of zeros", attack: zeros},
}

// chosen are the requests to send: all with one field at an extreme, and pairs.
func (a *arena) chosen() (all []*shape) {
	var doubles []*shape
	for _, op := range opcodes() {
		all = append(all, single(op)...)
		doubles = append(doubles, pairs(op)...)
	}
	rng := seed.Rand(a.t)
	rng.Shuffle(len(doubles), func(i, j int) { doubles[i], doubles[j] = doubles[j], doubles[i] })
	if !*everything {
		doubles = doubles[:gatePairs]
	}
	all = append(all, doubles...)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// ends reports whether the answer to a request is the end of its connection.
func (s *shape) ends() bool {
	return s.op == wire.OpCloseSession || s.op == wire.OpAuth
}

// has reports whether a field is at this extreme.
func (s *shape) has(extreme string) bool { return strings.Contains(s.String(), extreme) }

func (s *shape) isMultiRead() bool { return s.op == wire.OpMultiRead }
func (s *shape) hasACL() bool      { return s.has("ACL=") }

// readers send each request of a kind, several times and after a write, and read as fast as they can: each must get its
// reply. Half of them have the maximal number of identities.
func readers(kind func(*shape) bool) func(*arena) {
	return func(a *arena) {
		var all []*shape
		for _, x := range a.chosen() {
			if kind(x) {
				all = append(all, x)
			}
		}
		var done sync.WaitGroup
		for i := range 4 {
			s, identities, mine := a.e.Server(1+i%3), i%2*mostIdentities, all[:len(all)/2]
			if i >= 2 {
				mine = all[len(all)/2:]
			}
			done.Go(func() { a.reader(s, identities, mine) })
		}
		done.Wait()
	}
}

func (a *arena) reader(s *cluster.Server, identities int, shapes []*shape) {
	var p *peer
	var err error
	janitor, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{Timeout: sessionTimeout})
	if err != nil {
		a.errorf("a session of the kit's at server %d: %v", s.ID, err)
		return
	}
	defer janitor.Drop()
	for i, x := range shapes {
		if len(a.dead()) > 0 {
			return
		}
		if p == nil {
			if p, err = dial(s.Addr(), identities); err != nil {
				a.errorf("%v, before %s", err, x)
				return
			}
			go p.drain()
		}
		q := x.build()
		n := max(1, min(24, (256<<10)/(1+len(q.Append(nil)))))
		p.write(p.frames(p.smallWrite(), x.op, q, n), 3*sessionTimeout)
		err := p.answered(3 * sessionTimeout)
		if err != nil && !x.ends() {
			a.errorf("%s, %d times with %d identities at server %d: %v", x, n, identities, s.ID, err)
		}
		if err != nil || x.ends() {
			p.close()
			p = nil
		}
		if i%16 == 15 {
			if err := a.clean(janitor); err != nil {
				a.errorf("cleaning up after %s: %v", x, err)
				return
			}
		}
	}
	if p != nil {
		p.close()
	}
}

// crowd is connections that are opened and closed together.
type crowd []*peer

func (a *arena) gather(n int, s *cluster.Server) (all crowd) {
	for range n {
		p, err := dial(s.Addr(), 0)
		if err != nil {
			a.errorf("%v", err)
			return all
		}
		all = append(all, p)
	}
	return all
}

// each lets all do something at the same time.
func (all crowd) each(do func(i int, p *peer)) {
	var done sync.WaitGroup
	for i, p := range all {
		done.Go(func() { do(i, p) })
	}
	done.Wait()
}

func (all crowd) close() {
	for _, p := range all {
		p.close()
	}
}

// smallWrite is a write for which other requests wait.
func (p *peer) smallWrite() []byte {
	return p.frames(nil, wire.OpSetData, &wire.SetDataRequest{Path: small, Data: []byte("x"), Version: znode.AnyVersion}, 1)
}

const (
	deafClients = 60
	deafReads   = 40
	keptReads   = 16 // whose replies of a megabyte do not make a server drop its client
)

// unread are the requests of deaf clients: all that write nothing.
func unread() (all []*shape) {
	for _, op := range opcodes() {
		if isRead(op) {
			all = append(all, single(op)...)
		}
	}
	return all
}

// deafToTheSame makes clients send a write and many reads after it, and never read a reply: all of them the request
// with the largest replies at the same time. Then very many clients send one each.
func deafToTheSame(a *arena) {
	for _, x := range unread() {
		if x.hasLargeReply() && !x.isMultiRead() {
			a.wave(deafClients, keptReads, func(int) *shape { return x })
		}
	}
	x := &shape{wire.OpGetData, nil, func() wire.Request { return &wire.GetDataRequest{Path: large} }}
	a.wave(10*deafClients, 1, func(int) *shape { return x })
}

func (s *shape) hasLargeReply() bool {
	return s.op != wire.OpSync && (s.has(large) || s.has(wide) || s.has(guarded))
}

// deafToMultiReads is the same with those, whose replies have the largest bound.
func deafToMultiReads(a *arena) {
	for _, x := range unread() {
		if x.hasLargeReply() && x.isMultiRead() {
			a.wave(deafClients, deafReads, func(int) *shape { return x })
		}
	}
}

// deaf is the same with another read for each.
func deaf(a *arena) {
	for some := range slices.Chunk(unread(), deafClients) {
		a.wave(len(some), deafReads, func(i int) *shape { return some[i] })
	}
}

// wave opens connections to one server after the other, sends a write and some requests over each, and closes them when
// others have been answered.
func (a *arena) wave(clients, reads int, request func(i int) *shape) {
	if len(a.dead()) > 0 {
		return
	}
	a.waves++
	all := a.gather(clients, a.e.Server(1+a.waves%3))
	defer all.close()
	all.each(func(i int, p *peer) { p.write(p.deafRequests(request(i), reads), time.Second) })
	a.rounds(3)
	if dead := a.dead(); len(dead) > 0 {
		a.errorf("servers %v have ended while %d connections did not read the replies to %s", dead, clients, request(0))
	}
	for _, w := range a.witnesses {
		if longest, _, _ := w.wait(); longest > sessionTimeout {
			a.errorf("%s has waited for %v while %d connections did not read the replies to %s", w.name, longest, clients, request(0))
			w.forget()
		}
	}
}

// deafRequests are a write and some requests after it, of four megabytes at most.
func (p *peer) deafRequests(x *shape, reads int) []byte {
	q := x.build()
	return p.frames(p.smallWrite(), x.op, q, max(1, min(reads, (4<<20)/(1+len(q.Append(nil))))))
}

// long returns the requests of a kind with a field of maximal length: each build makes another one.
func (a *arena) long(kind func(wire.OpCode) bool) (all []*shape) {
	for _, op := range opcodes() {
		if !kind(op) {
			continue
		}
		for _, x := range single(op) {
			if strings.HasSuffix(x.String(), "=long") && !strings.Contains(x.String(), " with ") {
				all = append(all, x)
			}
		}
	}
	return all
}

func isRead(op wire.OpCode) bool {
	return !op.Write() && op != wire.OpAuth && op != wire.OpSASL
}

// hoarders send very many reads with the longest fields, and read all replies: what each request leaves, such as a
// watch, stays until they disconnect.
func hoarders(a *arena) {
	const clients, mebibytes = 4, 2500
	all := a.long(isRead)
	a.crowded(clients, func(i int, p *peer) {
		go p.drain()
		for n := range mebibytes / clients {
			x := all[(i+n*clients)%len(all)]
			if !p.write(p.frames(nil, x.op, x.build(), 1), sessionTimeout) {
				return
			}
		}
	})
}

// crowded lets connections to one server do something, and closes them when others have been answered.
func (a *arena) crowded(clients int, do func(i int, p *peer)) {
	all := a.gather(clients, a.e.Server(2))
	defer all.close()
	all.each(do)
	a.rounds(3)
}

// churn creates and deletes znodes of all kinds with names of a megabyte: each adds to the record of changes.
func churn(a *arena) {
	const times = 330
	all := a.long(creates)
	all = slices.DeleteFunc(all, func(x *shape) bool { return !x.has("Path=long") })
	a.crowded(1, func(_ int, p *peer) {
		go p.drain()
		for n := range times {
			x := all[n%len(all)]
			q := x.build()
			_, fields := fieldsOf(reflect.ValueOf(q).Elem())
			b := p.frames(nil, x.op, q, 1)
			b = p.frames(b, wire.OpDelete, &wire.DeleteRequest{Path: fields[0].String(), Version: znode.AnyVersion}, 1)
			if !p.write(b, sessionTimeout) || len(a.dead()) > 0 {
				return
			}
		}
		if err := p.answered(3 * sessionTimeout); err != nil {
			a.errorf("creates and deletes: %v", err)
		}
	})
}

// behind sends a write and many reads after it to a server that has lost the others: the longest requests, and those
// with all kinds of replies.
func behind(a *arena) {
	const clients, mebibytes = 8, 1200
	one := a.e.Server(2)
	all, long, rest := a.gather(2*clients, one), a.long(isRead), unread()
	defer all.close()
	frames := make([][]byte, len(long)) // made before the time begins
	for i, x := range long {
		frames[i] = wire.AppendRequest(nil, wire.RequestHeader{Type: x.op}, x.build())
	}
	for _, s := range a.e.Servers() {
		if s != one {
			s.Pause()
		}
	}
	deadline := time.Now().Add(sessionTimeout / 3)
	all.each(func(i int, p *peer) {
		taken := p.write(p.smallWrite(), time.Until(deadline))
		for n := 0; taken && n < mebibytes/clients; n++ {
			if i < clients {
				taken = p.write(frames[(i+n*clients)%len(frames)], time.Until(deadline))
			} else {
				taken = p.write(p.deafRequests(rest[(i+n*clients)%len(rest)], deafReads), time.Until(deadline))
			}
		}
	})
	for _, s := range a.e.Servers() {
		if s != one {
			s.Resume()
		}
	}
}
