package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// truth is what the log has done, as the first server that applied it has told, and what the
// leaders' clocks have decided.
type truth struct {
	start time.Time

	mu       sync.Mutex // protects the fields below
	changes  []check.Change
	first    map[znode.Zxid]int // where a transaction's changes begin
	sessions map[znode.SessionID]*check.Session
	order    []znode.SessionID
	leads    map[uint64]time.Duration
	touched  map[touch]time.Duration
	decided  map[touch]decision
	answered map[znode.SessionID]answers
}

// answers are what a client knows of when it was heard.
type answers struct {
	since  time.Duration // since then, never with more than a third of the timeout in between
	last   time.Duration
	steady time.Duration // the last one after a whole timeout like that; 0: none
}

type touch struct {
	term uint64
	id   znode.SessionID
}

// decision is a leader's to let a session expire: when, and when it might at the earliest.
type decision struct{ at, notBefore time.Duration }

func newTruthLog() *truth {
	return &truth{
		first: map[znode.Zxid]int{}, sessions: map[znode.SessionID]*check.Session{},
		leads: map[uint64]time.Duration{}, touched: map[touch]time.Duration{},
		decided: map[touch]decision{}, answered: map[znode.SessionID]answers{},
	}
}

// reader is one life's way through the log.
type reader struct {
	t      *truth
	server int
	zxid   znode.Zxid
	k      int // changes of zxid that this life has seen
}

func (t *truth) reader(server int) *reader { return &reader{t: t, server: server} }

// see compares a change with what another server, or an earlier life, has told about the same
// transaction; the first to tell is believed. It says what differs.
func (r *reader) see(c check.Change) string {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Zxid < r.zxid {
		return fmt.Sprintf("a change of %v was applied after %v", c.Zxid, r.zxid)
	}
	if c.Zxid > r.zxid {
		r.zxid, r.k = c.Zxid, 0
	}
	last := znode.Zxid(0)
	if n := len(t.changes); n > 0 {
		last = t.changes[n-1].Zxid
	}
	begin, known := t.first[c.Zxid]
	switch {
	case !known && c.Zxid < last:
		return fmt.Sprintf("applied %+v, which no other server has; they are at %v", c, last)
	case !known:
		begin = len(t.changes)
		t.first[c.Zxid] = begin
	}
	at := begin + r.k
	r.k++
	if at == len(t.changes) {
		t.changes = append(t.changes, c)
		return ""
	}
	if t.changes[at] != c {
		return fmt.Sprintf("applied %+v, where another server applied %+v", c, t.changes[at])
	}
	return ""
}

func (t *truth) now() time.Duration { return time.Since(t.start) }

func (t *truth) opened(x *session.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[x.ID] == nil {
		t.sessions[x.ID] = &check.Session{ID: x.ID, Timeout: x.Timeout}
		t.order = append(t.order, x.ID)
	}
}

func (t *truth) attached(x *session.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[x.ID]; s != nil {
		s.Timeout = x.Timeout
	}
}

func (t *truth) closed(id znode.SessionID, expired bool, zxid znode.Zxid) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil || s.Ended != check.Alive {
		return
	}
	s.Ended, s.EndedAt, s.EndZxid = check.Closed, t.now(), zxid
	if expired {
		s.Ended = check.Expired
		if d, ok := t.decided[touch{uint64(zxid) >> 32, id}]; ok {
			s.EndedAt, s.NotBefore = d.at, d.notBefore
		}
	}
}

func (t *truth) lead(term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term != 0 {
		t.leads[term] = t.now()
	}
}

// heard notes that a leader has received a session's heartbeat.
func (t *truth) heard(term uint64, id znode.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term != 0 {
		t.touched[touch{term, id}] = t.now()
	}
}

// told notes that a client was answered by a server: it knows that its heartbeat was heard there.
func (t *truth) told(id znode.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, a, s := t.now(), t.answered[id], t.sessions[id]
	if s == nil {
		return
	}
	if now-a.last > s.Timeout/3 {
		a.since = now
	}
	if a.last = now; now-a.since >= s.Timeout {
		a.steady = now
	}
	t.answered[id] = a
}

// deciding notes that a leader lets a session expire, and when it might at the earliest: a full
// timeout after it began to lead, or last heard of the session; and, whatever became of the news,
// a sixth of the timeout after an answer to a client that is heard every third, as clients must see to.
// For a server that has lost the leader keeps its clients for half of their timeout
// (server.Config.Grace), of which the leader had heard at most a third before the loss, so that they
// learn first. A tick is for the news that a dying server takes along.
func (t *truth) deciding(id znode.SessionID, term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return
	}
	key := touch{term, id}
	earliest := max(t.leads[term], t.touched[key]) + s.Timeout
	if a := t.answered[id]; a.steady > 0 {
		earliest = max(earliest, a.steady+s.Timeout/6-tick)
	}
	if _, ok := t.decided[key]; !ok {
		t.decided[key] = decision{t.now(), earliest}
	}
}

// endOf is how a session has ended.
func (t *truth) endOf(id znode.SessionID) check.End {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil {
		return s.Ended
	}
	return check.Alive
}

// recorder gathers what the clients see.
type recorder struct {
	mu         sync.Mutex // protects the fields below
	ops        []*check.Op
	events     []check.Event
	holds      []check.Hold
	conns      int
	violations []check.Violation
}

func newRecorder() *recorder { return &recorder{} }

func (r *recorder) nextConn() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns++
	return r.conns
}

// call notes that an operation is asked for.
func (r *recorder) call(o *check.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.ID = len(r.ops) + 1
	o.Outcome = check.Unknown
	r.ops = append(r.ops, o)
}

func (r *recorder) event(e check.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) hold(h check.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = append(r.holds, h)
}

func (r *recorder) violation(guarantee, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violations = append(r.violations, check.Violation{Guarantee: guarantee, What: fmt.Sprintf(format, args...)})
}

// history is everything, when all is over.
func (w *world) history(final []check.Znode, zxid znode.Zxid) *check.History {
	h := &check.History{Final: final}
	w.record.mu.Lock()
	defer w.record.mu.Unlock()
	for _, o := range w.record.ops {
		h.Ops = append(h.Ops, *o)
	}
	h.Events, h.Holds = w.record.events, w.record.holds
	t := w.truth
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.changes {
		if zxid == 0 || c.Zxid <= zxid {
			h.Changes = append(h.Changes, c)
		}
	}
	for _, id := range t.order {
		s := *t.sessions[id]
		if zxid != 0 && s.EndZxid > zxid {
			s.Ended, s.EndZxid = check.Alive, 0
		}
		h.Sessions = append(h.Sessions, s)
	}
	return h
}
