package load

import (
	"fmt"
	"sync"
	"time"
)

// Tally compares what one client is told of its writes with what it has asked for: a znode that nobody
// else writes has a version that counts the writes, so an acknowledgement whose version is not the next one
// shows that a write was lost, or done twice.
type Tally struct {
	path string

	mu      sync.Mutex // protects the fields below
	last    time.Time  // the last acknowledgement
	version int64      // of it; below 0: not known yet
	maybe   int64      // writes since then whose outcome is unknown
	times   *Histogram // of the times between two acknowledgements; nil: of none
	report  TallyReport
}

// TallyReport is what a client has met since Mark; Acks, Wrong, Version and Most are since its begin.
type TallyReport struct {
	Acks    int      // writes, or pings, that were answered
	Longest Gap      // between two acknowledgements; it may have begun before Mark
	Lost    int      // requests whose answer never came
	Unread  int      // of these, those that the server's kernel has thrown away
	Done    int      // writes that were lost or failed, and done all the same
	First   string   // the host whose connection was the first to end with a request under way; "": none
	Sent    int      // operations that another server was to be asked for, since nothing was done
	Failed  []string // operations that failed, as their caller sees it; at most maxNotes
	Expired int      // sessions
	Wrong   []string // writes that were lost or done twice; at most maxNotes
	// Version is that of the last acknowledged write, and Most what it may be with those of unknown outcome.
	Version, Most int64
}

// Gap is a time without an acknowledgement.
type Gap struct{ From, To time.Time }

// Length is how long it was.
func (g Gap) Length() time.Duration { return g.To.Sub(g.From) }

// maxNotes bounds lists.
const maxNotes = 100

// NewTally is that of a znode; an empty path is of pings.
func NewTally(path string) *Tally { return &Tally{path: path, version: -1} }

// Path is the znode.
func (t *Tally) Path() string { return t.path }

// Pinged notes the answer to something that was no write.
func (t *Tally) Pinged() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ackedLocked()
}

func (t *Tally) ackedLocked() {
	now := time.Now()
	t.report.Acks++
	gap := Gap{t.last, now}
	t.last = now
	if gap.From.IsZero() {
		return
	}
	if gap.Length() > t.report.Longest.Length() {
		t.report.Longest = gap
	}
	if t.times != nil {
		t.times.Record(gap.Length())
	}
}

// Measure has the times between two acknowledgements go into a histogram from now on. For a client that
// never pauses they are the latencies of its writes.
func (t *Tally) Measure(h *Histogram) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times = h
}

// Acknowledged notes a write, and compares its version with those that are possible.
func (t *Tally) Acknowledged(version int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ackedLocked()
	before := t.version
	if before >= 0 && (version <= before || version > before+1+t.maybe) && len(t.report.Wrong) < maxNotes {
		t.report.Wrong = append(t.report.Wrong, fmt.Sprintf("%s: version %d acknowledged after %d, with %d writes of "+
			"unknown outcome", t.path, version, before, t.maybe))
	}
	if before >= 0 {
		t.report.Done += int(max(0, min(version-before-1, t.maybe)))
	}
	t.version, t.maybe = version, 0
}

// Failed notes an operation that failed, and may have been done all the same.
func (t *Tally) Failed(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.maybe++
	if len(t.report.Failed) < maxNotes {
		t.report.Failed = append(t.report.Failed, fmt.Sprintf("%s: %v", t.path, why))
	}
}

// SentAway notes an operation that the server has not done, and says so.
func (t *Tally) SentAway() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Sent++
}

// Lost notes a request whose connection has ended.
func (t *Tally) Lost(host string, unread bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.maybe++
	t.report.Lost++
	if unread {
		t.report.Unread++
	}
	if t.report.First == "" {
		t.report.First = host
	}
}

// Expired notes the end of a session.
func (t *Tally) Expired() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Expired++
}

// Mark lets what is "since Mark" begin now.
func (t *Tally) Mark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report = TallyReport{Acks: t.report.Acks, Wrong: t.report.Wrong}
}

// Report is what there is so far.
func (t *Tally) Report() TallyReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	r.Version, r.Most = t.version, max(0, t.version)+t.maybe
	return r
}
