package raftlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/repeats"
)

// noteEvery is how old the high-water file may be. Writing it after every sync would cost as much
// as the sync (docs/adr/0013).
const noteEvery = 100 * time.Millisecond

// maintenance does the work for which no append should wait, on its goroutine: it prepares the next segment, removes
// old ones, and notes in the high-water file how far the log is durable.
type maintenance struct {
	*contents
	directory *directory // the goroutine's own while it runs
	wakeup    chan struct{}
	stop      chan struct{} // closed by Close
	noteTimer *time.Timer   // reset by the one who holds mu
	repeats   repeats.Filter

	// contents.mu protects the fields below.
	wantSegment bool   // prepare a segment if there is none
	least       int64  // its least length in bytes
	attempts    uint64 // preparations that ended, successfully or not
	failure     error  // of the last one
	wantDrop    bool   // remove the segments that hold nothing
	noted       position
	noteDue     bool // the timer is set
	idle        bool // nothing was left to do at the last check
}

func newMaintenance(c *contents, d *directory) *maintenance {
	m := &maintenance{contents: c, directory: d, wakeup: make(chan struct{}, 1), stop: make(chan struct{})}
	m.noteTimer = time.AfterFunc(noteEvery, m.wake)
	return m
}

// wake never blocks: one pending wake-up is enough.
func (m *maintenance) wake() {
	select {
	case m.wakeup <- struct{}{}:
	default:
	}
}

// maintain works until Close.
func (m *maintenance) maintain() {
	defer m.noteTimer.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-m.wakeup:
		}
		m.setIdle(false)
		m.dropSegments()
		m.prepareSegment()
		m.noteHighWater()
		m.setIdle(true)
	}
}

func (m *maintenance) setIdle(idle bool) {
	m.mu.Lock()
	m.idle = idle
	m.cond.Broadcast()
	m.mu.Unlock()
}

// takePrepared makes the prepared segment the last one in use. Without one it waits for a
// preparation and returns its error, such as a full disk's; every call tries again. Later
// segments have at least this many bytes.
func (m *maintenance) takePrepared(least int64) (*segment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.least = least
	if len(m.prepared) == 0 {
		before := m.attempts
		m.wantSegment = true
		m.wake()
		for len(m.prepared) == 0 && m.attempts == before && m.err == nil {
			m.cond.Wait()
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	if len(m.prepared) == 0 {
		return nil, m.failure
	}
	g := m.prepared[0]
	m.prepared = m.prepared[1:]
	m.segments = append(m.segments[:len(m.segments):len(m.segments)], g)
	m.wantSegment = true
	m.wake()
	return g, nil
}

func (m *maintenance) prepareSegment() {
	m.mu.Lock()
	want := m.wantSegment && len(m.prepared) == 0 && m.err == nil
	m.mu.Unlock()
	if !want {
		return
	}
	g, err := m.newSegment()
	if err != nil && !errors.Is(err, errStopped) {
		m.warn("cannot prepare the next raft log segment", "dir", m.dir, "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wantSegment = false
	m.attempts++
	m.failure = err
	if g != nil {
		m.prepared = append(m.prepared, g)
	}
	m.cond.Broadcast()
}

// nextSize is the length of the next segment in bytes: about that of the whole log, so that a short log takes
// little space, a long one rolls rarely, and one that was long becomes short again.
func (m *maintenance) nextSize() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	want := m.least
	if !m.span.empty() {
		want = max(want, m.bytesFromLocked(m.index.get(m.span.first)))
	}
	size := int64(firstSegmentSize)
	for size < want {
		size *= 2 // a multiple of blockSize
	}
	return min(size, m.directory.opt.SegmentSize)
}

// newSegment creates the segment after the last one and names it in the manifest.
func (m *maintenance) newSegment() (*segment, error) {
	g, err := m.directory.create(m.nextSize(), m.stop)
	if err != nil {
		return nil, err
	}
	next := m.directory.manifest
	next.last = g.id
	named, err := m.commit(next)
	switch {
	case err == nil:
		return g, nil
	case named:
		// The manifest may name the file, so keep it, but do not use it.
		return nil, errors.Join(err, g.release())
	default:
		return nil, errors.Join(err, g.discard(m.directory.fs))
	}
}

// commit makes next the manifest, with the current high-water mark. A failure that leaves open which
// manifest counts is lasting.
func (m *maintenance) commit(next manifest) (committed bool, err error) {
	m.mu.RLock()
	next.highWater = max(next.highWater, m.durable)
	m.mu.RUnlock()
	if committed, err = m.directory.commit(next); committed && err != nil {
		err = m.fail(fmt.Errorf("raftlog: %w", err))
	}
	return committed, err
}

// syncedLocked notes that a sync has made records durable.
func (m *maintenance) syncedLocked() {
	if m.wantDrop {
		m.wake()
	}
	if !m.noteDue {
		m.noteDue = true
		m.noteTimer.Reset(noteEvery)
	}
}

// requestDrop asks the maintenance goroutine to remove segments without entries.
func (m *maintenance) requestDrop() {
	m.mu.Lock()
	m.wantDrop = true
	m.mu.Unlock()
	m.wake()
}

// dropSegments removes the segments before the one of the first entry, or all but the last one if
// there is no entry. The deletion that freed them is durable. The manifest goes first: a segment
// that it names and that does not exist means damage.
func (m *maintenance) dropSegments() {
	m.mu.Lock()
	// A deletion that is not durable yet must not remove a file: after a power cut its entries
	// would be missing. The sync that makes it durable wakes this goroutine again.
	if !m.wantDrop || m.err != nil || m.durable < m.deletedAt || len(m.segments) == 0 {
		m.mu.Unlock()
		return
	}
	m.wantDrop = false
	// Nor may it remove a segment that a sync still has to cover.
	keep := min(m.segments[len(m.segments)-1].id, m.durable.segment())
	if !m.span.empty() {
		keep = min(keep, m.index.get(m.span.first).segment())
	}
	gone := append([]*segment(nil), m.segments[:keep-m.segments[0].id]...)
	m.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	next := m.directory.manifest
	next.first = keep
	if _, err := m.commit(next); err != nil {
		m.warn("cannot drop old raft log segments", "dir", m.dir, "error", err)
		return
	}
	m.mu.Lock()
	m.segments = append([]*segment(nil), m.segments[len(gone):]...)
	m.mu.Unlock()
	for _, g := range gone {
		m.closeQuietly(g)
		if err := m.directory.fs.Remove(g.path); err != nil {
			m.warn("cannot remove an old raft log segment", "file", g.path, "error", err)
		}
	}
	if err := m.directory.fs.SyncDir(m.dir); err != nil {
		m.warn("cannot sync the raft log directory", "dir", m.dir, "error", err)
	}
}

// noteHighWater writes to the high-water file how far the log is durable. It does not sync: after
// a power cut the file may be older than noteEvery, or torn. With it, recovery distinguishes a
// lost or damaged end of the log from a torn one.
func (m *maintenance) noteHighWater() {
	m.mu.Lock()
	p := m.durable
	news := p > m.noted
	m.noted = p
	m.noteDue = false
	m.mu.Unlock()
	if !news {
		return
	}
	if err := m.directory.noteHighWater(p); err != nil {
		m.warn("cannot note the raft log's high-water mark", "dir", m.dir, "error", err)
	}
}

// warn logs failed maintenance, but not each time: every append tries it again.
func (m *maintenance) warn(msg string, args ...any) {
	if pass, leftOut := m.repeats.Pass(msg); pass {
		m.logger.Warn(msg, append(args, "left_out", leftOut)...)
	}
}
