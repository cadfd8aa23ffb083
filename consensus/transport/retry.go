package transport

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// retryCheck is how often a request that waits checks whether waiting has become pointless. It runs
// only while a follower is out of reach.
const retryCheck = 100 * time.Millisecond

// retrier keeps failures from raft.
//
// While a follower cannot be reached every request to it fails at once, and raft waits before the
// next one, twice as long each time, up to ten seconds (its replicateTo). A follower that comes back
// then waits that long for its first entry, and meanwhile an ensemble of three can lose no other
// server. Heartbeats fail as well, but raft sends at least two per heartbeat timeout.
//
// So a failed AppendEntries does not return to raft: it is sent again when the next heartbeat has got
// through. An outage of any length is one long request to raft, and nothing waits until raft itself
// tries again, after its CommitTimeout. A snapshot that could not be sent returns its error at that
// moment.
//
// Safety: to raft this is a slow network that occasionally doubles a request (the first may have
// arrived), which it tolerates. Every request that is sent is one that raft sent, in the same term, and
// no answer is changed. Liveness: raft's goroutine for this follower waits, and no other. It is released
// when leadership or membership end, and before a transfer of leadership (StopRetrying), in which raft
// waits for that goroutine.
type retrier struct {
	link *raftLink

	mu      sync.Mutex                      // protects the fields below
	next    map[raft.ServerID]chan struct{} // closed by the next heartbeat that gets through
	stopped uint64                          // up to this term nothing is retried
}

func newRetrier(link *raftLink) *retrier {
	return &retrier{link: link, next: map[raft.ServerID]chan struct{}{}}
}

// reached notes that a heartbeat has got through to a follower.
func (r *retrier) reached(id raft.ServerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseLocked(id)
}

func (r *retrier) releaseLocked(id raft.ServerID) {
	if ch := r.next[id]; ch != nil {
		close(ch)
		delete(r.next, id)
	}
}

// wait waits, after a request of term to a follower has failed, until the follower is in reach again. It
// returns false when raft should see the failure.
func (r *retrier) wait(id raft.ServerID, term uint64) (again bool) {
	r.mu.Lock()
	ch, stopped := r.next[id], term <= r.stopped
	if ch == nil {
		ch = make(chan struct{})
		r.next[id] = ch
	}
	r.mu.Unlock()
	tick := time.NewTicker(retryCheck)
	defer tick.Stop()
	for !stopped && r.leads(id, term) {
		select {
		case <-ch:
			r.mu.Lock()
			defer r.mu.Unlock()
			return term > r.stopped
		case <-r.link.done:
			return false
		case <-tick.C:
		}
	}
	return false
}

// may reports whether a request of term to a follower still makes sense.
func (r *retrier) may(id raft.ServerID, term uint64) bool {
	r.mu.Lock()
	stopped := term <= r.stopped
	r.mu.Unlock()
	return !stopped && r.leads(id, term)
}

// leads reports whether this server leads in term and the other one belongs to the ensemble.
func (r *retrier) leads(id raft.ServerID, term uint64) bool {
	x := r.link.raft.Load()
	return x != nil && x.State() == raft.Leader && x.CurrentTerm() == term && r.link.member(id)
}

// stopRetrying is Transport.StopRetrying.
func (r *retrier) stopRetrying() {
	x := r.link.raft.Load()
	if x == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = max(r.stopped, x.CurrentTerm())
	for id := range r.next {
		r.releaseLocked(id)
	}
}
