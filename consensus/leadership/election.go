package leadership

import (
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// Election is the newest change of leadership that one server has been through.
type Election struct {
	Leader state.ServerID // who won
	Term   uint64
	Ended  time.Time // when this server first saw it serve; zero: there has been no election since the start
	// Outage is for how long it had seen no leader serve: at most so long nobody was served. An idle leader is seen to
	// serve four times a tick.
	Outage time.Duration
}

// Elections measures them by the signs that a leader serves.
type Elections struct {
	mu     sync.Mutex // protects the fields below
	term   uint64     // of the last sign; 0: there was none
	last   time.Time  // when it came
	newest Election
}

// sign notes that the leader of a term serves at this moment.
func (e *Elections) sign(leader state.ServerID, term uint64, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if term < e.term {
		return
	}
	if term > e.term && e.term > 0 {
		e.newest = Election{leader, term, now, now.Sub(e.last)}
	}
	e.term, e.last = term, now
}

// Newest returns the newest election.
func (e *Elections) Newest() Election {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newest
}

// Sign returns the term of the last sign that a leader serves; 0: there was none.
func (e *Elections) Sign() (term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term
}
