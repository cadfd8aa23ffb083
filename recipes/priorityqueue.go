package recipes

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

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
