package insight

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

const (
	// sketchSize is how many counters a sketch has, which has all that make more than 1/sketchSize of the requests. The
	// twelve sketches take about 150 KB, and with the longest paths 300 KB.
	sketchSize = 128
	// windowTime is how long a window counts. There are two: the one before is whole.
	windowTime = time.Minute
	// maxSamples is about how many requests are looked at in a second; the others cost a random number each.
	maxSamples = 250
)

// Use is one request that was answered, but for pings. What is zero is not known, or there is none.
type Use struct {
	Session znode.SessionID
	Address netip.Addr
	Path    string // of a transaction, its first one's
	Bytes   int    // of the request and its reply
}

// Measure is by what users are ordered.
type Measure int

// The measures.
const (
	ByRequests Measure = iota
	ByBytes
	measures
)

// Usage finds the sessions, addresses and paths that use a server most, by requests and by bytes, over the last one or
// two minutes. It samples, so that its cost does not grow with the load, and counts the samples in sketches of a fixed
// size. Who watches what is in package watch.
//
// The zero value is ready for use, by several goroutines at once. The lock is held for a microsecond, and nothing else
// is locked under it.
type Usage struct {
	every atomic.Uint32 // one request of so many is sampled; 0 is 1

	mu      sync.Mutex // protects the fields below
	second  time.Time  // when sampling was last adjusted
	samples int64      // since then
	stand   int64      // how many requests they stand for
	windows [2]window  // the present one and the one before
}

// window is what was counted from one moment on.
type window struct {
	since time.Time // zero: nothing was
	by    [measures]sketches
}

type sketches struct {
	total     int64
	sessions  sketch[znode.SessionID]
	addresses sketch[netip.Addr]
	paths     sketch[string]
}

func (s *sketches) add(u *Use, n int64) {
	s.total += n
	if u.Session != 0 {
		s.sessions.add(u.Session, n)
	}
	if u.Address.IsValid() {
		s.addresses.add(u.Address, n)
	}
	if u.Path != "" {
		s.paths.add(u.Path, n)
	}
}

// Skip reports whether the next request is left out of the samples; if it is not, Count must follow.
func (t *Usage) Skip() bool {
	every := t.every.Load()
	return every > 1 && rand.Uint32N(every) != 0
}

// Count counts a sampled request, for all those that were left out.
func (t *Usage) Count(u Use) {
	u.Path = strings.Clone(u.Path[:min(len(u.Path), maxPath)]) // the rest of a frame is not to live on
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(max(t.every.Load(), 1))
	t.turnLocked(now)
	w := &t.windows[0]
	w.by[ByRequests].add(&u, n)
	w.by[ByBytes].add(&u, n*int64(u.Bytes))
	t.samples++
	t.stand += n
	t.adjustLocked(now)
}

// adjustLocked chooses how many requests are sampled in the next second; fewer at once when there are too many.
func (t *Usage) adjustLocked(now time.Time) {
	every := max(t.every.Load(), 1)
	switch passed := now.Sub(t.second); {
	case passed >= time.Second:
		every = uint32(float64(t.stand)/passed.Seconds()/maxSamples) + 1
	case t.samples >= maxSamples:
		every *= 4
	default:
		return
	}
	t.every.Store(every)
	t.second, t.samples, t.stand = now, 0, 0
}

// turnLocked begins a new window when the present one is over.
func (t *Usage) turnLocked(now time.Time) {
	switch passed := now.Sub(t.windows[0].since); {
	case passed < windowTime:
		return
	case passed < 2*windowTime:
		t.windows[1] = t.windows[0]
	default:
		t.windows[1] = window{}
	}
	t.windows[0] = window{since: now}
}
