package load

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Micros is a duration that JSON shows as a number of microseconds.
type Micros time.Duration

// MarshalJSON writes microseconds.
func (m Micros) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(m) / float64(time.Microsecond))
}

// UnmarshalJSON reads microseconds.
func (m *Micros) UnmarshalJSON(b []byte) error {
	var us float64
	if err := json.Unmarshal(b, &us); err != nil {
		return fmt.Errorf("a number of microseconds: %w", err)
	}
	*m = Micros(us * float64(time.Microsecond))
	return nil
}

// Duration converts to Go's type.
func (m Micros) Duration() time.Duration { return time.Duration(m) }

// String is that of a time.Duration.
func (m Micros) String() string { return time.Duration(m).String() }

// Point is one of a curve of percentiles.
type Point struct {
	Percent float64 `json:"percent"`
	At      Micros  `json:"us"`
}

// Latency sums up many durations.
type Latency struct {
	Count uint64  `json:"count"`
	Mean  Micros  `json:"mean_us"`
	P50   Micros  `json:"p50_us"`
	P90   Micros  `json:"p90_us"`
	P99   Micros  `json:"p99_us"`
	P999  Micros  `json:"p99_9_us"`
	P9999 Micros  `json:"p99_99_us"`
	Max   Micros  `json:"max_us"`
	Curve []Point `json:"curve,omitempty"`
}

// OpResult is the result for one operation.
type OpResult struct {
	Name string `json:"name"`
	// PerSecond counts the answers within the measured time, errors left out.
	PerSecond float64 `json:"per_second"`
	// Latency is that of all requests sent (open loop: intended) within the
	// measured time, also of those answered after it.
	Latency Latency `json:"latency"`
	// Errors counts the error codes among the answers.
	Errors map[string]uint64 `json:"errors,omitempty"`
}

// Sample is one moment of a run.
type Sample struct {
	At        time.Duration `json:"at_ns"` // since the start of the measured time
	WarmUp    bool          `json:"-"`     // before that; not in a Timeline
	PerSecond float64       `json:"per_second"`
	P50       Micros        `json:"p50_us"`
	P99       Micros        `json:"p99_us"`
	P999      Micros        `json:"p99_9_us"`
	Max       Micros        `json:"max_us"`
}

// Process is how much a process has used during the measured time.
type Process struct {
	PID     int           `json:"pid"`
	CPU     time.Duration `json:"cpu_ns"`         // user and system
	RSS     int64         `json:"rss_bytes"`      // at the end
	PeakRSS int64         `json:"peak_rss_bytes"` // largest since its start (VmHWM)
	Ended   bool          `json:"ended,omitempty"`
}

// Result is the result of a run. Its JSON is printed by zk-lite bench -o json; durations are in
// the unit of their names.
type Result struct {
	Kind    string        `json:"kind"` // load, watch, sessions, failover, idle or fill
	Started time.Time     `json:"started"`
	Config  Config        `json:"config"`
	Elapsed time.Duration `json:"elapsed_ns"` // measured time
	// Total is over all operations; Ops are in the order of the mix.
	Total    OpResult   `json:"total"`
	Ops      []OpResult `json:"ops,omitempty"`
	Timeline []Sample   `json:"timeline,omitempty"`
	// Unanswered requests were sent within the measured time and got no reply, or were due then
	// and not even sent, because the servers fell behind the rate.
	Unanswered uint64 `json:"unanswered"`
	// Dropped is how many connections ended before the run did.
	Dropped int `json:"dropped_connections"`
	// Expired is how many sessions no server took back (Config.Return).
	Expired   int           `json:"expired_sessions,omitempty"`
	Servers   []Process     `json:"servers,omitempty"`
	Generator time.Duration `json:"generator_cpu_ns"` // CPU of this process
	Failover  *Outage       `json:"failover,omitempty"`
}

// CPUShare is the CPU time of all servers in cores: 0.5 is half of one.
func (r *Result) CPUShare() float64 {
	var cpu time.Duration
	for _, p := range r.Servers {
		cpu += p.CPU
	}
	return cpu.Seconds() / r.Elapsed.Seconds()
}

// CPUPerOp is the CPU time of all servers for one answered operation; 0 if it
// was not measured.
func (r *Result) CPUPerOp() time.Duration {
	var cpu time.Duration
	for _, p := range r.Servers {
		cpu += p.CPU
	}
	n := r.Total.PerSecond * r.Elapsed.Seconds()
	if n < 1 {
		return 0
	}
	return time.Duration(float64(cpu) / n)
}

// recorderShards spreads the counters of concurrent connections over cache
// lines.
const recorderShards = 8

// Recorder gathers the measurements of connections. All of its methods may be called from many
// goroutines.
type Recorder struct {
	from, until time.Time // the measured time
	ops         []Op      // in the order of the mix
	index       [opCount]int
	shards      [recorderShards][]recorderShard // of each, one an operation

	unanswered atomic.Uint64
	dropped    atomic.Int64
	expired    atomic.Int64

	mu     sync.Mutex // protects the fields below
	errors map[Op]map[string]uint64
}

type recorderShard struct {
	latency  Histogram
	answered atomic.Uint64 // good answers within the measured time
	all      atomic.Uint64 // answers since the start, warm-up included
	_        [64]byte
}

// newRecorder records the operations of a mix between two moments.
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

// Expired records a session that no server took back.
func (r *Recorder) Expired() { r.expired.Add(1) }

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

// fill puts the records into a result.
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
	res.Unanswered, res.Dropped, res.Expired = r.unanswered.Load(), int(r.dropped.Load()), int(r.expired.Load())
}

func (r *Recorder) errorsOf(op Op) map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors[op]
}
