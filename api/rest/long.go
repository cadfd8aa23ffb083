package rest

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Why a stream or a long poll ends before its client does, as the cause of its context.
var (
	ErrStopping   = errors.New("the server is stopping")
	ErrDraining   = errors.New("this server is about to be stopped")
	ErrNotServing = errors.New("this server has lost touch with a majority")
)

// servingInterval is how often the server is asked whether it serves, for the requests
// that wait: after this time they end at the latest.
const servingInterval = time.Second

// LongRequests are the streams and long polls of a server. They continue at another one
// when this one stops, is drained, or does not serve: it gets no changes then.
type LongRequests struct {
	stopping context.Context // of the HTTP server
	server   Server
	places   places

	mu     sync.Mutex // protects the fields below
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Enter takes a place for a stream or long poll.
func (l *LongRequests) Enter(address string) (leave func(), err error) {
	return l.places.enter(address, "streams and long polls open")
}

// Open returns how many there are, from how many addresses.
func (l *LongRequests) Open() (open, addresses int) { return l.places.open() }

// Until is done, with its cause, when those who wait have to continue elsewhere.
func (l *LongRequests) Until() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil && l.server.Serving() {
		l.ctx, l.cancel = context.WithCancelCause(l.stopping)
	}
	return l.ctx
}

// DisconnectAll ends all that are open, and those that come before the server serves again.
func (l *LongRequests) DisconnectAll(why error) {
	l.Until()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(why)
}

// Watch ends the long requests while the server does not serve. It runs until the HTTP
// server stops.
func (l *LongRequests) Watch() {
	tick := time.NewTicker(servingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stopping.Done():
			return
		}
		switch {
		case l.server.Serving():
		case l.server.Draining():
			l.DisconnectAll(ErrDraining)
		default:
			l.DisconnectAll(ErrNotServing)
		}
	}
}

// places bounds how many requests of a kind are in progress, in all and of each address.
type places struct {
	all, perAddress int

	mu        sync.Mutex     // protects the fields below
	byAddress map[string]int // never 0
	taken     int            // their sum
}

func newPlaces(all, perAddress int) places {
	return places{all: all, perAddress: perAddress, byAddress: map[string]int{}}
}

// enter takes a place for an address; what names, in the plural, the requests that the places are for.
func (p *places) enter(address, what string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const seconds = 10
	switch n := p.byAddress[address]; {
	case n >= p.perAddress:
		return nil, TooMany(seconds, "%s has %d %s", address, n, what)
	case p.taken >= p.all:
		return nil, TooMany(seconds, "this server has %d %s", p.taken, what)
	}
	p.taken++
	p.byAddress[address]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.byAddress[address]--; p.byAddress[address] == 0 {
			delete(p.byAddress, address)
		}
	}, nil
}

// open returns how many places are taken, from how many addresses.
func (p *places) open() (open, addresses int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.byAddress)
}

// EnterLong takes a place for a stream or long poll, which is never slow: its time is its client's.
func (q *Request) EnterLong() (leave func(), err error) {
	q.long = true
	return q.Core.Long.Enter(q.Address)
}

// EnterSearch takes a place for a request that looks at much of the tree, or keeps a state of it.
func (q *Request) EnterSearch() (leave func(), err error) {
	return q.Core.searches.enter(q.Address, "searches and trees in progress")
}

// pauseAfter is how long a search has a processor before it leaves it to others, for as long again.
const pauseAfter = time.Millisecond

// Pause leaves the processor to others for as long as a search has had it since begun, if that is long, unless the
// context ends before. It returns since when the search has it now.
func Pause(ctx context.Context, begun time.Time) time.Time {
	took := time.Since(begun)
	if took <= pauseAfter {
		return begun
	}
	t := time.NewTimer(took)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return time.Now()
}
