package gc

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// roomShare of the machine's memory is what a heap may grow by between two
	// collections, however small it is: little enough for several servers on one
	// machine.
	roomShare = 256
	minRoom   = 16 << 20
	// maxRoom is where more has no effect that could be measured.
	maxRoom = 128 << 20
	// smallestHeap is what the runtime counts a smaller heap as.
	smallestHeap = 4 << 20
	// usual is Go's default: collect when the heap has doubled.
	usual = 100
	// limitPercent of the machine's memory is the soft limit. What is above is for
	// the page cache, in which the log is, and for stacks and buffers of the kernel.
	limitPercent = 75
)

// Tune sets the collector until stop is called.
func Tune(logger *slog.Logger) (stop func()) {
	total := Memory()
	t := &tuner{room: roomOf(total)}
	var undo []func()
	if _, set := os.LookupEnv("GOGC"); !set {
		undo = append(undo, t.start())
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set && total > 0 {
		before := debug.SetMemoryLimit(total / 100 * limitPercent)
		undo = append(undo, func() { debug.SetMemoryLimit(before) })
	}
	logger.Debug("garbage collector", "memory", total, "room", t.room,
		"limit", debug.SetMemoryLimit(-1))
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// roomOf is how much a heap may grow by on a machine with this memory.
func roomOf(total int64) int64 { return min(max(total/roomShare, minRoom), maxRoom) }

// percentFor is the GOGC by which a heap with so many bytes alive grows by room,
// or doubles if it is larger than that.
func percentFor(live, room int64) int {
	return int(max(usual, room*100/max(live, smallestHeap)))
}

// tuner adjusts GOGC to the live heap.
type tuner struct {
	room    int64
	stopped atomic.Bool
	percent int // as last set; the finalizer goroutine's own after start
}

// sentinel is garbage at every collection: its finalizer runs after each.
type sentinel struct{ t *tuner }

func (t *tuner) start() (stop func()) {
	t.percent = percentFor(liveHeap(), t.room)
	before := debug.SetGCPercent(t.percent)
	runtime.SetFinalizer(&sentinel{t}, (*sentinel).collected)
	return func() {
		t.stopped.Store(true)
		debug.SetGCPercent(before)
	}
}

func (s *sentinel) collected() {
	if s.t.stopped.Load() {
		return
	}
	s.t.adjust()
	runtime.SetFinalizer(s, (*sentinel).collected)
}

// adjust sets GOGC if it is off by more than an eighth: setting it stops the
// world for some microseconds.
func (t *tuner) adjust() {
	want := percentFor(liveHeap(), t.room)
	if off := want - t.percent; max(off, -off)*8 <= t.percent {
		return
	}
	t.percent = want
	debug.SetGCPercent(want)
}

// liveHeap is what the last collection has found alive, 0 before the first.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
