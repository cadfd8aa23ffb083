package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// maxOpen bounds the items that are put and not done: a queue is not for more than
// some hundreds.
const maxOpen = 60

// ledger is what the workers know of a queue.
type ledger struct {
	s    *soak
	what string

	mu     sync.Mutex // protects the fields below
	next   int
	put    map[string]bool // for certain
	maybe  map[string]bool // perhaps
	done   map[string]int  // how often, for certain
	unsure map[string]bool // perhaps
	tokens map[string]int64
	stale  int // items that were worked on with an older token
}

// anyQueue is what the three kinds of queues have.
type anyQueue interface {
	Take(context.Context) (*recipes.Item, error)
	TryTake(context.Context) (*recipes.Item, error)
	Len(context.Context) (int, error)
}

func (s *soak) ledger(what string) *ledger {
	return &ledger{
		s: s, what: what, put: map[string]bool{}, maybe: map[string]bool{},
		done: map[string]int{}, unsure: map[string]bool{}, tokens: map[string]int64{},
	}
}

// startQueues starts a producer and a consumer of each queue at every client.
func (s *soak) startQueues() {
	plain, urgent, late := s.ledger("queue"), s.ledger("priority queue"), s.ledger("delay queue")
	for i, c := range s.clients {
		q := recipes.NewQueue(c, path("queue"))
		p := recipes.NewPriorityQueue(c, path("priority"))
		d := recipes.NewDelayQueue(c, path("delay"))
		s.work(fmt.Sprintf("queue, put %d", i), func(ctx context.Context) error {
			return plain.add(ctx, func(n int, data []byte) error { return q.Put(ctx, data) })
		})
		s.work(fmt.Sprintf("priority queue, put %d", i), func(ctx context.Context) error {
			return urgent.add(ctx, func(n int, data []byte) error { return p.Put(ctx, int32(n%3-1), data) })
		})
		s.work(fmt.Sprintf("delay queue, put %d", i), func(ctx context.Context) error {
			return late.add(ctx, func(n int, data []byte) error {
				return d.Put(ctx, time.Now().Add(time.Duration(n%100)*time.Millisecond), data)
			})
		})
		for l, from := range map[*ledger]anyQueue{plain: q, urgent: p, late: d} {
			s.work(fmt.Sprintf("%s, take %d", l.what, i), func(ctx context.Context) error {
				item, err := from.Take(ctx)
				if err != nil {
					return err
				}
				return l.finish(item, l == late)
			})
		}
	}
	s.atEnd(func() {
		c := s.connectLong()
		plain.check(recipes.NewQueue(c, path("queue")))
		urgent.check(recipes.NewPriorityQueue(c, path("priority")))
		late.check(recipes.NewDelayQueue(c, path("delay")))
		s.close(c)
	})
}

// add puts one item, unless there are too many.
func (l *ledger) add(ctx context.Context, put func(n int, data []byte) error) error {
	l.mu.Lock()
	if len(l.put)+len(l.maybe)-len(l.done)-len(l.unsure) >= maxOpen {
		l.mu.Unlock()
		return nil
	}
	l.next++
	n, name := l.next, fmt.Sprint(l.next)
	l.maybe[name] = true // others may take it before Put returns
	l.mu.Unlock()
	err := put(n, []byte(name))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.put[name] = true
	}
	if err == nil || !errors.Is(err, client.ErrOutcomeUnknown) {
		delete(l.maybe, name)
	}
	if err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && l.done[name] > 0 {
		l.s.errorf("%s: item %s was done, and Put says that it was not put: %v", l.what, name, err)
	}
	return err
}

// finish records that an item is done.
func (l *ledger) finish(item *recipes.Item, timed bool) error {
	name := string(item.Data)
	if timed && time.Now().Before(item.Due()) {
		l.s.errorf("%s: item %s was taken %v before its time", l.what, name, time.Until(item.Due()))
	}
	l.mu.Lock()
	if item.FencingToken() < l.tokens[name] {
		l.stale++
	}
	l.tokens[name] = max(l.tokens[name], item.FencingToken())
	l.mu.Unlock()
	err := item.Complete(l.s.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.done[name]++
	case errors.Is(err, client.ErrOutcomeUnknown):
		l.unsure[name] = true
	}
	return err
}

// check empties the queue, and compares.
func (l *ledger) check(q anyQueue) {
	s := l.s
	left := 0
	for {
		item, err := q.TryTake(s.ctx)
		if errors.Is(err, recipes.ErrEmpty) {
			n, err := q.Len(s.ctx)
			s.must(err)
			if n == 0 {
				break
			}
			rest(s.ctx, 10*time.Millisecond)
			continue // claimed in a session that has to end yet, or not due
		}
		s.must(err)
		s.must(l.finish(item, false))
		left++
	}
	for name := range l.put {
		if l.done[name] == 0 && !l.unsure[name] {
			s.errorf("%s: item %s was put and is lost", l.what, name)
		}
	}
	for name, n := range l.done {
		if n > 1 || n == 1 && !l.put[name] && !l.maybe[name] {
			s.errorf("%s: item %s was done %d times; put %v, perhaps put %v",
				l.what, name, n, l.put[name], l.maybe[name])
		}
	}
	if len(l.done) == 0 {
		s.errorf("%s: nothing was taken", l.what)
	}
	s.Logf("%s: %d items put and %d perhaps, %d done once and %d perhaps, %d of them at the end, %d with a stale token",
		l.what, len(l.put), len(l.maybe), len(l.done), len(l.unsure), left, l.stale)
}
