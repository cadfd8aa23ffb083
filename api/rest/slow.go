package rest

import (
	"regexp"
	"time"

	"github.com/zk-lite/zk-lite/server/insight"
)

// HeaderTrace is the header with which a client says what its request is a part of (W3C Trace Context).
const HeaderTrace = "Traceparent"

// traceparent is a value of it. Of later versions the first four fields are as in this one, and enough.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}`)

// EnterLong takes a place for a stream or long poll, whose time says nothing about the server.
func (q *Request) EnterLong() (leave func(), err error) {
	q.long = true
	return q.Core.Long.Enter(q.Address)
}

// noteSlow keeps a request that has ended, if it was slow.
func (q *Request) noteSlow() {
	now, log := time.Now(), q.Core.Config.Slow
	took := now.Sub(q.arrived)
	if q.long || !log.Slow(took) || q.begun.IsZero() {
		return
	}
	s := q.trace.Stages
	s.Reply = now.Sub(q.begun)
	s.Queue = max(took-s.Leader-s.Propose-s.Disk-s.Majority-s.Apply-s.Reply, 0) // what no command had to wait for, too
	log.Add(insight.SlowRequest{
		At: q.arrived, Port: insight.PortHTTP, Operation: q.metrics.operation, Path: q.Vars["path"],
		Session: q.Session, Address: q.HTTP.RemoteAddr, Trace: traceparent.FindString(q.HTTP.Header.Get(HeaderTrace)),
		Took: took, Stages: s, Index: q.trace.Index, Term: q.trace.Term,
	})
}
