package api

import (
	"context"
	"net/http"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// drainBody says whether this server can be stopped.
type drainBody struct {
	Server   state.ServerID `json:"server"`
	Draining bool           `json:"draining"`
	Safe     bool           `json:"safe_to_stop"`
}

// drain makes this server ready to be stopped: it takes no new clients, hands over
// leadership and sends its clients away.
func (q *request) drain() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	if err := q.door.srv.Drain(q.ctx); err != nil {
		return clusterProblem(err)
	}
	q.door.waiting.sendAway()
	return q.answer(http.StatusOK, drainBody{q.door.srv.Config().ID, true, true})
}

// undrain takes clients again.
func (q *request) undrain() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	q.door.srv.Undrain()
	q.door.waiting.welcome()
	q.begin(http.StatusNoContent)
	return nil
}

// notServing says why this server does not take requests.
func (q *request) notServing() *problem {
	if !q.door.srv.Draining() {
		return unavailable("this server is not in touch with a majority")
	}
	p := unavailable("this server is about to be stopped")
	p.Title, p.Hint = "draining", "go on at another server; sessions are good at any"
	return p
}

// guests are the streams and long polls of a door, which go on elsewhere when this
// server is drained.
type guests struct {
	stopping context.Context // of the door

	mu   sync.Mutex // protects the fields below
	ctx  context.Context
	away context.CancelFunc
}

// until is done when those who wait shall go on elsewhere.
func (g *guests) until() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil {
		g.ctx, g.away = context.WithCancel(g.stopping)
	}
	return g.ctx
}

func (g *guests) sendAway() {
	g.until()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away()
}

// welcome takes new ones.
func (g *guests) welcome() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx != nil && g.ctx.Err() != nil {
		g.ctx, g.away = nil, nil
	}
}
