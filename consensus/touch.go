package consensus

import (
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// Touch reports sessions whose clients were heard by this server. It never
// blocks: while no leader takes them they are merged.
func (n *Node) Touch(ids []znode.SessionID) {
	for {
		select {
		case n.touches <- ids:
			return
		case older := <-n.touches:
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

// reports is what a stream has told the leader of sessions that were heard and
// the leader has not confirmed: each with the stamp of the newest report. When
// the stream breaks they are told again, or the sessions would expire early.
type reports map[znode.SessionID]int64

// add notes a report that is about to be sent, and drops what the leader has
// confirmed by now: it answers the reports in their order.
func (r reports) add(ids []znode.SessionID, stamp, confirmed int64) {
	r.drop(confirmed)
	for _, id := range ids {
		r[id] = stamp
	}
}

// unconfirmed returns the sessions of which the leader may not know.
func (r reports) unconfirmed(confirmed int64) []znode.SessionID {
	r.drop(confirmed)
	return slices.Collect(maps.Keys(r))
}

func (r reports) drop(confirmed int64) {
	maps.DeleteFunc(r, func(_ znode.SessionID, stamp int64) bool { return stamp <= confirmed })
}
