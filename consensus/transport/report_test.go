package transport

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// report describes what keeps each server from leading or following, and where the main loops of raft are.
func (c *cluster) report() string {
	var b strings.Builder
	for _, s := range c.servers {
		s.mu.Lock()
		r, t := s.r, s.t
		s.mu.Unlock()
		if r == nil {
			fmt.Fprintf(&b, "server %d is down\n", s.id)
			continue
		}
		leader, _ := r.LeaderWithID()
		index, term := lastEntry(r)
		fmt.Fprintf(&b, "server %d: %v of term %d, last entry %d of term %d, commit %d, applied %d, leader %q, "+
			"last heard %v, snapshot under way %v, %+v\n",
			s.id, r.State(), r.CurrentTerm(), index, term, r.CommitIndex(), r.AppliedIndex(), leader,
			time.Since(r.LastContact()), t.SnapshotUnderWay(), t.Stats())
		if d := t.failover; d != nil {
			d.mu.Lock()
			fmt.Fprintf(&b, "  suspects %q in term %d for %v; asks %v; promised to %q for %v, campaigning %v, %d refusals\n",
				d.suspect, d.term, time.Until(d.until), d.asking, d.promise.to, time.Until(d.promise.until),
				d.promise.campaigning, d.promise.refusals)
			d.mu.Unlock()
		}
	}
	stacks := make([]byte, 1<<22)
	for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(g, "raft.(*Raft).run(") {
			b.WriteString(g + "\n\n")
		}
	}
	return b.String()
}
