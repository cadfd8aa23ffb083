package rest

import (
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// What an answer had (architecture decision D12).
const (
	// ConsistencyLocal is the state of this server, which may be behind others'.
	ConsistencyLocal = "local"
	// ConsistencyLinearizable is a state at least as new as any that was
	// acknowledged by any server before the request came.
	ConsistencyLinearizable = "linearizable"
)

// waitForConsistency waits until this server's state is as new as the request asks for. A
// request that does not say gets the local state, but only while this server is in
// touch with a majority: else it could be arbitrarily old without anybody noticing.
func (q *Request) waitForConsistency(rt *Route) error {
	if rt.Local {
		return nil
	}
	min, err := q.Query.Zxid("min_zxid")
	if err != nil {
		return err
	}
	switch want := q.Query.Text("consistency"); {
	case want == ConsistencyLinearizable:
		if err := q.Barrier(); err != nil {
			return err
		}
		q.W.Header().Set(HeaderConsistency, ConsistencyLinearizable)
	case want == ConsistencyLocal:
	case q.Query.Has("consistency"):
		return BadRequest("consistency", "%q is neither %s nor %s", want, ConsistencyLocal,
			ConsistencyLinearizable)
	case !q.Core.Server.Serving():
		return q.NotServing()
	}
	return waitForMinZxid(q, min)
}

// waitForMinZxid waits until the state is of this zxid.
func waitForMinZxid(q *Request, min znode.Zxid) error {
	now, err := q.WaitForZxid(min)
	if err != nil {
		return err
	}
	if now < min {
		p := Unavailable("min_zxid: this ensemble has not reached " + min.String() +
			", it is at " + now.String())
		p.Title, p.Param = "not that far", "min_zxid"
		p.Hint = "use the Zk-Zxid of an earlier answer"
		return p
	}
	return nil
}

// WaitForZxid waits until the state is of this zxid, and returns the state's. A client has
// seen it in a reply of a server that had applied it, so a barrier brings it here, if
// this ensemble has ever reached it.
func (q *Request) WaitForZxid(min znode.Zxid) (now znode.Zxid, err error) {
	if now = q.Zxid(); min <= now {
		return now, nil
	}
	if err = q.Barrier(); err != nil {
		return now, err
	}
	return q.Zxid(), nil
}

// Zxid returns this server's zxid, which the answer will show.
func (q *Request) Zxid() (z znode.Zxid) {
	q.View(func(v *server.View) { z = v.Zxid() })
	return z
}

// Barrier waits until this server has applied all that was acknowledged before.
func (q *Request) Barrier() error {
	if !q.Core.Server.Serving() {
		return q.NotServing()
	}
	release, err := q.Core.enterWrite()
	if err != nil {
		return err
	}
	defer release()
	if err := q.Core.Server.Barrier(q.Context); err != nil {
		return Unavailable("no majority has answered in time")
	}
	q.View(func(*server.View) {})
	return nil
}

// NotServing says why this server does not take requests.
func (q *Request) NotServing() *Problem {
	if !q.Core.Server.Draining() {
		return Unavailable("this server has no contact with a majority")
	}
	p := Unavailable("this server is about to be stopped")
	p.Title, p.Hint = "draining", "continue at another server; a session can be used at every server"
	return p
}
