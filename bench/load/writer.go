package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Writer is a client that sets one znode of its own over and over, one write at a time, and comes back to
// its session at another host when a connection ends. As nobody else writes the znode, its version counts
// the writes: an acknowledgement whose version is not the next one shows that a write was lost, or done
// twice. Without a znode it sends pings only, as a client does that has nothing to say.
//
// Run is for one goroutine; the other methods are for any.
type Writer struct {
	home
	path  string
	pause time.Duration // between two requests

	mu      sync.Mutex // protects the fields below
	last    time.Time  // the last acknowledgement
	version int64      // of it; below 0: not known yet
	maybe   int64      // writes since then whose outcome is unknown
	report  WriterReport
}

// WriterReport is what a Writer has met so far, or since Mark where it says so.
type WriterReport struct {
	Acks    int      // writes, or pings, that were answered
	Unknown int      // whose answer never came
	Longest Gap      // between two acknowledgements, since Mark
	Expired int      // sessions, since Mark
	Lost    string   // the host whose connection was the first to end since Mark; "": none
	Wrong   []string // error codes, and acknowledgements of which writes were lost or done twice; at most maxNotes
	// Version is that of the last acknowledged write, and Most what it may be with those of unknown outcome.
	Version, Most int64
}

// Gap is a time without an acknowledgement.
type Gap struct{ From, To time.Time }

// Length is how long it was.
func (g Gap) Length() time.Duration { return g.To.Sub(g.From) }

// maxNotes bounds Wrong.
const maxNotes = 20

// NewWriter connects to the first host and creates the znode if it is not there. An empty path is none.
func NewWriter(
	ctx context.Context, hosts []string, path string, pause, timeout time.Duration,
) (*Writer, error) {
	c, err := connect(ctx, hosts[0], timeout, session{})
	if err != nil {
		return nil, err
	}
	w := &Writer{home: home{hosts: hosts, conn: c, timeout: timeout}, path: path, pause: pause, version: -1}
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

// Run writes until ctx ends, and then closes the session.
func (w *Writer) Run(ctx context.Context) {
	for ctx.Err() == nil && (w.conn != nil || w.comeBack(ctx, w.expired)) {
		if err := w.write(); err != nil {
			w.lost()
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
		_ = w.conn.closeSession() // what is broken has no session to end in good order
	}
}

// write sends one request and waits for the answer; the error is that of the connection.
func (w *Writer) write() error {
	w.expect(time.Now())
	if w.path == "" {
		if _, err := w.conn.nc.Write(w.conn.appendPing(nil)); err != nil {
			return err
		}
		_, err := w.conn.frame()
		if err == nil {
			w.acknowledged(znode.AnyVersion)
		}
		return err
	}
	a, err := w.conn.do(wire.OpSetData, &wire.SetDataRequest{Path: w.path, Version: znode.AnyVersion})
	var code znode.Error
	switch {
	case errors.As(err, &code):
		w.refused(code)
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
	w.acknowledged(response.Stat.Version)
	return nil
}

// acknowledged notes an answer, and compares the version with those that are possible.
func (w *Writer) acknowledged(v znode.Version) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Acks++
	if gap := (Gap{w.last, now}); !w.last.IsZero() && gap.Length() > w.report.Longest.Length() {
		w.report.Longest = gap
	}
	w.last = now
	if v == znode.AnyVersion {
		return
	}
	version := int64(v)
	if before := w.version; before >= 0 && (version <= before || version > before+1+w.maybe) {
		w.wrong("version %d acknowledged after %d, with %d writes of unknown outcome", version, before, w.maybe)
	}
	w.version, w.maybe = version, 0
}

// wrong notes what is wrong.
func (w *Writer) wrong(format string, args ...any) {
	if len(w.report.Wrong) < maxNotes {
		w.report.Wrong = append(w.report.Wrong, w.path+": "+fmt.Sprintf(format, args...))
	}
}

func (w *Writer) refused(code znode.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.maybe++ // some codes do not say whether it was done
	w.wrong("a write was refused: %v", code)
}

func (w *Writer) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.maybe++
	w.report.Unknown++
	if w.report.Lost == "" {
		w.report.Lost = w.hosts[w.at]
	}
}

func (w *Writer) expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Expired++
}

// Mark lets what is "since Mark" begin now; a gap counts if it ends later.
func (w *Writer) Mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Longest, w.report.Lost, w.report.Expired = Gap{}, "", 0
}

// Report is what there is so far.
func (w *Writer) Report() WriterReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.report
	r.Version, r.Most = w.version, max(0, w.version)+w.maybe
	return r
}

// Close ends the session of a Writer that does not run.
func (w *Writer) Close() error { return w.conn.closeSession() }

// Versions asks a server for the versions of znodes, after a sync.
func Versions(ctx context.Context, host string, paths []string, timeout time.Duration) (all []int64, err error) {
	c, err := connect(ctx, host, timeout, session{})
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
