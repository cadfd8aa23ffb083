package rest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
)

// latencies are the bounds of the buckets into which answers are counted by the time
// until they began: from a read out of memory to RequestTimeout.
var latencies = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, RequestTimeout,
}

// routeMetrics counts the answers to the requests of one operation.
type routeMetrics struct {
	labels string // method and route

	mu     sync.Mutex // protects the fields below
	status map[int]int64
	within [len(latencies)]int64 // no later than the bound, later than the one before
	all    int64
	sum    time.Duration
}

func newRouteMetrics(method, route string) *routeMetrics {
	return &routeMetrics{
		labels: "method=" + metrics.Quote(method) + ",route=" + metrics.Quote(route),
		status: map[int]int64{},
	}
}

func (t *routeMetrics) count(status int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status[status]++
	t.all++
	t.sum += took
	if i, _ := slices.BinarySearch(latencies[:], took); i < len(latencies) {
		t.within[i]++
	}
}

// Begin sends the status and the headers; every answer begins with it.
func (q *Request) Begin(status int) {
	q.metrics.count(status, time.Since(q.arrived))
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == 0 {
		return
	}
	sum := int64(0)
	for i, bound := range latencies {
		sum += t.within[i]
		fmt.Fprintf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, t.labels, decimal(bound), sum)
	}
	fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, t.labels, t.all)
	fmt.Fprintf(b, "%s_sum{%s} %s\n%s_count{%s} %d\n", name, t.labels, decimal(t.sum), name, t.labels, t.all)
}

// decimal writes a duration in seconds.
func decimal(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }
