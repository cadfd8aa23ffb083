package insight

import (
	"math"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/process"
)

const (
	schedLatencies = "/sched/latencies:seconds"
	// windows is how many samples are remembered: a minute and more.
	windows = 128
	// sampleEvery is how long after a sample another one is worth its cost.
	sampleEvery = 100 * time.Millisecond
)

// processorWaits keeps how long work that was ready to run has waited for a processor: goroutines for one of the
// runtime's, which it counts, and threads for one of the machine's, which Linux counts. A goroutine that was woken late
// shows what neither sees, that the whole machine did not run.
type processorWaits struct {
	mu     sync.Mutex // protects the fields below
	read   []metrics.Sample
	counts []uint64      // of the last sample
	delay  time.Duration // the same: process.RunDelay
	at     time.Time
	waits  [windows]processorWait
	next   int
}

// processorWait is about the longest wait between two samples.
type processorWait struct {
	from, to time.Time
	longest  time.Duration
	part     float64 // of the time in which threads waited, 1 at most
}

// sample ends a window. late is by how much a goroutine that slept was woken too late in it.
func (p *processorWaits) sample(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sampleLocked(late)
}

func (p *processorWaits) sampleLocked(late time.Duration) {
	now := time.Now()
	if p.read == nil {
		p.read = []metrics.Sample{{Name: schedLatencies}}
	}
	metrics.Read(p.read)
	if p.read[0].Value.Kind() != metrics.KindFloat64Histogram {
		return
	}
	h := p.read[0].Value.Float64Histogram()
	longest := late
	for i := len(h.Counts) - 1; i >= 0 && len(p.counts) == len(h.Counts); i-- {
		if h.Counts[i] > p.counts[i] {
			if least := h.Buckets[i]; !math.IsInf(least, 0) {
				longest = max(longest, time.Duration(least*float64(time.Second)))
			}
			break
		}
	}
	delay := process.RunDelay()
	part := 0.0
	if !p.at.IsZero() {
		part = min(max((delay-p.delay).Seconds()/now.Sub(p.at).Seconds(), 0), 1) // threads end, and their time goes
	}
	p.delay = delay
	p.waits[p.next] = processorWait{p.at, now, longest, part}
	p.next = (p.next + 1) % windows
	p.counts, p.at = slices.Clone(h.Counts), now
}

// longest returns about the longest wait between two moments; what came at nearly the same time may be in it.
func (p *processorWaits) longest(from, to time.Time) (d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= sampleEvery {
		p.sampleLocked(0)
	}
	for _, w := range p.waits {
		if w.to.After(from) && w.from.Before(to) {
			d = max(d, w.longest, time.Duration(w.part*float64(to.Sub(from))))
		}
	}
	return d
}
