package raftlog

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// noteEvery is how old the high-water file may be. To write it after every sync would cost as much
// as the sync (docs/adr/0013).
const noteEvery = 100 * time.Millisecond

// maintenanceState is what the maintenance goroutine and the others exchange, under Store.mu.
type maintenanceState struct {
	wantSegment bool   // prepare a segment if there is none
	least       int64  // bytes that it must have
	attempts    uint64 // preparations ended, well or not
	err         error  // of the last one
	wantDrop    bool   // remove the segments that hold nothing
	noted       position
	noteDue     bool // the timer is set
	idle        bool // nothing was left to do at the last check
}

// wakeMaintenance never blocks: one pending wake-up is enough.
func (s *Store) wakeMaintenance() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// runMaintenance does the work for which no append should wait: it prepares the next segment, removes old ones,
// and notes in the high-water file how far the log is durable.
func (s *Store) runMaintenance() {
	defer s.wg.Done()
	defer s.noteTimer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		}
		s.setIdle(false)
		s.dropSegments()
		s.prepareSegment()
		s.noteHighWater()
		s.setIdle(true)
	}
}

func (s *Store) setIdle(idle bool) {
	s.mu.Lock()
	s.maintenance.idle = idle
	s.cond.Broadcast()
	s.mu.Unlock()
}

// takePrepared makes the prepared segment the last one in use. Without one it waits for a
// preparation and returns its error, such as a full disk's; every call tries again.
// Segments that are prepared from now on have at least so many bytes.
func (s *Store) takePrepared(least int64) (*segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maintenance.least = least
	if len(s.prepared) == 0 {
		before := s.maintenance.attempts
		s.maintenance.wantSegment = true
		s.wakeMaintenance()
		for len(s.prepared) == 0 && s.maintenance.attempts == before && s.err == nil {
			s.cond.Wait()
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if len(s.prepared) == 0 {
		return nil, s.maintenance.err
	}
	g := s.prepared[0]
	s.prepared = s.prepared[1:]
	s.segments = append(s.segments[:len(s.segments):len(s.segments)], g)
	s.maintenance.wantSegment = true
	s.wakeMaintenance()
	return g, nil
}

func (s *Store) prepareSegment() {
	s.mu.Lock()
	want := s.maintenance.wantSegment && len(s.prepared) == 0 && s.err == nil
	s.mu.Unlock()
	if !want {
		return
	}
	g, err := s.newSegment()
	if err != nil && !errors.Is(err, errStopped) {
		s.warn("cannot prepare the next raft log segment", "dir", s.dir, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maintenance.wantSegment = false
	s.maintenance.attempts++
	s.maintenance.err = err
	if g != nil {
		s.prepared = append(s.prepared, g)
	}
	s.cond.Broadcast()
}

// nextSize is how long the next segment is to be: about as long as the whole log, so that a short log takes
// little space, a long one rolls rarely, and one that was long becomes short again.
func (s *Store) nextSize() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	want := s.maintenance.least
	if !s.span.empty() {
		want = max(want, s.bytesFromLocked(s.index.get(s.span.first)))
	}
	size := int64(firstSegmentSize)
	for size < want {
		size *= 2 // a multiple of blockSize
	}
	return min(size, s.opt.SegmentSize)
}

// newSegment creates the segment after the last one and names it in the manifest.
func (s *Store) newSegment() (*segment, error) {
	if s.manifest.last == math.MaxUint32 {
		return nil, errors.New("raftlog: segment numbers are used up")
	}
	g, err := createSegment(s.fs, s.dir, s.manifest.last+1, s.nextSize(), s.id, s.stop)
	if err != nil {
		return nil, err
	}
	if err := s.openDirectWriter(g); err != nil {
		return nil, errors.Join(err, g.discard(s.fs))
	}
	m := s.manifest
	m.last = g.id
	named, err := s.commitManifest(m)
	switch {
	case err == nil:
		return g, nil
	case named:
		// The manifest may name the file, so it must stay, but it may not be used.
		return nil, errors.Join(err, g.release())
	default:
		return nil, errors.Join(err, g.discard(s.fs))
	}
}

// commitManifest commits m with the current high-water mark. A failure that leaves open which
// manifest counts is lasting.
func (s *Store) commitManifest(m manifest) (committed bool, err error) {
	s.mu.RLock()
	m.highWater = max(m.highWater, s.durable)
	s.mu.RUnlock()
	committed, err = commitManifest(s.fs, s.dir, m)
	if err == nil {
		s.manifest = m
	} else if committed {
		err = s.fail(fmt.Errorf("raftlog: %w", err))
	}
	return committed, err
}

// requestDrop asks the maintenance goroutine to remove segments without entries.
func (s *Store) requestDrop() {
	s.mu.Lock()
	s.maintenance.wantDrop = true
	s.mu.Unlock()
	s.wakeMaintenance()
}

// dropSegments removes the segments before the one of the first entry, or all but the last one if
// there is no entry. The deletion that freed them is durable. The manifest goes first: a segment
// that it names and that does not exist means damage.
func (s *Store) dropSegments() {
	s.mu.Lock()
	// A deletion that is in memory but not durable yet must not cost a file: after a power cut
	// its entries would be missing. The sync that ends it wakes this goroutine again.
	if !s.maintenance.wantDrop || s.err != nil || s.durable < s.deletedAt || len(s.segments) == 0 {
		s.mu.Unlock()
		return
	}
	s.maintenance.wantDrop = false
	// Neither may the segment go that a sync still has to cover.
	keep := min(s.segments[len(s.segments)-1].id, s.durable.segment())
	if !s.span.empty() {
		keep = min(keep, s.index.get(s.span.first).segment())
	}
	gone := append([]*segment(nil), s.segments[:keep-s.segments[0].id]...)
	s.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	m := s.manifest
	m.first = keep
	if _, err := s.commitManifest(m); err != nil {
		s.warn("cannot drop old raft log segments", "dir", s.dir, "error", err)
		return
	}
	s.mu.Lock()
	s.segments = append([]*segment(nil), s.segments[len(gone):]...)
	s.mu.Unlock()
	for _, g := range gone {
		s.closeQuietly(g)
		if err := s.fs.Remove(g.path); err != nil {
			s.warn("cannot remove an old raft log segment", "file", g.path, "error", err)
		}
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		s.warn("cannot sync the raft log directory", "dir", s.dir, "error", err)
	}
}

// noteHighWater writes to the high-water file how far the log is durable. It is not synced: after
// a power cut the file may be older than noteEvery, or torn. With it, recovery distinguishes a
// lost or damaged end of the log from a torn one.
func (s *Store) noteHighWater() {
	s.mu.Lock()
	p := s.durable
	news := p > s.maintenance.noted
	s.maintenance.noted = p
	s.maintenance.noteDue = false
	s.mu.Unlock()
	if !news || s.highWater == nil {
		return
	}
	if err := writeFull(s.highWater, encodeHighWater(s.id, p), 0); err != nil {
		s.warn("cannot note the raft log's high-water mark", "dir", s.dir, "error", err)
	}
}

// warn logs that maintenance failed, once in a while: it is tried again with each append.
func (s *Store) warn(msg string, args ...any) {
	if pass, leftOut := s.repeats.Pass(msg); pass {
		s.logger.Warn(msg, append(args, "left_out", leftOut)...)
	}
}
