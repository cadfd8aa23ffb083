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
	serving  func() bool
	limits   Limits

	mu        sync.Mutex // protects the fields below
	ctx       context.Context
	cancel    context.CancelCauseFunc
	byAddress map[string]int // never 0
	open      int            // their sum
}

// Enter takes a place for a stream or long poll.
func (l *LongRequests) Enter(address string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n := l.byAddress[address]; {
	case l.open >= l.limits.LongRequests:
		return nil, TooMany(10, "this server has %d streams and long polls open", l.open)
	case n >= l.limits.LongRequestsPerAddress:
		return nil, TooMany(10, "%s has %d streams and long polls open", address, n)
	}
	l.open++
	l.byAddress[address]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
		if l.byAddress[address]--; l.byAddress[address] == 0 {
			delete(l.byAddress, address)
		}
	}, nil
}

// Open returns how many there are, from how many addresses.
func (l *LongRequests) Open() (open, addresses int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, len(l.byAddress)
}

// Until is done, with its cause, when those who wait have to continue elsewhere.
func (l *LongRequests) Until() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil && l.serving() {
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
func (l *LongRequests) Watch(srv Server) {
	tick := time.NewTicker(servingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stopping.Done():
			return
		}
		switch {
		case srv.Serving():
		case srv.Draining():
			l.DisconnectAll(ErrDraining)
		default:
			l.DisconnectAll(ErrNotServing)
		}
	}
}
