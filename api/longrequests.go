package api

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Why a stream or a long poll ends before its client does, as the cause of its context.
var (
	errStopping     = errors.New("the server is stopping")
	errDraining     = errors.New("this server is about to be stopped")
	errNotServing   = errors.New("this server has lost touch with a majority")
	errSessionEnded = errors.New("the session has ended")
)

// servingInterval is how often the server is asked whether it serves, for the requests
// that wait: after this time they end at the latest.
const servingInterval = time.Second

// longRequests are the streams and long polls of a server. They continue at another one
// when this one stops, is drained, or does not serve: it gets no changes then.
type longRequests struct {
	stopping context.Context // of the server
	serving  func() bool

	mu     sync.Mutex // protects the fields below
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// until is done, with its cause, when those who wait have to continue elsewhere.
func (l *longRequests) until() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil && l.serving() {
		l.ctx, l.cancel = context.WithCancelCause(l.stopping)
	}
	return l.ctx
}

// disconnectAll ends all that are open, and those that come before the server serves again.
func (l *longRequests) disconnectAll(why error) {
	l.until()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(why)
}

// watchServing ends the long requests while the server does not serve. It runs until the
// server stops.
func (d *Door) watchServing() {
	tick := time.NewTicker(servingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-d.stopping.Done():
			return
		}
		switch {
		case d.srv.Serving():
		case d.srv.Draining():
			d.waiting.disconnectAll(errDraining)
		default:
			d.waiting.disconnectAll(errNotServing)
		}
	}
}
