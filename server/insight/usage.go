package insight

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

const (
	// sketchSize is how many counters a sketch has, which has all that make more than 1/sketchSize of the requests. The
	// sixteen sketches that are used take about 200 KB, and with the longest paths 350 KB.
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

// Measure is what users are ordered by.
type Measure int

// The measures.
const (
	ByRequests Measure = iota
	ByBytes
	ByHeld // microseconds for which requests waited for those of others, or for Rates
	measures
)

// Usage finds the sessions, addresses and paths that use a server most, by requests and by bytes, over the last one or
// two minutes. It samples, so that its cost does not grow with the load, and counts the samples in sketches of a fixed
// size. Who watches what is in package watch.
//
// The zero value is ready for use, by several goroutines at once. The lock is held for a microsecond, and nothing else
// is locked under it.
type Usage struct {
	every atomic.Uint32 // one in every requests is sampled; 0 means 1

	mu      sync.Mutex // protects the fields below
	second  time.Time  // when sampling was last adjusted
	samples int64      // since then
	stand   int64      // how many requests they represent
	windows [2]window  // the present one and the one before
}

// window holds the counts from one moment on.
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
	u.Path = strings.Clone(u.Path[:min(len(u.Path), maxPath)]) // the rest of a frame can be freed
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

// Held counts for how long a client has been held back. No time is left out.
func (t *Usage) Held(u Use, waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(time.Now())
	t.windows[0].by[ByHeld].add(&u, waited.Microseconds())
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

// Ranking lists the users that used the server most.
type Ranking struct {
	Seconds   float64 // that it covers, at least one
	Total     int64   // requests or bytes of all
	Sessions  []User
	Addresses []User
	Paths     []User
}

// User is a session, an address or a path.
type User struct {
	Name  string
	Count int64 // requests, bytes or watches
	Over  int64 // what Count may be too large by, besides what sampling adds or takes away
}

// Top returns the first users by a measure, at most limit of each kind.
func (t *Usage) Top(by Measure, limit int) Ranking {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(now)
	t.adjustLocked(now)
	present, before := &t.windows[0].by[by], &t.windows[1].by[by]
	since := t.windows[0].since
	if !t.windows[1].since.IsZero() {
		since = t.windows[1].since
	}
	return Ranking{
		// Over less than a second, the first few requests would give rates of hundreds.
		Seconds: max(1, now.Sub(since).Seconds()), Total: present.total + before.total,
		Sessions:  rank(limit, &present.sessions, &before.sessions),
		Addresses: rank(limit, &present.addresses, &before.addresses),
		Paths:     rank(limit, &present.paths, &before.paths),
	}
}

// rank adds up what two sketches have counted. What one of them does not list it may have counted up to its smallest
// counter, if that is full.
func rank[K comparable](limit int, both ...*sketch[K]) []User {
	users := map[K]*User{}
	for _, s := range both {
		for _, c := range s.counters {
			users[c.key] = &User{Name: fmt.Sprint(c.key)}
		}
	}
	list := make([]User, 0, len(users))
	for key, u := range users {
		for _, s := range both {
			c := s.of(key)
			u.Count += c.count
			u.Over += c.over
		}
		list = append(list, *u)
	}
	return TopUsers(list, limit)
}

// TopUsers orders users, the largest first, and cuts the list off.
func TopUsers(users []User, limit int) []User {
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return users[:min(limit, len(users))]
}

// sketch counts the most frequent keys in a stream of any number of them (Metwally, Agrawal, El Abbadi: Efficient
// Computation of Frequent and Top-k Elements in Data Streams, 2005; "Space-Saving"). A new key takes over the smallest
// counter, so a count is never too small, and too large by that counter's value at most.
type sketch[K comparable] struct {
	at       map[K]int // index of a key's counter
	counters []counter[K]
}

type counter[K comparable] struct {
	key   K
	count int64
	over  int64 // what count may be too large by
}

func (s *sketch[K]) add(key K, n int64) {
	if i, ok := s.at[key]; ok {
		s.counters[i].count += n
		return
	}
	if s.at == nil {
		s.at = make(map[K]int, sketchSize)
	}
	if len(s.counters) < sketchSize {
		s.at[key] = len(s.counters)
		s.counters = append(s.counters, counter[K]{key, n, 0})
		return
	}
	least := s.least()
	c := &s.counters[least]
	delete(s.at, c.key)
	s.at[key] = least
	*c = counter[K]{key, c.count + n, c.count}
}

// of returns what a key has at most, and by how much that may be too large.
func (s *sketch[K]) of(key K) counter[K] {
	if i, ok := s.at[key]; ok {
		return s.counters[i]
	}
	if len(s.counters) < sketchSize {
		return counter[K]{key: key}
	}
	n := s.counters[s.least()].count
	return counter[K]{key, n, n}
}

// least is the index of the smallest counter.
func (s *sketch[K]) least() (least int) {
	for i := range s.counters {
		if s.counters[i].count < s.counters[least].count {
			least = i
		}
	}
	return least
}
