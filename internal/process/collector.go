package process

import (
	"log/slog"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	// roomShare of the machine's memory is how much a heap may grow between two collections,
	// however small it is: little enough for several servers on one machine.
	roomShare = 256
	minRoom   = 16 << 20
	// maxRoom is where more has no effect that could be measured.
	maxRoom = 128 << 20
	// smallestHeap is the size that the runtime assumes for a smaller heap.
	smallestHeap = 4 << 20
	// usual is Go's default: collect when the heap has doubled.
	usual = 100
	// limitPercent of the machine's memory is the soft limit. The rest is for the page cache,
	// which holds the log, and for stacks and buffers of the kernel.
	limitPercent = 75
)

// TuneCollector sets Go's garbage collector by the machine's memory until stop is called. It may be in effect once in a
// process.
//
// Go collects when the heap has doubled. A server with a small tree has a live heap of ten megabytes and
// allocates a hundred times that every second, so it would collect constantly: a quarter of its CPU went
// there (docs/performance.md). TuneCollector gives every heap room for at least a part of the machine's
// memory; a larger heap is collected when it has doubled, as usual. A soft limit makes the collector work
// harder before the machine or its control group runs out of memory.
//
// The environment variables GOGC and GOMEMLIMIT, where they are set, have precedence. It starts no goroutine: after
// each collection the runtime's own finalizer goroutine reads how much memory is in use.
func TuneCollector(logger *slog.Logger) (stop func()) {
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

// percentFor is the GOGC with which a heap with live bytes grows by room, or doubles if it is
// larger than that.
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

// liveHeap is the live heap of the last collection, 0 before the first.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

// Memory is how many bytes this process may use: the machine's memory or its control group's limit, whichever
// is less. 0 means unknown, as on other systems than Linux.
func Memory() int64 {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return "" // not Linux, or no such control group
		}
		return string(b)
	}
	total := parseMemInfo(read("/proc/meminfo"))
	for _, file := range limitFiles(read("/proc/self/cgroup")) {
		if limit := parseLimit(read(file)); limit > 0 && (total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}

// limitFiles are the files with the limits of a process's control groups and of all groups above them, of
// versions 1 and 2, given its /proc/self/cgroup. A container sees its own group as the root.
func limitFiles(groups string) (files []string) {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			continue
		}
		root, name := "/sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !slices.Contains(strings.Split(fields[1], ","), "memory") {
				continue
			}
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			files = append(files, path.Join(root, dir, name))
			if dir == "/" {
				break
			}
		}
	}
	return files
}

// parseMemInfo returns MemTotal of /proc/meminfo in bytes, 0 if it is not there.
func parseMemInfo(text string) int64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "MemTotal:" || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || kib < 0 || kib > 1<<50 {
			return 0
		}
		return kib << 10
	}
	return 0
}

// parseLimit returns a control group's limit in bytes, 0 for "max" and anything that is no
// number.
func parseLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
