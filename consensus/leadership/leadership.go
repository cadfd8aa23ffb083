// Package leadership has who leads the ensemble, as one server knows it. Package consensus asks raft and publishes the
// answer here; the other packages read it, wait for changes, and note signs that the leader serves.
//
// It starts no goroutine. Publisher.mu and Elections.mu are each taken alone.
package leadership

import (
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// Role is a server's role in raft, by raft's name for it.
type Role string

// The roles that matter here.
const (
	Leader    Role = "Leader"
	Candidate Role = "Candidate"
)

// State is who leads, as a server knows it. It may be a moment old.
type State struct {
	Term   uint64
	Leader state.ServerID // NoServer: unknown
	Role   Role           // this server's
}

// Publisher hands the newest State to its subscribers.
type Publisher struct {
	Elections Elections

	mu         sync.Mutex // protects the fields below
	newest     State
	lastLeader state.ServerID // the last one that was known
	leaders    uint64         // how often another server was found to lead
	at         time.Time      // of the last change
	changed    chan struct{}  // closed at the next change; nil until requested
}

// New returns a Publisher of a server that knows of no leader.
func New() *Publisher {
	return &Publisher{newest: State{Leader: state.NoServer}, lastLeader: state.NoServer}
}

// Now returns the newest State.
func (p *Publisher) Now() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// Watch returns the newest State, and a channel that is closed at its next change.
func (p *Publisher) Watch() (State, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.newest, p.changed
}

// Publish reports whether s is a change.
func (p *Publisher) Publish(s State) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == p.newest {
		return false
	}
	if s.Leader != p.lastLeader && s.Leader != state.NoServer {
		p.leaders++
		p.lastLeader = s.Leader
	}
	p.newest, p.at = s, time.Now()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true
}

// Changes returns how often another leader was found, and when the State last changed.
func (p *Publisher) Changes() (leaders uint64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaders, p.at
}

// NoteContact notes that a server has shown that it leads.
func (p *Publisher) NoteContact(leader state.ServerID) {
	if s := p.Now(); s.Leader == leader {
		p.Elections.sign(leader, s.Term, time.Now())
	}
}

// NoteEntry notes that an entry of a term is committed. It is a sign that the leader serves, if it is of its term.
func (p *Publisher) NoteEntry(term uint64, at time.Time) {
	if s := p.Now(); s.Term == term && s.Leader != state.NoServer {
		p.Elections.sign(s.Leader, term, at)
	}
}

// Election is the newest change of leadership that one server has been through.
type Election struct {
	Leader state.ServerID // who won
	Term   uint64
	Ended  time.Time // when this server first saw it serve; zero: there has been no election since the start
	// Outage is for how long it had seen no leader serve: at most this long no client was served. An idle leader is
	// seen to serve four times a tick.
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
