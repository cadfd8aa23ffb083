package server

import (
	"sync"

	"github.com/zk-lite/zk-lite/znode"
)

// sessionEnds wakes those that wait for the end of a session.
type sessionEnds struct {
	mu      sync.Mutex // protects the field below
	waiting map[znode.SessionID]map[*sessionEnd]struct{}
}

// sessionEnd is one that waits.
type sessionEnd struct{ done chan struct{} }

func (t *sessionEnds) add(id znode.SessionID, e *sessionEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[id] == nil {
		t.waiting[id] = map[*sessionEnd]struct{}{}
	}
	t.waiting[id][e] = struct{}{}
}

func (t *sessionEnds) remove(id znode.SessionID, e *sessionEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.waiting[id], e); len(t.waiting[id]) == 0 {
		delete(t.waiting, id)
	}
}

// end wakes those that wait for the end of the sessions of which ended is true.
func (t *sessionEnds) end(ended func(znode.SessionID) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, waiting := range t.waiting {
		if ended(id) {
			t.wakeLocked(id, waiting)
		}
	}
}

// endOne is end for one session.
func (t *sessionEnds) endOne(id znode.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked(id, t.waiting[id])
}

func (t *sessionEnds) wakeLocked(id znode.SessionID, waiting map[*sessionEnd]struct{}) {
	for e := range waiting {
		close(e.done)
	}
	delete(t.waiting, id)
}
