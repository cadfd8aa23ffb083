package api

import (
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// What an answer had (architecture decision D12).
const (
	// consistencyLocal is the state of this server, which may be behind others'.
	consistencyLocal = "local"
	// consistencyLinearizable is a state at least as new as any that was
	// acknowledged by any server before the request came.
	consistencyLinearizable = "linearizable"
)

// settle waits until this server's state is as new as the request asks for. A
// request that does not say gets the local state, but only while this server is in
// touch with a majority: else it could be arbitrarily old without anybody noticing.
func (q *request) settle(rt *route) error {
	if rt.plain {
		return nil
	}
	min, err := q.query.zxid("min_zxid")
	if err != nil {
		return err
	}
	switch want := q.query.text("consistency"); {
	case want == consistencyLinearizable:
		if err := q.barrier(); err != nil {
			return err
		}
		q.w.Header().Set(headerConsistency, consistencyLinearizable)
	case want == consistencyLocal:
	case q.query.has("consistency"):
		return badRequest("consistency", "%q is neither %s nor %s", want, consistencyLocal,
			consistencyLinearizable)
	case !q.door.srv.Serving():
		return q.notServing()
	}
	return q.reach(min)
}

// reach waits until the state is of this zxid.
func (q *request) reach(min znode.Zxid) error {
	now, err := q.catchUp(min)
	if err != nil {
		return err
	}
	if now < min {
		p := unavailable("min_zxid: this ensemble has not reached " + min.String() +
			", it is at " + now.String())
		p.Title, p.Param = "not that far", "min_zxid"
		p.Hint = "use the Zk-Zxid of an earlier answer"
		return p
	}
	return nil
}

// catchUp waits until the state is of this zxid, and returns the state's. Whoever has
// seen it was answered by a server that had applied it, so a barrier brings it here,
// if this ensemble has ever reached it.
func (q *request) catchUp(min znode.Zxid) (now znode.Zxid, err error) {
	if now = q.zxid(); min <= now {
		return now, nil
	}
	if err = q.barrier(); err != nil {
		return now, err
	}
	return q.zxid(), nil
}

func (q *request) zxid() (z znode.Zxid) {
	q.look(func(v *server.View) { z = v.Zxid() })
	return z
}

// barrier waits until this server has applied all that was acknowledged before.
func (q *request) barrier() error {
	if !q.door.srv.Serving() {
		return q.notServing()
	}
	release, err := q.door.enterWrite()
	if err != nil {
		return err
	}
	defer release()
	if err := q.door.srv.Barrier(q.ctx); err != nil {
		return unavailable("no majority has answered in time")
	}
	q.look(func(*server.View) {})
	return nil
}
