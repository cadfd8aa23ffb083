package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// maxAppendEntries is how many entries raft puts into a request if it has them.
var maxAppendEntries = raft.DefaultConfig().MaxAppendEntries

// snapshotReceivers has the followers that were sent a snapshot and have not caught up since.
//
// A follower that needs entries which the log no longer has is sent a snapshot, and then needs the log
// from there on. If the leader shortens its log meanwhile, it has to send the next snapshot, and with a
// large state and many writes the next, without end. So the leader asks Transport.CatchingUp first.
type snapshotReceivers struct {
	mu   sync.Mutex               // protects the field below
	sent map[raft.ServerID]uint64 // the term of the snapshot
}

// sending notes that a follower is being sent a snapshot.
func (s *snapshotReceivers) sending(id raft.ServerID, term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[raft.ServerID]uint64{}
	}
	s.sent[id] = term
}

// appended notes how a request with entries ended. A request that was not full held all the rest of the
// log.
func (s *snapshotReceivers) appended(id raft.ServerID, entries int, success bool) {
	if success && entries >= maxAppendEntries {
		return
	}
	s.forget(id)
}

// forget notes that a follower has caught up, or cannot: one out of reach is not waited for.
func (s *snapshotReceivers) forget(id raft.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sent, id)
}

// any reports whether there is such a follower in a term.
func (s *snapshotReceivers) any(term uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.sent {
		if t == term {
			return true
		}
	}
	return false
}
