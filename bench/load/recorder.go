package load

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// recorderShards spreads the counters of concurrent connections over cache
// lines.
const recorderShards = 8

// Recorder gathers what connections measure. All of its methods may be called
// from many goroutines.
type Recorder struct {
	from, until time.Time // the measured time
	ops         []Op      // in the order of the mix
	index       [opCount]int
	shards      [recorderShards][]recorderShard // of each, one an operation

	unanswered atomic.Uint64
	dropped    atomic.Int64

	mu     sync.Mutex // protects the fields below
	errors map[Op]map[string]uint64
}

type recorderShard struct {
	latency  Histogram
	answered atomic.Uint64 // good answers within the measured time
	all      atomic.Uint64 // answers since the start, warm-up included
	_        [64]byte
}

// newRecorder measures what is asked for between two moments.
func newRecorder(m Mix, from, until time.Time) *Recorder {
	r := &Recorder{from: from, until: until, errors: map[Op]map[string]uint64{}}
	for _, s := range m {
		r.add(s.Op)
	}
	if m.has(Delete) && !m.has(Create) {
		r.add(Create) // deletes need it
	}
	for i := range r.shards {
		r.shards[i] = make([]recorderShard, len(r.ops))
	}
	return r
}

func (r *Recorder) add(op Op) {
	r.index[op] = len(r.ops)
	r.ops = append(r.ops, op)
}

// Until is the end of the measured time, after which nothing more is sent.
func (r *Recorder) Until() time.Time { return r.until }

// Answer records a good answer: to a request of connection conn sent (or, at a
// fixed rate, intended) at start.
func (r *Recorder) Answer(conn int, op Op, start, end time.Time) {
	s := &r.shards[conn%recorderShards][r.index[op]]
	s.all.Add(1)
	if !end.Before(r.from) && end.Before(r.until) {
		s.answered.Add(1)
	}
	if !start.Before(r.from) && start.Before(r.until) {
		s.latency.Record(end.Sub(start))
	}
}

// Error records an answer that is an error.
func (r *Recorder) Error(op Op, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errors[op] == nil {
		r.errors[op] = map[string]uint64{}
	}
	r.errors[op][fmt.Sprint(err)]++
}

// Unanswered records a request that got no reply.
func (r *Recorder) Unanswered(start time.Time) {
	if !start.Before(r.from) && start.Before(r.until) {
		r.unanswered.Add(1)
	}
}

// Dropped records a connection that ended too early.
func (r *Recorder) Dropped() { r.dropped.Add(1) }

// sums returns all latencies so far, and all answers since the start.
func (r *Recorder) sums() (latency *Counts, all uint64) {
	latency = &Counts{}
	for i := range r.shards {
		for k := range r.shards[i] {
			r.shards[i][k].latency.AddTo(latency)
			all += r.shards[i][k].all.Load()
		}
	}
	return latency, all
}

// fill puts what was recorded into a result.
func (r *Recorder) fill(res *Result) {
	res.Elapsed = r.until.Sub(r.from)
	total := &Counts{}
	res.Total.Name = "total"
	for k, op := range r.ops {
		latency, answered := &Counts{}, uint64(0)
		for i := range r.shards {
			r.shards[i][k].latency.AddTo(latency)
			answered += r.shards[i][k].answered.Load()
		}
		o := OpResult{Name: op.String(), Latency: latency.Latency(), Errors: r.errorsOf(op)}
		o.PerSecond = float64(answered) / res.Elapsed.Seconds()
		res.Ops = append(res.Ops, o)
		res.Total.PerSecond += o.PerSecond
		for code, n := range o.Errors {
			if res.Total.Errors == nil {
				res.Total.Errors = map[string]uint64{}
			}
			res.Total.Errors[code] += n
		}
		total.Add(latency)
	}
	res.Total.Latency = total.Latency()
	res.Unanswered, res.Dropped = r.unanswered.Load(), int(r.dropped.Load())
}

func (r *Recorder) errorsOf(op Op) map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors[op]
}
