//go:build interop

package conformance_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	tick = 500 * time.Millisecond // the kit's
	// settleXid marks the reads that the runner adds after every step.
	settleXid wire.Xid = 1 << 30
	// stepPatience is how long one reply may take.
	stepPatience = 30 * time.Second
	// closePatience is how long a server may take to close a connection after it has announced the end.
	closePatience = 30 * time.Second
	// pingInterval is how long the runner waits for a reply before it pings.
	pingInterval = 250 * time.Millisecond
)

// run is one execution of a script on one ensemble.
type run struct {
	t       *testing.T
	e       *cluster.Ensemble
	clients map[string]*client
	names   map[znode.SessionID]string
	// ends are the last zxids of the steps so far; the first is that before the
	// script.
	ends []znode.Zxid
	// applied is the newest zxid that any client has seen.
	applied znode.Zxid
	pings   map[*cluster.Call]bool // the runner's own
	times   map[znode.Zxid]int64   // a transaction's time, as first seen
}

// client is a session of the script.
type client struct {
	name  string
	conn  *cluster.Conn
	since znode.Zxid // last zxid seen at the last drop
	state cluster.Session
	ended bool   // recorded that the connection ended
	shook string // what the server has said to the handshake of this step, or ""
}

// record is the result of one step: the lines of each session, in order.
type record map[string][]string

// execute runs a script and returns a record for each step.
func execute(t *testing.T, e *cluster.Ensemble, script []step) []record {
	t.Helper()
	r := newRun(t, e)
	defer r.close()
	return r.play(script)
}

func newRun(t *testing.T, e *cluster.Ensemble) *run {
	r := &run{t: t, e: e, clients: map[string]*client{}, names: map[znode.SessionID]string{},
		pings: map[*cluster.Call]bool{}, times: map[znode.Zxid]int64{}}
	t.Cleanup(func() {
		for _, c := range r.clients {
			if c.conn != nil {
				c.conn.Drop()
			}
		}
	})
	return r
}

// play executes the steps of a script with the present sessions.
func (r *run) play(script []step) []record {
	t, e := r.t, r.e
	t.Helper()
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
	return records
}

// close ends the sessions.
func (r *run) close() {
	for _, c := range r.clients {
		if c.conn.Err() == nil {
			if err := c.conn.Close(); err != nil {
				r.t.Errorf("%s: closing %s: %v", r.e.Name, c.name, err)
			}
		}
	}
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
	case lose, regain:
		return r.majority(s)
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
	case try:
		return r.try(c, s)
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
	wait.Within(r.t, what, stepPatience, func() (err error) {
		conn, err = cluster.Dial(r.e.Server(s.server).Addr(), cluster.ConnectOptions{
			Timeout: time.Duration(s.timeout) * tick, Session: session, ReadOnly: s.readOnly})
		if errors.Is(err, cluster.ErrExpired) {
			r.t.Fatalf("%s: %s: the session has expired, want it alive: %v", r.e.Name, s, err)
		}
		return err
	})
	c.conn, c.ended = conn, false
	c.shook = fmt.Sprintf("connected for %d ms, read-only %t", conn.Response.TimeoutMillis, conn.Response.ReadOnly)
	c.state = conn.State()
	r.names[conn.Session.ID] = s.who
	if r.ends == nil {
		zxid, _ := r.look(s, c)
		r.ends = []znode.Zxid{zxid}
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
	for _, call := range calls {
		r.await(s, c, call)
	}
	if slices.ContainsFunc(s.requests, func(q request) bool { return q.op == wire.OpCloseSession }) {
		<-c.conn.Ended()
	}
	for _, call := range calls {
		// ZooKeeper closes the connection after such an answer, in a step of its own: a
		// read that comes in between may be answered.
		if call.Reply.Err == znode.ErrUnimplemented {
			select {
			case <-c.conn.Ended():
			case <-time.After(closePatience):
			}
		}
	}
	return nil
}

// waitGone waits until a znode is gone; its looks are not recorded.
func (r *run) waitGone(s *step) error {
	conn, err := cluster.Dial(r.e.Server(1).Addr(), cluster.ConnectOptions{})
	if err != nil {
		return err
	}
	wait.Within(r.t, s.path+" is gone", stepPatience, func() error {
		_, err := conn.Do(wire.OpExists, &wire.ExistsRequest{Path: s.path})
		r.applied = max(r.applied, conn.State().LastZxid)
		if errors.Is(err, znode.ErrNoNode) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	return conn.Close()
}

// await waits for a reply. A ZooKeeper 3.8 on a busy machine occasionally leaves a request
// unanswered until the next one at its server; real clients do not notice, because of their
// pings, so the runner pings as well.
func (r *run) await(s *step, c *client, call *cluster.Call) {
	r.t.Helper()
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for range int(stepPatience / pingInterval) {
		select {
		case <-call.Done:
			return
		case <-ticker.C:
			r.pings[c.conn.SendAs(wire.XidPing, wire.OpPing, nil)] = true
		}
	}
	for _, server := range r.e.Servers() {
		text, err := server.FourLetter("cons")
		r.t.Logf("%s server %d: cons: %s, %v", r.e.Name, server.ID, text, err)
	}
	r.t.Fatalf("%s: %s: %s has no answer to %s after %v", r.e.Name, s, c.name, call.Op, stepPatience)
}

// look reads with a session and returns the zxid that its server has applied,
// and false when the connection has ended.
func (r *run) look(s *step, c *client) (znode.Zxid, bool) {
	return r.looked(s, c, c.conn.SendAs(settleXid, wire.OpExists, &wire.ExistsRequest{Path: "/"}))
}

func (r *run) looked(s *step, c *client, call *cluster.Call) (znode.Zxid, bool) {
	r.await(s, c, call)
	if call.Err != nil {
		<-c.conn.Ended()
		return 0, false
	}
	return call.Reply.Zxid, true
}

// catchUp waits until every session's server has applied what any client has
// seen.
func (r *run) catchUp(s *step) {
	for _, c := range r.clients {
		r.applied = max(r.applied, c.conn.State().LastZxid)
	}
	begin := time.Now()
	for behind := true; behind; {
		if behind = false; time.Since(begin) > stepPatience {
			r.t.Fatalf("%s: %s: no server but one has zxid %s", r.e.Name, s, r.applied)
		}
		looks := map[*client]*cluster.Call{} // all at once, as there are thousands of steps
		for _, c := range r.clients {
			if !c.ended {
				looks[c] = c.conn.SendAs(settleXid, wire.OpExists, &wire.ExistsRequest{Path: "/"})
			}
		}
		for c, call := range looks {
			zxid, ok := r.looked(s, c, call)
			c.ended = !ok
			behind = behind || ok && zxid != r.applied
			r.applied = max(r.applied, zxid)
		}
	}
}

// settle waits until every session has received what the step caused. An event
// is sent before a read shows the zxid that caused it.
func (r *run) settle(s *step) record {
	open := map[string]bool{}
	for name, c := range r.clients {
		open[name] = !c.ended
	}
	r.catchUp(s)
	r.ends = append(r.ends, r.applied)
	rec := record{}
	for _, name := range slices.Sorted(maps.Keys(r.clients)) {
		c := r.clients[name]
		if c.shook != "" {
			rec[name], c.shook = append(rec[name], c.shook), ""
		}
		if !open[name] {
			continue
		}
		for _, item := range c.conn.Take() {
			if item.Call == nil || item.Call.Xid != settleXid && !r.pings[item.Call] {
				rec[name] = append(rec[name], r.text(&item))
			}
		}
		if c.ended {
			rec[name] = append(rec[name], "closed")
		}
		if s.requests != nil && s.requests[0].op == wire.OpCloseSession || s.kind == expire {
			slices.Sort(rec[name]) // the order of a session's ephemerals is undefined
		}
	}
	return rec
}
