//go:build interop

package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	tick = 500 * time.Millisecond // the kit's
	// settleXid marks the syncs that the runner adds after every step.
	settleXid wire.Xid = 1 << 30
	// stepPatience is how long one reply may take.
	stepPatience = 30 * time.Second
)

// run is one execution of a script on one ensemble.
type run struct {
	t       *testing.T
	e       *cluster.Ensemble
	clients map[string]*client
	names   map[znode.SessionID]string
	base    znode.Zxid           // 0 until the first session is open
	times   map[znode.Zxid]int64 // a transaction's time, as first seen
}

// client is a session of the script.
type client struct {
	name  string
	conn  *cluster.Conn
	since znode.Zxid // last zxid seen at the last drop
	seen  int        // items of conn that are recorded
	state cluster.Session
	ended bool // recorded that the connection ended
}

// record is what came of one step: the lines of each session, in order.
type record map[string][]string

// execute runs a script and returns a record for each step.
func execute(t *testing.T, e *cluster.Ensemble, script []step) []record {
	t.Helper()
	r := &run{t: t, e: e, clients: map[string]*client{}, names: map[znode.SessionID]string{},
		times: map[znode.Zxid]int64{}}
	var records []record
	defer func() {
		if t.Failed() {
			for i, rec := range records[max(0, len(records)-10):] {
				t.Logf("%s: step %d of the last ten: %s: %v", e.Name, i, &script[max(0, len(records)-10)+i], rec)
			}
		}
	}()
	for i := range script {
		if err := r.step(&script[i]); err != nil {
			t.Fatalf("%s: step %d, %s: %v", e.Name, i, &script[i], err)
		}
		records = append(records, r.settle(&script[i]))
	}
	for _, c := range r.clients {
		if c.conn.Err() == nil {
			if err := c.conn.Close(); err != nil {
				t.Errorf("%s: closing %s: %v", e.Name, c.name, err)
			}
		}
	}
	return records
}

func (r *run) step(s *step) error {
	switch s.kind {
	case connect:
		if old := r.clients[s.who]; old != nil && old.conn.Err() == nil {
			return errors.New("the session's name is in use")
		}
		r.clients[s.who] = &client{name: s.who}
		return r.dial(s, cluster.Session{})
	case resume:
		c := r.clients[s.who]
		if c.conn.Err() == nil {
			c.state = c.conn.State()
			c.conn.Drop()
		}
		return r.dial(s, c.state)
	}
	c := r.clients[s.who]
	switch s.kind {
	case drop, expire:
		c.state = c.conn.State()
		c.since = c.state.LastZxid
		c.conn.Drop()
		c.ended = true
		if s.kind == expire {
			return r.waitGone(s)
		}
	case raw:
		return c.conn.SendBytes(s.bytes)
	case send:
		return r.send(c, s)
	}
	return nil
}

func (r *run) dial(s *step, session cluster.Session) error {
	c := r.clients[s.who]
	if session.ID != 0 {
		// As a client would, with the newest zxid; the old connection may live.
		c.since = session.LastZxid
	}
	// A server that has not yet seen what the client has closes the connection
	// without a word; clients try again.
	var conn *cluster.Conn
	what := fmt.Sprintf("%s: a session at server %d, zxid %s", s, s.server, session.LastZxid)
	cluster.Eventually(r.t, what, stepPatience, func() (err error) {
		conn, err = cluster.Dial(r.e.Server(s.server).Addr(), cluster.ConnectOptions{
			Timeout: time.Duration(s.timeout) * tick, Session: session})
		if errors.Is(err, cluster.ErrExpired) {
			r.t.Fatalf("%s: %s: %v", r.e.Name, s, err)
		}
		return err
	})
	r.t.Cleanup(conn.Drop)
	c.conn, c.seen, c.ended = conn, 0, false
	c.state = conn.State()
	r.names[conn.Session.ID] = s.who
	if r.base == 0 {
		_, err := conn.SendAs(settleXid, wire.OpSync, &wire.SyncRequest{Path: "/"}).Wait()
		if err != nil {
			return err
		}
		r.base = conn.State().LastZxid
	}
	return nil
}

// send sends the requests of a step and waits for the replies or the end of
// the connection.
func (r *run) send(c *client, s *step) error {
	var calls []*cluster.Call
	for _, q := range s.requests {
		switch body := q.body.(type) {
		case *wire.SetWatchesRequest:
			body.RelativeZxid = c.since
		case *wire.SetWatches2Request:
			body.RelativeZxid = c.since
		}
		if q.xid != 0 {
			calls = append(calls, c.conn.SendAs(q.xid, q.op, q.body))
		} else {
			calls = append(calls, c.conn.Send(q.op, q.body))
		}
	}
	for i, call := range calls {
		select {
		case <-call.Done:
		case <-time.After(stepPatience):
			return fmt.Errorf("no answer to %s after %v", s.requests[i].op, stepPatience)
		}
	}
	if s.requests[len(s.requests)-1].op == wire.OpCloseSession {
		<-c.conn.Ended()
	}
	return nil
}

// waitGone waits until a znode is gone; its looks are not recorded.
func (r *run) waitGone(s *step) error {
	conn, err := cluster.Dial(r.e.Server(1).Addr(), cluster.ConnectOptions{})
	if err != nil {
		return err
	}
	cluster.Eventually(r.t, s.path+" is gone", stepPatience, func() error {
		_, err := conn.Do(wire.OpExists, &wire.ExistsRequest{Path: s.path})
		if errors.Is(err, znode.ErrNoNode) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	return conn.Close()
}

// settle waits until every session has received what the step caused: after
// the reply to a sync, everything that was committed before it has been
// delivered.
func (r *run) settle(s *step) record {
	rec := record{}
	names := make([]string, 0, len(r.clients))
	for name := range r.clients {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c := r.clients[name]
		if c.ended {
			continue
		}
		_, err := c.conn.SendAs(settleXid, wire.OpSync, &wire.SyncRequest{Path: "/"}).Wait()
		if err != nil {
			<-c.conn.Ended()
			c.ended = true
		}
		items := c.conn.Items()
		for _, item := range items[c.seen:] {
			if item.Call == nil || item.Call.Xid != settleXid {
				rec[name] = append(rec[name], r.text(&item))
			}
		}
		c.seen = len(items)
		if c.ended {
			rec[name] = append(rec[name], "closed")
		}
		if s.requests != nil && s.requests[0].op == wire.OpCloseSession || s.kind == expire {
			slices.Sort(rec[name]) // the order of a session's ephemerals is open
		}
	}
	return rec
}
