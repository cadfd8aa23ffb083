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
	d.writeFamily(b, "http_requests_total", "counter",
		"Requests over HTTP that were answered.", (*traffic).writeRequests)
	d.writeFamily(b, "http_request_duration_seconds", "histogram",
		"Time until the answer began; a long poll's has all that it waited.", (*traffic).writeSeconds)
}

// writeFamily adds a figure of all operations, if there is anything to tell yet.
func (d *Door) writeFamily(
	b *bytes.Buffer, name, kind, help string, write func(t *traffic, b *bytes.Buffer, name string),
) {
	before := b.Len()
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	head := b.Len()
	for _, t := range d.traffic {
		write(t, b, name)
	}
	if b.Len() == head {
		b.Truncate(before)
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
