package recipes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// DelayQueue is a Queue whose items can only be taken from a certain time on, the
// earliest first. The time is that of the consumer's clock, in milliseconds.
//
// Items are those of Curator's DistributedDelayQueue: path/queue-|<time>|<number>,
// with the milliseconds since 1970 in hexadecimal digits. The other znodes are those
// of Queue.
type DelayQueue struct{ q *queue }

// NewDelayQueue returns the queue at path. Options: WithACL, WithClaimPath.
func NewDelayQueue(c *client.Client, path string, opts ...Option) *DelayQueue {
	q := newQueue(c, path, parseDelayName, opts)
	q.timed = true
	return &DelayQueue{q}
}

// Put adds an item that can be taken from a time on; see Queue.Put. Fractions of a
// millisecond are rounded up.
//
// Errors: client.ErrBadArguments if the time is not after 1970.
func (q *DelayQueue) Put(ctx context.Context, due time.Time, data []byte) error {
	ms := millis(due.Add(time.Millisecond - 1))
	if ms <= 0 {
		return fmt.Errorf("an item due at %v: want a time after 1970: %w",
			due, client.ErrBadArguments)
	}
	return q.q.put(ctx, delayKey(ms), data)
}

// Take claims the first item that is due, and waits for one until ctx ends; see
// Queue.Take.
func (q *DelayQueue) Take(ctx context.Context) (*Item, error) { return q.q.take(ctx, true) }

// TryTake is Take without waiting: ErrEmpty if no item is due.
func (q *DelayQueue) TryTake(ctx context.Context) (*Item, error) { return q.q.take(ctx, false) }

// Len returns the number of items, those included that are claimed or not due.
func (q *DelayQueue) Len(ctx context.Context) (int, error) { return q.q.len(ctx) }

// Due is the time from which on the item of a DelayQueue could be taken.
func (i *Item) Due() time.Time { return time.UnixMilli(i.key) }

func delayKey(ms int64) string { return fmt.Sprintf("|%08X|", ms) }

// parseDelayName reads queue-|<time>|<number>.
func parseDelayName(name string) (queued, bool) {
	rest, ok := strings.CutPrefix(name, itemName+"|")
	digits, number, ok2 := strings.Cut(rest, "|")
	ms, err := strconv.ParseInt(digits, 16, 64)
	seq, ok3 := znode.ParseSequence(number)
	return queued{name: name, key: ms, seq: seq}, ok && ok2 && ok3 && err == nil && ms >= 0
}
