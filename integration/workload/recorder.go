package workload

import (
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/znode"
)

// recorder gathers the history of one window.
type recorder struct {
	begin time.Time // all moments of the history are since then

	mu       sync.Mutex // protects the fields below
	history  check.History
	sessions map[znode.SessionID]*check.Session
	closing  map[znode.SessionID]bool // their clients have asked for it, perhaps in vain
	nextOp   int
	nextConn int
	answers  []Answer
}

// Answer is one request, for the report.
type Answer struct {
	At, Took time.Duration
	OK       bool // answered, be it with an error of the protocol
}

func newRecorder() *recorder {
	return &recorder{begin: time.Now(), sessions: map[znode.SessionID]*check.Session{},
		closing: map[znode.SessionID]bool{}}
}

func (r *recorder) since(t time.Time) time.Duration { return t.Sub(r.begin) }

func (r *recorder) connID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextConn++
	return r.nextConn
}

// add records an operation, whose ID it sets.
func (r *recorder) add(o check.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextOp++
	o.ID = r.nextOp
	r.history.Ops = append(r.history.Ops, o)
	r.answers = append(r.answers,
		Answer{At: o.Call, Took: o.Return - o.Call, OK: o.Outcome != check.Unknown})
}

func (r *recorder) event(e check.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Events = append(r.history.Events, e)
}

func (r *recorder) hold(h check.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Holds = append(r.history.Holds, h)
}

func (r *recorder) opened(id znode.SessionID, client int, timeout time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[id] = &check.Session{ID: id, Client: client, Timeout: timeout}
}

// heard notes that a write of the session was answered, sent at a moment: until
// the timeout after it the session must live.
func (r *recorder) heard(id znode.SessionID, sent time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	s.NotBefore = max(s.NotBefore, sent+s.Timeout)
}

// close notes that a client is about to close its session.
func (r *recorder) close(id znode.SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing[id] = true
}

// ended records that a session has ended. One whose close was not answered may have been
// closed, which is not too early for its timeout.
func (r *recorder) ended(id znode.SessionID, how check.End, at time.Duration, zxid znode.Zxid) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	if r.closing[id] {
		how = check.Closed
	}
	s.Ended, s.EndedAt, s.EndZxid = how, at, zxid
}

// end of a session, as known so far.
func (r *recorder) end(id znode.SessionID) check.End {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id].Ended
}
