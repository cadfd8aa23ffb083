package session

import (
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Deadlines calls visit with each moment at which sessions would expire, and their ids.
func (c *Clock) Deadlines(visit func(at time.Time, ids []znode.SessionID)) {
	for _, b := range c.order {
		var ids []znode.SessionID
		for s := b.ring.next; s != &b.ring; s = s.next {
			ids = append(ids, s.id)
		}
		if len(ids) > 0 {
			visit(c.at(b.tick), ids)
		}
	}
}
