package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// A follower that the log no longer reaches back to is sent a snapshot, and needs the log from there
// on when it has restored it. A leader that shortens its log meanwhile has to send the next snapshot,
// and with a large state and many writes the next, without end. So it asks CatchingUp first.

// maxAppendEntries is how many entries raft puts into a request if it has them.
var maxAppendEntries = raft.DefaultConfig().MaxAppendEntries

// behind knows the followers that were sent a snapshot and have not caught up since.
type behind struct {
	mu   sync.Mutex               // protects the field below
	sent map[raft.ServerID]uint64 // the term of the snapshot
}

// snapshot notes that a follower is being sent a snapshot.
func (b *behind) snapshot(id raft.ServerID, term uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent == nil {
		b.sent = map[raft.ServerID]uint64{}
	}
	b.sent[id] = term
}

// appended notes how a request with entries ended. One that was not full held all there was.
func (b *behind) appended(id raft.ServerID, entries int, success bool) {
	if success && entries >= maxAppendEntries {
		return
	}
	b.forget(id)
}

// forget notes that a follower has caught up, or cannot: whoever is out of reach is not waited for.
func (b *behind) forget(id raft.ServerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sent, id)
}

// in reports whether there is any such follower in a term.
func (b *behind) in(term uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.sent {
		if t == term {
			return true
		}
	}
	return false
}

// CatchingUp reports whether this server leads and a follower that it has sent a snapshot, or is
// sending one, needs the log behind it.
func (t *Transport) CatchingUp() bool {
	r := t.raft.Load()
	return r != nil && r.State() == raft.Leader && t.behind.in(r.CurrentTerm())
}
