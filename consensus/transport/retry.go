package transport

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// While a follower cannot be reached every request to it fails at once, and raft waits before the
// next one, twice as long each time, up to ten seconds (its replicateTo). A follower that comes back
// then waits as long for its first entry, and an ensemble of three has no server to spare
// meanwhile. Heartbeats fail as well, but are tried at least twice in a heartbeat timeout.
//
// So raft does not hear of a failed AppendEntries: it is sent again when the next heartbeat has got
// through. An outage, however long, is a request to raft that takes long, and nobody waits until raft
// tries again by itself, after its CommitTimeout. Of a snapshot that could not be sent raft hears then.
//
// Safety: to raft this is a slow network that doubles a request now and then (the first may have
// arrived), which it tolerates. Nothing is sent that raft did not send, in the term in which it did, and
// no answer is changed. Liveness: raft's goroutine for this follower is held, and nobody else. It is let
// go when leadership or membership end, and before a transfer of leadership (Hurry), in which raft waits
// for that goroutine.

// holdCheck is how often it is looked whether waiting has become pointless. Only while a
// follower is out of reach.
const holdCheck = 100 * time.Millisecond

// holder keeps failures from raft.
type holder struct {
	t *Transport

	mu      sync.Mutex                      // protects the fields below
	next    map[raft.ServerID]chan struct{} // closed by the next heartbeat that gets through
	hurried uint64                          // up to this term nothing is held
}

func newHolder(t *Transport) *holder {
	return &holder{t: t, next: map[raft.ServerID]chan struct{}{}}
}

// reached notes that a heartbeat has got through to a follower.
func (h *holder) reached(id raft.ServerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releaseLocked(id)
}

func (h *holder) releaseLocked(id raft.ServerID) {
	if ch := h.next[id]; ch != nil {
		close(ch)
		delete(h.next, id)
	}
}

// failed waits, after a request of term to a follower has failed, until the follower is in reach again. It
// returns false when raft should hear of the failure.
func (h *holder) failed(id raft.ServerID, term uint64) (again bool) {
	h.mu.Lock()
	ch, hurried := h.next[id], term <= h.hurried
	if ch == nil {
		ch = make(chan struct{})
		h.next[id] = ch
	}
	h.mu.Unlock()
	tick := time.NewTicker(holdCheck)
	defer tick.Stop()
	for !hurried && h.leads(id, term) {
		select {
		case <-ch:
			h.mu.Lock()
			defer h.mu.Unlock()
			return term > h.hurried
		case <-h.t.done:
			return false
		case <-tick.C:
		}
	}
	return false
}

// leads reports whether this server leads in term and the other one belongs to the ensemble.
func (h *holder) leads(id raft.ServerID, term uint64) bool {
	r := h.t.raft.Load()
	return r != nil && r.State() == raft.Leader && r.CurrentTerm() == term && h.t.member(id)
}

// Hurry has raft hear of every failure at once for the rest of the current term, of those that
// are held, too. It must come before a transfer of leadership and before raft's shutdown, which
// wait for the goroutines that are held otherwise.
func (t *Transport) Hurry() {
	r := t.raft.Load()
	if r == nil {
		return
	}
	h := t.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hurried = max(h.hurried, r.CurrentTerm())
	for id := range h.next {
		h.releaseLocked(id)
	}
}
