package recipes_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/recipes"
)

// resource is the object on which the holders of grants work. It knows no lock service: it refuses a token lower than
// the highest it has seen, and counts the writes that it has accepted. If two could be in it at a time, one of them
// would lose a write.
type resource struct {
	mu       sync.Mutex // protects the fields below
	highest  int64
	value    int
	accepted int
	refused  int
}

func (x *resource) read(token int64) (int, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if token < x.highest {
		x.refused++
		return 0, false
	}
	x.highest = token
	return x.value, true
}

func (x *resource) write(token int64, value int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if token < x.highest {
		x.refused++
		return false
	}
	x.highest = token
	x.value = value
	x.accepted++
	return true
}

// tenure is the time for which one grant was held for certain.
type tenure struct {
	from, to time.Time
	weight   int
	token    int64
	client   int
}

// holders checks the holders of one thing. Each has a weight, and the weights of those who hold it at a time are at
// most places: a mutex has one place; a reader has one of many, and a writer all.
type holders struct {
	s      *soak
	what   string
	places int
	// ordered declares that grants have growing tokens, as all have but readers among each other and places of a
	// semaphore.
	ordered bool

	mu       sync.Mutex // protects the fields below
	inside   map[*recipes.Grant]int
	tenures  []tenure // released without having been lost
	lost     int
	overlaps int // of beliefs, while this process was paused
}

// hold works for a while under a grant, then releases it, and checks that there are
// not too many. The resource may be nil.
func (h *holders) hold(who int, g *recipes.Grant, weight int, x *resource, exclusive bool) error {
	from := time.Now()
	h.enter(g, weight)
	var value int
	ok := false
	if x != nil {
		value, ok = x.read(g.FencingToken())
	}
	ctx, cancel := g.Context(h.s.stop)
	_, _, _ = h.s.clients[who].Exists(ctx, root) // takes a while, at the faults' mercy
	cancel()
	if ok && exclusive {
		x.write(g.FencingToken(), value+1)
	}
	h.look()
	h.mu.Lock()
	delete(h.inside, g)
	h.mu.Unlock()
	to := time.Now()
	err := g.Release(h.s.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.lost++
		return err
	}
	h.tenures = append(h.tenures, tenure{from, to, weight, g.FencingToken(), who})
	return nil
}

func (h *holders) enter(g *recipes.Grant, weight int) {
	h.mu.Lock()
	h.inside[g] = weight
	h.mu.Unlock()
	h.look()
}

// look counts those who believe that they hold it.
func (h *holders) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := 0
	text := ""
	for g, weight := range h.inside {
		if g.Err() == nil {
			sum += weight
			text += fmt.Sprintf(" %s (token %#x, session %#x)", g.Path(), g.FencingToken(), int64(g.Session().ID))
		}
	}
	if sum <= h.places {
		return
	}
	if !h.s.pulse.steady(2 * sessionTimeout) {
		h.overlaps++
		return
	}
	h.s.errorf("%s: too many believe at one moment that they have it:%s", h.what, text)
}

// check compares all that were held for certain, at the end.
func (h *holders) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	type edge struct {
		at     time.Time
		weight int
		t      tenure
	}
	var edges []edge
	for _, t := range h.tenures {
		edges = append(edges, edge{t.from, t.weight, t}, edge{t.to, -t.weight, t})
	}
	// At one moment the end of one comes before the beginning of the next.
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.weight, b.weight))
	})
	held, worst := 0, 0
	for _, e := range edges {
		held += e.weight
		worst = max(worst, held)
		if held > h.places {
			h.s.errorf("%s: %d of %d held when token %#x began", h.what, held, h.places, e.t.token)
		}
	}
	if h.ordered {
		slices.SortFunc(h.tenures, func(a, b tenure) int { return a.from.Compare(b.from) })
		for i := 1; i < len(h.tenures); i++ {
			if a, b := h.tenures[i-1], h.tenures[i]; a.token >= b.token {
				h.s.errorf("%s: token %#x was granted before %#x", h.what, a.token, b.token)
			}
		}
	}
	if len(h.tenures) == 0 {
		h.s.errorf("%s was never held: nothing was tested", h.what)
	}
	h.s.Logf("%s: %d held and released, %d lost, %d beliefs overlapped while this process stood still",
		h.what, len(h.tenures), h.lost, h.overlaps)
}

// check compares the accepted writes with their sum.
func (x *resource) check(s *soak, what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.value != x.accepted || x.accepted == 0 {
		s.errorf("%s: %d writes accepted, and the sum is %d", what, x.accepted, x.value)
	}
	s.Logf("%s: %d writes accepted, %d stale tokens refused", what, x.accepted, x.refused)
}

// startGrants starts the workers that hold something.
func (s *soak) startGrants() {
	mutex := s.holders("mutex", 1, true)
	election := s.holders("election", 1, true)
	rw := s.holders("read/write lock", clients*2, false)
	semaphore := s.holders("semaphore", 2, false)
	protected, led, shared := new(resource), new(resource), new(resource)
	for i, c := range s.clients {
		m := recipes.NewMutex(c, path("mutex"))
		s.work(fmt.Sprintf("mutex %d", i), func(ctx context.Context) error {
			g, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			return mutex.hold(i, g, 1, protected, true)
		})
		e := recipes.NewElection(c, path("election"))
		s.work(fmt.Sprintf("election %d", i), func(ctx context.Context) error {
			t, err := e.Campaign(ctx)
			if err != nil {
				return err
			}
			return election.hold(i, t.Grant, 1, led, true)
		})
		l := recipes.NewRWMutex(c, path("rw"))
		s.work(fmt.Sprintf("writer %d", i), func(ctx context.Context) error {
			g, err := l.Lock(ctx)
			if err != nil {
				return err
			}
			return rw.hold(i, g, clients*2, shared, true)
		})
		s.work(fmt.Sprintf("reader %d", i), func(ctx context.Context) error {
			g, err := l.RLock(ctx)
			if err != nil {
				return err
			}
			return rw.hold(i, g, 1, nil, false)
		})
		sem := recipes.NewSemaphore(c, path("semaphore"), 2)
		s.work(fmt.Sprintf("semaphore %d", i), func(ctx context.Context) error {
			g, err := sem.Acquire(ctx)
			if err != nil {
				return err
			}
			return semaphore.hold(i, g, 1, nil, false)
		})
	}
	s.atEnd(func() {
		for _, h := range []*holders{mutex, election, rw, semaphore} {
			h.check()
		}
		protected.check(s, "what the mutex protects")
		led.check(s, "what the leader writes")
		shared.check(s, "what writers write")
	})
}

func (s *soak) holders(what string, places int, ordered bool) *holders {
	return &holders{s: s, what: what, places: places, ordered: ordered, inside: map[*recipes.Grant]int{}}
}
