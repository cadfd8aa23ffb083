package api

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// latencies are the bounds of the buckets into which answers are counted by the time
// until they began: from a read out of memory to requestTimeout.
var latencies = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, requestTimeout,
}

// traffic counts the answers to the requests of one operation.
type traffic struct {
	labels string // method and route

	mu     sync.Mutex // protects the fields below
	status map[int]int64
	within [len(latencies)]int64 // no later than the bound, later than the one before
	all    int64
	sum    time.Duration
}

func newTraffic(method, route string) *traffic {
	return &traffic{
		labels: "method=" + quoteLabel(method) + ",route=" + quoteLabel(route),
		status: map[int]int64{},
	}
}

func (t *traffic) count(status int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status[status]++
	t.all++
	t.sum += took
	if i, _ := slices.BinarySearch(latencies[:], took); i < len(latencies) {
		t.within[i]++
	}
}

// begin sends the status and the headers; every answer begins with it.
func (q *request) begin(status int) {
	q.traffic.count(status, time.Since(q.came))
	q.w.WriteHeader(status)
}

// writeTraffic adds the figures of all operations that were asked for, in Prometheus's
// text format.
func (d *Door) writeTraffic(b *bytes.Buffer) {
	const requests, seconds = "http_requests_total", "http_request_duration_seconds"
	fmt.Fprintf(b, "# HELP %s Requests over HTTP that were answered.\n# TYPE %s counter\n", requests, requests)
	for _, t := range d.traffic {
		t.writeRequests(b, requests)
	}
	fmt.Fprintf(b, "# HELP %s Time until the answer began; a long poll's has all that it waited.\n"+
		"# TYPE %s histogram\n", seconds, seconds)
	for _, t := range d.traffic {
		t.writeSeconds(b, seconds)
	}
}

func (t *traffic) writeRequests(b *bytes.Buffer, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, status := range slices.Sorted(maps.Keys(t.status)) {
		fmt.Fprintf(b, "%s{%s,code=\"%d\"} %d\n", name, t.labels, status, t.status[status])
	}
}

func (t *traffic) writeSeconds(b *bytes.Buffer, name string) {
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
