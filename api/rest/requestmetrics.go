package rest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/internal/histogram"
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

// Begin sends the status and the headers; every answer begins with it.
func (q *Request) Begin(status int) {
	q.begun = time.Now()
	q.metrics.count(status, q.begun.Sub(q.arrived))
	q.W.WriteHeader(status)
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
