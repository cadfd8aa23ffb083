package learner

import (
	"context"
	"fmt"
	"sync"

	"github.com/zk-lite/zk-lite/internal/fifo"
)

// event is one call of the Handler that is due.
type event struct {
	call  func(Handler) error
	bytes int
}

// queue holds the events between the connection's reader and the Handler.
type queue struct {
	limit int
	more  chan struct{} // holds a token after each change

	mu     sync.Mutex // protects the fields below
	events fifo.Queue[event]
	bytes  int
	end    error // no event follows those that are there; nil: more may come
}

func newQueue(limit int) *queue { return &queue{limit: limit, more: make(chan struct{}, 1)} }

// put adds an event. Errors: ErrBehind.
func (q *queue) put(e event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes += e.bytes; q.bytes > q.limit && q.events.Len() > 0 {
		q.bytes -= e.bytes
		return fmt.Errorf("%w: %d bytes, and %d are allowed", ErrBehind, q.bytes, q.limit)
	}
	q.events.Push(e)
	q.signal()
	return nil
}

// close says why no event follows.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end = err
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take removes and returns the oldest event, and waits for one. Errors: that of close, after the last event; the
// context's.
func (q *queue) take(ctx context.Context) (event, error) {
	for ctx.Err() == nil {
		q.mu.Lock()
		if q.events.Len() > 0 {
			e := q.events.Pop()
			q.bytes -= e.bytes
			q.mu.Unlock()
			return e, nil
		}
		err := q.end
		q.mu.Unlock()
		if err != nil {
			return event{}, err
		}
		select {
		case <-q.more:
		case <-ctx.Done():
		}
	}
	return event{}, context.Cause(ctx)
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}
