package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Writer is a client that sets one znode of its own over and over, one write at a time, and resumes its
// session at another host when a connection ends. Without a znode it sends pings only, as an idle client
// does. Run is for one goroutine.
type Writer struct {
	home
	tally *Tally
	pause time.Duration // between two requests
}

// NewWriter connects to the first host and creates the znode if it is not there. An empty path is none.
func NewWriter(
	ctx context.Context, hosts []string, path string, pause, timeout time.Duration,
) (*Writer, error) {
	d := dialer{timeout: timeout}
	c, err := d.connect(ctx, hosts[0], session{})
	if err != nil {
		return nil, err
	}
	w := &Writer{home: home{hosts: hosts, conn: c, dialer: d}, tally: NewTally(path), pause: pause}
	if path == "" {
		return w, nil
	}
	w.expect(time.Now())
	_, err = c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL})
	if err != nil && !errors.Is(err, znode.ErrNodeExists) {
		c.nc.Close()
		return nil, fmt.Errorf("creating the znode of a writer: %w", err)
	}
	return w, nil
}

// Tally counts the outcomes.
func (w *Writer) Tally() *Tally { return w.tally }

// Close ends the session of a Writer that does not run.
func (w *Writer) Close() error { return w.conn.closeSession() }

// Run writes until ctx ends, and then closes the session.
func (w *Writer) Run(ctx context.Context) {
	for ctx.Err() == nil && (w.conn != nil || w.comeBack(ctx, w.tally.Expired)) {
		if err := w.write(); err != nil {
			w.tally.Lost(w.hosts[w.at], w.conn.goAway || unread(w.conn.nc, err))
			w.leave()
		}
		if w.pause > 0 {
			select {
			case <-time.After(w.pause):
			case <-ctx.Done():
			}
		}
	}
	if w.conn != nil {
		_ = w.conn.closeSession() // a broken connection has no session to close in good order
	}
}

// write sends one request and waits for the answer; the error is that of the connection.
func (w *Writer) write() error {
	w.expect(time.Now())
	if w.tally.path == "" {
		if _, err := w.conn.nc.Write(w.conn.appendPing(nil)); err != nil {
			return err
		}
		_, err := w.conn.frame()
		if err == nil {
			w.tally.Pinged()
		}
		return err
	}
	a, err := w.conn.do(wire.OpSetData, &wire.SetDataRequest{Path: w.tally.path, Version: znode.AnyVersion})
	var code znode.Error
	switch {
	case errors.As(err, &code):
		w.tally.Failed(code)
		return nil
	case err != nil:
		return err
	}
	var response wire.SetDataResponse
	r := jute.NewReader(a.body)
	response.Decode(r)
	if r.Err() != nil {
		return r.Err()
	}
	w.tally.Acknowledged(int64(response.Stat.Version))
	return nil
}

// resetSoon is how long after the end of a connection the kernel of a server on this machine takes to
// report that it has discarded data.
const resetSoon = 20 * time.Millisecond

// unread reports whether, according to the server's kernel, the program has not read the request with
// which a connection ended: the kernel resets a connection that is closed with unread data, or to which
// data arrive later.
func unread(nc net.Conn, err error) bool {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	c, ok := nc.(syscall.Conn)
	if !errors.Is(err, io.EOF) || !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	reset := false
	err = raw.Control(func(fd uintptr) { reset = resetWithin(fd, resetSoon) })
	return err == nil && reset
}

// Versions asks a server for the versions of znodes, after a sync.
func Versions(ctx context.Context, host string, paths []string, timeout time.Duration) (all []int64, err error) {
	d := dialer{timeout: timeout}
	c, err := d.connect(ctx, host, session{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.closeSession() }() // it has nothing that must end
	c.patience = timeout
	if _, err := c.do(wire.OpSync, &wire.SyncRequest{Path: znode.RootPath}); err != nil {
		return nil, err
	}
	for _, path := range paths {
		a, err := c.do(wire.OpExists, &wire.ExistsRequest{Path: path})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var response wire.ExistsResponse
		r := jute.NewReader(a.body)
		if response.Decode(r); r.Err() != nil {
			return nil, fmt.Errorf("%s: %w", path, r.Err())
		}
		all = append(all, int64(response.Stat.Version))
	}
	return all, nil
}

// Tally compares one client's answers with its writes: a znode that no one else writes has a version that
// counts the writes, so an acknowledgement whose version is not the next one shows that a write was lost,
// or done twice.
type Tally struct {
	path string

	mu      sync.Mutex // protects the fields below
	last    time.Time  // the last acknowledgement
	version int64      // of it; below 0: not known yet
	maybe   int64      // writes since then whose outcome is unknown
	times   *Histogram // of the times between two acknowledgements; nil: of none
	report  TallyReport
}

// TallyReport is a client's outcomes since Mark; Acks, Wrong, Version and Most are since its start.
type TallyReport struct {
	Acks    int      // writes, or pings, that were answered
	Longest Gap      // between two acknowledgements; it may have begun before Mark
	Lost    int      // requests that were never answered
	Unread  int      // of these, those that the server's kernel has discarded
	Done    int      // writes that were lost or failed, and done all the same
	First   string   // the host whose connection was the first to end with a request under way; "": none
	Sent    int      // operations that were refused without effect, to be sent to another server
	Failed  []string // operations that failed, as their caller sees it; at most maxNotes
	Expired int      // sessions
	Wrong   []string // writes that were lost or done twice; at most maxNotes
	// Version is that of the last acknowledged write, and Most its upper bound if all writes of unknown
	// outcome succeeded.
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

// SentAway notes an operation that the server has refused without doing it.
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

// Mark begins the time of "since Mark".
func (t *Tally) Mark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report = TallyReport{Acks: t.report.Acks, Wrong: t.report.Wrong}
}

// Report returns the counts so far.
func (t *Tally) Report() TallyReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	r.Version, r.Most = t.version, max(0, t.version)+t.maybe
	return r
}
