package recipes

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// The names of a queue's znodes: itemName is Curator's, the others stand behind
// the queue's path.
const (
	itemName      = "queue-"
	claimsSuffix  = "-claims"
	ticketsSuffix = "-tickets"
	waitersSuffix = "-waiters"
	waiterName    = "lock-"
)

// Queue is a first-in first-out queue. An item that is put is there exactly once;
// Take claims it, and Item.Complete removes it. If the claim's session is lost before,
// another client gets the item: an item is processed at least once, and by
// Item.FencingToken a resource finds out which of two claims is the later.
//
// Items are those of Curator's DistributedQueue with a lock path: path/queue-<number>
// and, while claimed, <claims>/queue-<number>, ephemeral. Besides, <path>-tickets has
// a znode per Put whose outcome is not certain yet, and <path>-waiters the queue of the
// clients that wait in Take.
type Queue struct{ q *queue }

// NewQueue returns the queue at path. Options: WithACL, WithClaimPath.
func NewQueue(c *client.Client, path string, opts ...Option) *Queue {
	return &Queue{newQueue(c, path, parseQueueName, opts)}
}

// Put adds an item at the end.
//
// Errors: client.ErrOutcomeUnknown if ctx or the session ends before it is known
// whether the item is there.
func (q *Queue) Put(ctx context.Context, data []byte) error { return q.q.put(ctx, "", data) }

// Take claims the first item that is not claimed, and waits for one until ctx
// ends. Those who wait get items in the order in which they came; one who comes
// when there is an item does not wait for them.
func (q *Queue) Take(ctx context.Context) (*Item, error) { return q.q.take(ctx, true) }

// TryTake is Take without waiting: ErrEmpty if there is no item.
func (q *Queue) TryTake(ctx context.Context) (*Item, error) { return q.q.take(ctx, false) }

// Len returns the number of items, claimed ones included.
func (q *Queue) Len(ctx context.Context) (int, error) { return q.q.len(ctx) }

// parseQueueName reads queue-<number>.
func parseQueueName(name string) (queued, bool) {
	x, ok := curator.Parse(name, itemName)
	return queued{name: name, seq: x.Number}, ok && name[:len(itemName)] == itemName
}

// queued is an item's name, and what it says of the order.
type queued struct {
	name string
	key  int64 // lower ones first: the priority, or the time in milliseconds
	seq  int32 // among those of one key
}

// queue is what the three kinds of queues have in common.
type queue struct {
	c       *client.Client
	dir     string     // of the items
	claims  string     // of the claims
	waiters *waitQueue // of clients in Take
	tickets *once      // of Put
	acl     []client.ACL
	parse   func(name string) (queued, bool)
	timed   bool // keys are times, before which an item cannot be taken
}

func newQueue(
	c *client.Client, path string, parse func(string) (queued, bool), opts []Option,
) *queue {
	o := newOptions(opts)
	if o.claims == "" {
		o.claims = path + claimsSuffix
	}
	return &queue{
		c: c, dir: path, claims: o.claims, acl: o.acl, parse: parse,
		waiters: &waitQueue{
			c: c, dir: path + waitersSuffix, base: waiterName, markers: []string{waiterName},
			acl: o.acl, blocker: lastOf,
		},
		tickets: &once{c: c, dir: path + ticketsSuffix, keep: path, acl: o.acl},
	}
}

func (q *queue) put(ctx context.Context, key string, data []byte) error {
	data = encodeItem(data)
	for {
		err := q.tickets.commit(ctx, func(m *client.Multi) {
			m.Create(q.dir+"/"+itemName+key, data, client.PersistentSequential, q.acl...)
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

// millis is a time as item names have it.
func millis(t time.Time) int64 { return t.UnixMilli() }

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

// PriorityQueue is a Queue from which the items of the lowest number come first,
// and among those of one number the first that was put.
//
// Items are those of Curator's DistributedPriorityQueue:
// path/queue-<sign><priority><number>, with sign 0 for negative priorities and 1 for
// others, and the priority as eight hexadecimal digits of its two's complement. The
// other znodes are those of Queue.
type PriorityQueue struct{ q *queue }

// NewPriorityQueue returns the queue at path. Options: WithACL, WithClaimPath.
func NewPriorityQueue(c *client.Client, path string, opts ...Option) *PriorityQueue {
	return &PriorityQueue{newQueue(c, path, parsePriorityName, opts)}
}

// Put adds an item; see Queue.Put.
func (q *PriorityQueue) Put(ctx context.Context, priority int32, data []byte) error {
	return q.q.put(ctx, priorityKey(priority), data)
}

// Take claims the first item, and waits for one until ctx ends; see Queue.Take.
func (q *PriorityQueue) Take(ctx context.Context) (*Item, error) { return q.q.take(ctx, true) }

// TryTake is Take without waiting: ErrEmpty if there is no item.
func (q *PriorityQueue) TryTake(ctx context.Context) (*Item, error) { return q.q.take(ctx, false) }

// Len returns the number of items, claimed ones included.
func (q *PriorityQueue) Len(ctx context.Context) (int, error) { return q.q.len(ctx) }

// Priority is what the item was put with into a PriorityQueue.
func (i *Item) Priority() int32 { return int32(i.key) }

func priorityKey(priority int32) string {
	sign := 1
	if priority < 0 {
		sign = 0
	}
	return fmt.Sprintf("%d%08X", sign, uint32(priority))
}

// parsePriorityName reads queue-<sign><priority><number>.
func parsePriorityName(name string) (queued, bool) {
	const width = 9
	rest, ok := strings.CutPrefix(name, itemName)
	if !ok || len(rest) < width {
		return queued{}, false
	}
	bits, err := strconv.ParseUint(rest[1:width], 16, 32)
	seq, ok := znode.ParseSequence(rest[width:])
	if err != nil || !ok || rest[:width] != priorityKey(int32(bits)) {
		return queued{}, false
	}
	return queued{name: name, key: int64(int32(bits)), seq: seq}, true
}
