package raftlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const lockName = "lock"

// Open opens the log in dir, which is created if it does not exist. It verifies every record and
// returns a *CorruptError if anything is damaged that was known durable; what is torn above that
// is cut off. When it returns, everything in the log is durable.
func Open(dir string, opt Options) (*Store, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		fs: opt.FS, dir: dir, opt: opt, logger: opt.Logger,
		writer:  make(chan struct{}, 1),
		syncing: make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		cache:   newCache(opt.CacheEntries, opt.CacheBytes),
	}
	s.cond = sync.NewCond(&s.mu)
	s.noteTimer = time.AfterFunc(noteEvery, s.wakeMaintenance)
	if err := s.openFiles(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	s.wg.Add(2)
	go s.syncer()
	go s.runMaintenance()
	if err := s.markOpened(); err != nil {
		s.stopGoroutines()
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// openFiles brings the store to the state before the record that marks the opening.
func (s *Store) openFiles() error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return fmt.Errorf("raftlog: making the directory: %w", err)
	}
	lock, err := s.fs.Lock(filepath.Join(s.dir, lockName))
	if err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	s.lock = lock
	if err := s.loadManifest(); err != nil {
		return err
	}
	r, err := s.openRecords()
	if err != nil {
		return err
	}
	// Only now: to an older manifest, which is refused above, segments that count look unused.
	if err := s.removeUnlisted(); err != nil {
		return err
	}
	return s.resume(r)
}

// openRecords opens the segments that the manifest names, and finds their records.
func (s *Store) openRecords() (*recovery, error) {
	for id := s.manifest.first; id <= s.manifest.last && id != 0; id++ {
		g, err := openSegment(s.fs, s.dir, id, s.id)
		if err != nil {
			return nil, err
		}
		s.segments = append(s.segments, g)
	}
	return s.recoverRecords()
}

// loadManifest reads the manifest, or starts a new log if the directory has none and no segments.
func (s *Store) loadManifest() error {
	path := filepath.Join(s.dir, manifestName)
	b, err := readSmall(s.fs, path, manifestSize)
	if err == nil {
		s.manifest, err = decodeManifest(b, path)
		s.id = s.manifest.store
		return err
	}
	if !isNotExist(err) {
		return fmt.Errorf("raftlog: reading the manifest: %w", err)
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return fmt.Errorf("raftlog: listing the directory: %w", err)
	}
	for _, name := range names {
		if _, ok := segmentID(name); ok {
			return &CorruptError{File: path, Reason: "the manifest is missing, segments exist"}
		}
	}
	if s.opt.MustExist {
		return &CorruptError{File: path, Reason: "the log is missing, this server has had one"}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails, see package crypto/rand
	s.id = binary.LittleEndian.Uint64(id[:])
	s.manifest = manifest{store: s.id, first: 1, last: 0}
	if _, err := commitManifest(s.fs, s.dir, s.manifest); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	return nil
}

// removeUnlisted removes segments that the manifest does not name: those prepared or dropped when
// the server stopped. Nothing in them counts.
func (s *Store) removeUnlisted() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return fmt.Errorf("raftlog: listing the directory: %w", err)
	}
	for _, name := range names {
		id, ok := segmentID(name)
		if !ok || s.manifest.first <= id && id <= s.manifest.last {
			continue
		}
		if err := s.fs.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("raftlog: removing an unused file: %w", err)
		}
	}
	return nil
}

// resume makes what recovery found the state of the store, and durable.
func (s *Store) resume(r *recovery) error {
	if err := s.rewriteVolatile(r); err != nil {
		return err
	}
	m := s.manifest
	if m.opens == math.MaxUint32 {
		return errors.New("raftlog: the log was opened too often")
	}
	m.opens++
	m.highWater = max(m.highWater, r.end)
	if _, err := commitManifest(s.fs, s.dir, m); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	s.manifest = m
	s.writeGen = uint64(m.opens) << 32
	s.openHighWater()
	if len(s.segments) == 0 {
		g, err := s.newSegment()
		if err != nil {
			return err
		}
		s.segments = append(s.segments, g)
		r.end = at(g.id, segmentHeaderSize)
	} else if err := s.openDirectWriters(r.end.segment()); err != nil {
		return err
	}
	used := int(r.end.segment()-s.segments[0].id) + 1
	s.prepared = append([]*segment(nil), s.segments[used:]...)
	s.segments = s.segments[:used:used]
	s.current, s.offset = s.segments[used-1], r.end.offset()
	s.span, s.index = r.span, r.index
	s.end, s.durable, s.syncedLast = r.end, r.end, r.span.last
	s.maintenance.wantSegment = true
	s.maintenance.wantDrop = true
	return nil
}

// openDirectWriters opens for direct writes the segments that records will go to.
func (s *Store) openDirectWriters(first uint32) error {
	for _, g := range s.segments[first-s.segments[0].id:] {
		if err := s.openDirectWriter(g); err != nil {
			return fmt.Errorf("raftlog: %w", err)
		}
	}
	return nil
}

// rewriteVolatile makes durable what recovery read above the durable mark. A process that died of
// a failed sync leaves pages that the kernel holds as clean though the disk never got them, so
// the bytes are written again; a sync alone would do nothing.
func (s *Store) rewriteVolatile(r *recovery) error {
	for _, g := range s.segments {
		from, to := int64(segmentHeaderSize), g.size
		if g.id < r.mark.segment() || g.id > r.end.segment() {
			continue
		}
		if g.id == r.mark.segment() {
			from = max(from, r.mark.offset())
		}
		if g.id == r.end.segment() {
			to = r.end.offset()
		}
		for off := from; off < to; off += zeroChunk {
			b := make([]byte, min(zeroChunk, to-off))
			err := readFull(g.file, b, off)
			if err == nil {
				err = writeFull(g.file, b, off)
			}
			if err != nil {
				return fmt.Errorf("raftlog: rewriting the end of %s: %w", g.path, err)
			}
		}
		if err := g.file.Datasync(); err != nil {
			return fmt.Errorf("raftlog: syncing %s: %w", g.path, err)
		}
	}
	return nil
}

// openHighWater opens the high-water file, which the log can do without.
func (s *Store) openHighWater() {
	path := filepath.Join(s.dir, highWaterName)
	f, err := openOrCreate(s.fs, path)
	if err != nil {
		s.logger.Warn("cannot open the raft log's high-water file", "file", path, "error", err)
		return
	}
	s.highWater = f
}

// markOpened writes a record of the new generation at the end. From then on nothing after it that
// an earlier generation left can be taken for a record, and everything before is below the durable
// mark.
func (s *Store) markOpened() error {
	acquire(s.writer)
	defer release(s.writer)
	b, err := s.begin()
	if err != nil {
		return err
	}
	if err = b.add(kindOpen, &raft.Log{}); err == nil {
		err = b.flush()
	}
	if err != nil {
		b.abandon()
		return err
	}
	err = s.syncTo(b.commit(nil, true))
	s.wakeMaintenance()
	return err
}
