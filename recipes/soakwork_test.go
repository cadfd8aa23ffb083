package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// ledger records what a soak's workers know of queue and counter.
type ledger struct {
	mu       sync.Mutex
	put      map[string]bool // items that were put for certain
	maybe    map[string]bool // items that may have been
	done     map[string]int  // how often each was done for certain
	unsure   map[string]bool // items that may have been done
	added    atomic.Int64
	addMaybe atomic.Int64
}

// startWorkers starts the workers, and returns what tells whether the mutex and the election have been used, and what
// checks the sums at the end.
func (s *soak) startWorkers() (used func() bool, sums func()) {
	l := &ledger{
		put: map[string]bool{}, maybe: map[string]bool{}, done: map[string]int{}, unsure: map[string]bool{},
	}
	mutex, election := &fence{what: "mutex"}, &fence{what: "election"}
	for i, c := range s.clients {
		m := recipes.NewMutex(c, s.path("mutex"))
		s.work(func() error {
			g, err := m.Lock(s.stop)
			if err != nil {
				return err
			}
			return s.hold(mutex, &s.holders[0], 1, g)
		})
		e := recipes.NewElection(c, s.path("election"))
		s.work(func() error {
			return e.Run(s.stop, func(ctx context.Context, t *recipes.Term) error {
				return s.hold(election, &s.holders[1], 1, t.Grant)
			})
		})
		sem := recipes.NewSemaphore(c, s.path("semaphore"), 2)
		s.work(func() error {
			g, err := sem.Acquire(s.stop)
			if err != nil {
				return err
			}
			return s.hold(nil, &s.holders[2], 2, g)
		})
		n := recipes.NewCounter(c, s.path("counter"))
		s.work(func() error { return s.count(l, n) })
		q := recipes.NewQueue(c, s.path("queue"))
		if i%2 == 0 {
			k := 0
			s.work(func() error { k++; return s.putItem(l, q, fmt.Sprintf("%d.%d", i, k)) })
		} else {
			s.work(func() error { return s.takeItem(l, q) })
		}
	}
	used = func() bool { return mutex.uses.Load() > 0 && election.uses.Load() > 0 }
	return used, func() {
		s.checkSums(l)
		s.Logf("%d locks, %d terms, %d items, %d additions",
			mutex.uses.Load(), election.uses.Load(), len(l.done), l.added.Load())
	}
}

// hold uses a grant for a round trip, and checks that no more hold it than may. A
// holder counts as long as its grant says that it is held.
func (s *soak) hold(f *fence, holders *atomic.Int64, most int64, g *recipes.Grant) error {
	n := holders.Add(1)
	held := g.Err() == nil
	if held && n > most {
		// Others may have lost theirs and not come to count themselves out. That
		// is soon over; what counts is that it ends while ours is held.
		wait.Until(s, "those who have lost their grants leave",
			func() bool { return holders.Load() <= most || g.Err() != nil })
	}
	var err error
	if f != nil {
		err = f.use(g)
	}
	ctx, cancel := g.Context(s.stop)
	_, _, _ = s.clients[0].Exists(ctx, s.root) // takes time, at another's mercy
	cancel()
	holders.Add(-1)
	return errors.Join(err, g.Release(s.ctx))
}

func (s *soak) count(l *ledger, n *recipes.Counter) error {
	_, err := n.Add(s.stop, 1)
	switch {
	case err == nil:
		l.added.Add(1)
	case errors.Is(err, client.ErrOutcomeUnknown):
		l.addMaybe.Add(1)
	}
	return err
}

func (s *soak) putItem(l *ledger, q *recipes.Queue, name string) error {
	err := q.Put(s.stop, []byte(name))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.put[name] = true
	case errors.Is(err, client.ErrOutcomeUnknown):
		l.maybe[name] = true
	}
	return err
}

func (s *soak) takeItem(l *ledger, q *recipes.Queue) error {
	item, err := q.Take(s.stop)
	if err != nil {
		return err
	}
	return s.finish(l, item)
}

func (s *soak) finish(l *ledger, item *recipes.Item) error {
	err := item.Complete(s.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.done[string(item.Data)]++
	case errors.Is(err, client.ErrOutcomeUnknown):
		l.unsure[string(item.Data)] = true
	}
	return err
}

// checkSums empties the queue and compares.
func (s *soak) checkSums(l *ledger) {
	c := zktest.Connect(s, s.e.ConnectString())
	q := recipes.NewQueue(c, s.path("queue"))
	for {
		item, err := q.TryTake(s.ctx)
		if errors.Is(err, recipes.ErrEmpty) {
			n, err := q.Len(s.ctx)
			s.must(err)
			if n == 0 {
				break
			}
			continue // claimed in a session that has to end yet
		}
		s.must(err)
		s.must(s.finish(l, item))
	}
	for name := range l.put {
		if l.done[name] == 0 && !l.unsure[name] {
			s.Errorf("item %s was put and not done, want every item done", name)
		}
	}
	for name, n := range l.done {
		if n > 1 {
			s.Errorf("item %s was done %d times, want once", name, n)
		}
		if !l.put[name] && !l.maybe[name] {
			s.Errorf("item %s was done and not put, want items that were put", name)
		}
	}
	v, err := recipes.NewCounter(c, s.path("counter")).Get(s.ctx)
	s.must(err)
	if low, high := l.added.Load(), l.added.Load()+l.addMaybe.Load(); v < low || v > high {
		s.Errorf("the counter is %d, want %d to %d", v, low, high)
	}
}
