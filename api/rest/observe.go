package rest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// routeMetrics counts the answers to the requests of one operation.
type routeMetrics struct {
	labels    string // method and route
	operation string // the same, for people

	seconds histogram.Histogram // until answers began

	mu     sync.Mutex // protects the field below
	status map[int]int64
}

func newRouteMetrics(method, route string) *routeMetrics {
	return &routeMetrics{
		labels:    "method=" + metrics.Quote(method) + ",route=" + metrics.Quote(route),
		operation: method + " " + route, status: map[int]int64{},
	}
}

func (t *routeMetrics) count(status int, took time.Duration) {
	t.seconds.Observe(took)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status[status]++
}

// RequestMetrics counts the answers to all requests.
type RequestMetrics struct{ routes []*routeMetrics }

func (m *RequestMetrics) add(method, route string) *routeMetrics {
	r := newRouteMetrics(method, route)
	m.routes = append(m.routes, r)
	return r
}

// Write adds the metrics of all operations that were asked for, in Prometheus's text
// format.
func (m *RequestMetrics) Write(b *bytes.Buffer) {
	m.write(b, "http_requests_total", (*routeMetrics).writeRequests)
	m.write(b, "http_request_duration_seconds", (*routeMetrics).writeSeconds)
}

// write adds one metric of all operations, if there is any sample yet.
func (m *RequestMetrics) write(
	b *bytes.Buffer, name string, write func(r *routeMetrics, b *bytes.Buffer, name string),
) {
	before := b.Len()
	metrics.Header(b, name)
	head := b.Len()
	for _, r := range m.routes {
		write(r, b, name)
	}
	if b.Len() == head {
		b.Truncate(before)
	}
}

func (t *routeMetrics) writeRequests(b *bytes.Buffer, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, status := range slices.Sorted(maps.Keys(t.status)) {
		fmt.Fprintf(b, "%s{%s,code=\"%d\"} %d\n", name, t.labels, status, t.status[status])
	}
}

func (t *routeMetrics) writeSeconds(b *bytes.Buffer, name string) {
	if c := t.seconds.Counts(); c != (histogram.Counts{}) {
		metrics.WriteHistogram(b, name, t.labels, &c)
	}
}

// HeaderTrace is the header that names the trace of which a request is a part (W3C Trace Context).
const HeaderTrace = "Traceparent"

// traceparent matches its values. Later versions begin with the same four fields, which are enough.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}`)

// traceOf is the request's traceparent, "" if it has none.
func traceOf(q *Request) string { return traceparent.FindString(q.HTTP.Header.Get(HeaderTrace)) }

// logSlow keeps a request that has ended, if it was slow.
func logSlow(q *Request) {
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
		Session: q.Session, Address: q.HTTP.RemoteAddr, Trace: traceOf(q),
		Took: took, Stages: s, Index: q.trace.Index, Term: q.trace.Term,
	})
}

// countUsage counts a request that has ended for its client and its path.
func countUsage(q *Request) {
	t := q.Core.Config.Usage
	if t.Skip() {
		return
	}
	address, _ := netip.ParseAddr(q.Address)
	t.Count(insight.Use{
		Session: q.Session, Address: address, Path: q.Vars["path"],
		Bytes: int(max(q.HTTP.ContentLength, 0)) + q.sent,
	})
}

// auditClient is the client as the audit log has it.
func auditClient(q *Request) audit.Client {
	return audit.Client{Session: q.Session, IDs: q.IDs, IP: q.Address}
}

// errCutOff is why an answer failed that had begun.
var errCutOff = errors.New("the answer was cut off")

// auditAdministrator records what an administrator has asked for: members, drain, a backup, a restore.
func auditAdministrator(q *Request, err error) {
	e := audit.Event{Operation: q.operation.Method + " " + q.HTTP.URL.Path, Result: audit.Success}
	if q.local {
		e.User = "admin.token"
	}
	if err != nil {
		e.Result, e.Reason = audit.Failure, err.Error()
	}
	q.Core.Config.Audit.Note(auditClient(q), e)
}

// auditRefusal records that a request was refused because of its client.
func auditRefusal(q *Request, p *Problem) {
	if p.Status != http.StatusUnauthorized && p.Status != http.StatusForbidden || q.Core.Config.Audit == nil {
		return
	}
	e := audit.Event{Operation: q.HTTP.Method + " " + q.HTTP.URL.Path, Result: audit.Failure, Reason: p.Code.Name()}
	switch p.Code {
	case znode.ErrAuthFailed:
		e.Operation = "login"
	case znode.OK:
		e.Reason = p.Title
	}
	q.Core.Config.Audit.Note(auditClient(q), e)
}
