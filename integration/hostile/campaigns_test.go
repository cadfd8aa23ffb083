//go:build privileged

package hostile_test

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	opAuth = wire.OpAuth
	opSync = wire.OpSync

	gatePairs = 100 // pairs of extremes that the gate sends, besides those with identities
)

var syncRoot = &wire.SyncRequest{Path: "/"}

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
	{name: "never reading: many connections", attack: deafMany},
	{name: "many that leave something behind", attack: hoarders},
	{name: "creates and deletes of the longest names", attack: churn},
	{name: "without a majority", attack: behind, noMajority: true},
	{name: "every operation of the HTTP port", attack: overHTTP},
	{name: "HTTP, never reading", attack: deafHTTP},
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

func (s *shape) isMultiRead() bool { return s.op == wire.OpMultiRead }
func (s *shape) hasACL() bool      { return s.has("ACL=") }

// readers send each request of a kind, several times and behind a write, and read as fast as they can: each must have
// its reply. Half of them have as many identities as they may.
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
		b := p.frames(nil, wire.OpSetData, &wire.SetDataRequest{Path: small, Data: []byte("x"), Version: znode.AnyVersion}, 1)
		p.write(p.frames(b, x.op, q, n), 3*sessionTimeout)
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

func (a *arena) gather(n int, server func(i int) *cluster.Server) (all crowd) {
	for i := range n {
		p, err := dial(server(i).Addr(), 0)
		if err != nil {
			a.errorf("%v", err)
			return all
		}
		all = append(all, p)
	}
	return all
}

// send writes to all at once.
func (all crowd) send(limit time.Duration, request func(i int, p *peer) []byte) {
	var done sync.WaitGroup
	for i, p := range all {
		done.Go(func() { p.write(request(i, p), limit) })
	}
	done.Wait()
}

func (all crowd) close() {
	for _, p := range all {
		p.close()
	}
}

const (
	deafClients = 100
	deafReads   = 40
)

// unread are the requests of deaf clients: all that write nothing.
func unread() (all []*shape) {
	for _, op := range opcodes() {
		if !op.Write() && op != wire.OpAuth && op != wire.OpSASL {
			all = append(all, single(op)...)
		}
	}
	return all
}

// deafToTheSame lets clients send a write and many reads behind it, and never read a reply: all of them that of the
// largest replies at the same time.
func deafToTheSame(a *arena) {
	for _, x := range unread() {
		if x.op != wire.OpSync && (x.has(large) || x.has(wide) || x.has(guarded)) {
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

// deafMany has many connections, and one reply of a megabyte for each.
func deafMany(a *arena) {
	x := &shape{wire.OpGetData, nil, func() wire.Request { return &wire.GetDataRequest{Path: large} }}
	a.wave(1000, 1, func(int) *shape { return x })
}

// wave opens connections, sends a write and some requests over each, and closes them when others have been answered.
func (a *arena) wave(clients, reads int, request func(i int) *shape) {
	if len(a.dead()) > 0 {
		return
	}
	all := a.gather(clients, func(int) *cluster.Server { return a.e.Server(2) })
	defer all.close()
	all.send(time.Second, func(i int, p *peer) []byte {
		x := request(i)
		q := x.build()
		b := p.frames(nil, wire.OpSetData, &wire.SetDataRequest{Path: small, Data: []byte("x"), Version: znode.AnyVersion}, 1)
		return p.frames(b, x.op, q, max(1, min(reads, (4<<20)/(1+len(q.Append(nil))))))
	})
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

// hoarders send many of the reads that leave a watch, on paths as long as may be.
func hoarders(a *arena) {
	const mebibytes = 1000 // of requests, of each
	for _, q := range []struct {
		op   wire.OpCode
		make func(path string) wire.Request
	}{
		{wire.OpExists, func(path string) wire.Request { return &wire.ExistsRequest{Path: path, Watch: true} }},
		{wire.OpAddWatch, func(path string) wire.Request { return &wire.AddWatchRequest{Path: path} }},
		{wire.OpSetWatches, func(path string) wire.Request {
			return &wire.SetWatchesRequest{RelativeZxid: 1 << 62, ExistWatches: []string{path}}
		}},
	} {
		all := a.gather(4, func(int) *cluster.Server { return a.e.Server(2) })
		for _, p := range all {
			go p.drain()
		}
		var done sync.WaitGroup
		for i, p := range all {
			done.Go(func() {
				for n := range mebibytes / 4 {
					path := "/" + strings.Repeat("n", frameRoom-20) + "-" + string(rune('a'+i)) + time.Duration(n).String()
					if !p.write(p.frames(nil, q.op, q.make(path), 1), sessionTimeout) {
						return
					}
				}
			})
		}
		done.Wait()
		a.rounds(3)
		all.close()
	}
}

// churn creates and deletes znodes with names of a megabyte: each leaves something in the record of changes.
func churn(a *arena) {
	const times = 420
	p, err := dial(a.e.Server(1).Addr(), 0)
	if err != nil {
		a.errorf("%v", err)
		return
	}
	defer p.close()
	go p.drain()
	for n := range times {
		path := "/hostile/" + strings.Repeat("n", frameRoom-100) + time.Duration(n).String()
		b := p.frames(nil, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL}, 1)
		b = p.frames(b, wire.OpDelete, &wire.DeleteRequest{Path: path, Version: znode.AnyVersion}, 1)
		if !p.write(b, sessionTimeout) || len(a.dead()) > 0 {
			return
		}
	}
	if err := p.answered(3 * sessionTimeout); err != nil {
		a.errorf("creates and deletes: %v", err)
	}
}

// behind sends a write and many reads of long paths behind it, to a server that has lost the others.
func behind(a *arena) {
	const clients, mebibytes = 8, 1200
	one := a.e.Server(2)
	all := a.gather(clients, func(int) *cluster.Server { return one })
	defer all.close()
	write := wire.AppendRequest(nil, wire.RequestHeader{Type: wire.OpSetData},
		&wire.SetDataRequest{Path: small, Version: znode.AnyVersion})
	read := wire.AppendRequest(nil, wire.RequestHeader{Type: wire.OpExists},
		&wire.ExistsRequest{Path: "/" + strings.Repeat("n", frameRoom-20)})
	for _, s := range a.e.Servers() {
		if s != one {
			s.Pause()
		}
	}
	deadline := time.Now().Add(sessionTimeout / 3)
	var done sync.WaitGroup
	for _, p := range all {
		done.Go(func() {
			taken := p.write(write, time.Until(deadline))
			for i := 0; i < mebibytes/clients && taken; i++ {
				taken = p.write(read, time.Until(deadline))
			}
		})
	}
	done.Wait()
	for _, s := range a.e.Servers() {
		if s != one {
			s.Resume()
		}
	}
}
