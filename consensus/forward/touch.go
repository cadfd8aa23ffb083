package forward

import (
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// touches holds the touched sessions until a stream takes them.
type touches chan []znode.SessionID // capacity 1

func newTouches() touches { return make(touches, 1) }

func (t touches) add(ids []znode.SessionID) {
	for {
		select {
		case t <- ids:
			return
		case older := <-t:
			seen := make(map[znode.SessionID]bool, len(ids))
			for _, id := range ids {
				seen[id] = true
			}
			for _, id := range older {
				if !seen[id] {
					ids = append(ids, id)
				}
			}
		}
	}
}

// reports holds the touched sessions that a stream has sent to the leader and the leader has not
// confirmed: each with the stamp of the newest report. When the stream breaks they are sent again, or the
// sessions would expire early.
type reports map[znode.SessionID]int64

// add notes a report that is about to be sent, and drops what the leader has
// confirmed by now: it answers the reports in their order.
func (r reports) add(ids []znode.SessionID, stamp, confirmed int64) {
	r.drop(confirmed)
	for _, id := range ids {
		r[id] = stamp
	}
}

// unconfirmed returns the sessions whose touches the leader may not have.
func (r reports) unconfirmed(confirmed int64) []znode.SessionID {
	r.drop(confirmed)
	return slices.Collect(maps.Keys(r))
}

func (r reports) drop(confirmed int64) {
	maps.DeleteFunc(r, func(_ znode.SessionID, stamp int64) bool { return stamp <= confirmed })
}
