package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// The names of a queue's znodes other than the items.
const (
	claimsSuffix  = "-claims"
	ticketsSuffix = "-tickets"
	waitersSuffix = "-waiters"
	waiterName    = "lock-"
)

// Queue is a first-in first-out queue. Put adds an item exactly once; Take claims it,
// and Item.Complete removes it. If the claim's session is lost first, another client
// gets the item: an item is processed at least once, and Item.FencingToken tells a
// resource which of two claims is later.
//
// Items are those of Curator's DistributedQueue with a lock path: path/queue-<number>
// and, while claimed, <claims>/queue-<number>, ephemeral. In addition, <path>-tickets
// has a znode for each Put whose outcome is not certain yet, and <path>-waiters the
// queue of the clients that wait in Take.
type Queue struct{ q *queue }

// NewQueue returns the queue at path. Options: WithACL, WithClaimPath.
func NewQueue(c *client.Client, path string, opts ...Option) *Queue {
	return &Queue{newQueue(c, path, curator.Plain, opts)}
}

// Put adds an item at the end.
//
// Errors: client.ErrOutcomeUnknown if ctx or the session ends before it is known
// whether the item is there.
func (q *Queue) Put(ctx context.Context, data []byte) error { return q.q.put(ctx, 0, data) }

// Take claims the first item that is not claimed, and waits for one until ctx
// ends. Waiters get items in the order of their calls; a call that finds an
// item does not wait for them.
func (q *Queue) Take(ctx context.Context) (*Item, error) { return q.q.take(ctx, true) }

// TryTake is Take without waiting: ErrEmpty if there is no item.
func (q *Queue) TryTake(ctx context.Context) (*Item, error) { return q.q.take(ctx, false) }

// Len returns the number of items, claimed ones included.
func (q *Queue) Len(ctx context.Context) (int, error) { return q.q.len(ctx) }

// queue is what the three kinds of queues have in common.
type queue struct {
	c       *client.Client
	dir     string     // of the items
	claims  string     // of the claims
	waiters *waitQueue // of clients in Take
	tickets *once      // of Put
	acl     []client.ACL
	items   curator.Items
}

func newQueue(
	c *client.Client, path string, items curator.Items, opts []Option,
) *queue {
	o := newOptions(opts)
	if o.claims == "" {
		o.claims = path + claimsSuffix
	}
	return &queue{
		c: c, dir: path, claims: o.claims, acl: o.acl, items: items,
		waiters: &waitQueue{
			c: c, dir: path + waitersSuffix, base: waiterName, markers: []string{waiterName},
			acl: o.acl,
		},
		tickets: &once{c: c, dir: path + ticketsSuffix, keep: path, acl: o.acl},
	}
}

func (q *queue) put(ctx context.Context, key int64, data []byte) error {
	data = curator.EncodeItem(data)
	for {
		err := q.tickets.commit(ctx, func(m *client.Multi) {
			m.Create(znode.Join(q.dir, q.items.Name(key)), data, client.PersistentSequential, q.acl...)
		})
		if err == nil || isUnknown(err) || !startAgain(ctx, q.c, err) {
			return err
		}
	}
}

func (q *queue) len(ctx context.Context) (int, error) {
	var exists bool
	var stat client.Stat
	err := afterSync(ctx, q.c, q.dir, func() (err error) {
		exists, stat, err = q.c.Exists(ctx, q.dir)
		return err
	}, nil)
	if err != nil || !exists {
		return 0, err
	}
	return int(stat.NumChildren), nil
}

// DelayQueue is a Queue whose items become available at a given time, the
// earliest first. The time is that of the consumer's clock, in milliseconds.
//
// Items are those of Curator's DistributedDelayQueue: path/queue-|<time>|<number>,
// with the milliseconds since 1970 in hexadecimal digits. The other znodes are those
// of Queue.
type DelayQueue struct{ q *queue }

// NewDelayQueue returns the queue at path. Options: WithACL, WithClaimPath.
func NewDelayQueue(c *client.Client, path string, opts ...Option) *DelayQueue {
	return &DelayQueue{newQueue(c, path, curator.Delayed, opts)}
}

// Put adds an item that becomes available at due; see Queue.Put. Fractions of a
// millisecond are rounded up.
//
// Errors: client.ErrBadArguments if the time is not after 1970.
func (q *DelayQueue) Put(ctx context.Context, due time.Time, data []byte) error {
	ms := due.Add(time.Millisecond - 1).UnixMilli()
	if ms <= 0 {
		return fmt.Errorf("an item due at %v: want a time after 1970: %w",
			due, client.ErrBadArguments)
	}
	return q.q.put(ctx, ms, data)
}

// Take claims the first item that is due, and waits for one until ctx ends; see
// Queue.Take.
func (q *DelayQueue) Take(ctx context.Context) (*Item, error) { return q.q.take(ctx, true) }

// TryTake is Take without waiting: ErrEmpty if no item is due.
func (q *DelayQueue) TryTake(ctx context.Context) (*Item, error) { return q.q.take(ctx, false) }

// Len returns the number of items, including those that are claimed or not due.
func (q *DelayQueue) Len(ctx context.Context) (int, error) { return q.q.len(ctx) }

// Due is when the item of a DelayQueue became available.
func (i *Item) Due() time.Time { return time.UnixMilli(i.key) }

// PriorityQueue is a Queue that yields the items with the lowest priority number
// first, and those of equal number in the order of Put.
//
// Items are those of Curator's DistributedPriorityQueue:
// path/queue-<sign><priority><number>, with sign 0 for negative priorities and 1 for
// others, and the priority as eight hexadecimal digits of its two's complement. The
// other znodes are those of Queue.
type PriorityQueue struct{ q *queue }

// NewPriorityQueue returns the queue at path. Options: WithACL, WithClaimPath.
func NewPriorityQueue(c *client.Client, path string, opts ...Option) *PriorityQueue {
	return &PriorityQueue{newQueue(c, path, curator.Prioritized, opts)}
}

// Put adds an item; see Queue.Put.
func (q *PriorityQueue) Put(ctx context.Context, priority int32, data []byte) error {
	return q.q.put(ctx, int64(priority), data)
}

// Take claims the first item, and waits for one until ctx ends; see Queue.Take.
func (q *PriorityQueue) Take(ctx context.Context) (*Item, error) { return q.q.take(ctx, true) }

// TryTake is Take without waiting: ErrEmpty if there is no item.
func (q *PriorityQueue) TryTake(ctx context.Context) (*Item, error) { return q.q.take(ctx, false) }

// Len returns the number of items, claimed ones included.
func (q *PriorityQueue) Len(ctx context.Context) (int, error) { return q.q.len(ctx) }

// Priority is the priority with which the item was put into a PriorityQueue.
func (i *Item) Priority() int32 { return int32(i.key) }
