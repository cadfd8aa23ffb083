package raftlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"sync/atomic"
)

const (
	lockName = "lock"

	manifestName  = "manifest"
	manifestTemp  = "manifest.tmp"
	manifestMagic = "zkraftmf"
	manifestSize  = 64

	highWaterName  = "highwater"
	highWaterMagic = "zkrafthw"
	highWaterSize  = 32
)

// directory is the log on disk: its lock, its manifest, its high-water file and its segments. It has no lock of its
// own: Open uses it, then the maintenance goroutine alone, then Close.
type directory struct {
	fs        FS
	path      string
	opt       *Options
	logger    *slog.Logger
	id        uint64 // names this log in all its files
	lock      io.Closer
	manifest  manifest
	highWater File // nil if it cannot be written; it is only a hint

	park atomic.Bool // whether direct writes park their goroutines; the newest append decides
}

func newDirectory(path string, opt *Options) *directory {
	return &directory{fs: opt.FS, path: path, opt: opt, logger: opt.Logger}
}

// open takes the directory, which it creates if it does not exist, for this process.
func (d *directory) open() error {
	if err := d.fs.MkdirAll(d.path); err != nil {
		return fmt.Errorf("raftlog: making the directory: %w", err)
	}
	lock, err := d.fs.Lock(filepath.Join(d.path, lockName))
	if err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	d.lock = lock
	return d.loadManifest()
}

// close gives up what open and openHighWater took.
func (d *directory) close() error {
	var errs []error
	if d.highWater != nil {
		errs = append(errs, d.highWater.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// loadManifest reads the manifest, or starts a new log if the directory has none and no segments.
func (d *directory) loadManifest() error {
	path := filepath.Join(d.path, manifestName)
	b, err := readSmall(d.fs, path, manifestSize)
	if err == nil {
		d.manifest, err = decodeManifest(b, path)
		d.id = d.manifest.store
		return err
	}
	if !isNotExist(err) {
		return fmt.Errorf("raftlog: reading the manifest: %w", err)
	}
	names, err := d.fs.List(d.path)
	if err != nil {
		return fmt.Errorf("raftlog: listing the directory: %w", err)
	}
	for _, name := range names {
		if _, ok := segmentID(name); ok {
			return &CorruptError{File: path, Reason: "the manifest is missing, segments exist"}
		}
	}
	if d.opt.MustExist {
		return &CorruptError{File: path, Reason: "the log is missing, this server has had one"}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails, see package crypto/rand
	d.id = binary.LittleEndian.Uint64(id[:])
	d.manifest = manifest{store: d.id, first: 1, last: 0}
	if _, err := d.commit(d.manifest); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	return nil
}

// openSegments opens the segments that the manifest names. With an error it returns those that it has opened.
func (d *directory) openSegments() (all []*segment, err error) {
	for id := d.manifest.first; id <= d.manifest.last && id != 0; id++ {
		g, err := openSegment(d.fs, d.path, id, d.id)
		if err != nil {
			return all, err
		}
		all = append(all, g)
	}
	return all, nil
}

// create makes the segment after the last one. The manifest does not name it yet.
func (d *directory) create(size int64, stop <-chan struct{}) (*segment, error) {
	if d.manifest.last == math.MaxUint32 {
		return nil, errors.New("raftlog: segment numbers are used up")
	}
	g, err := createSegment(d.fs, d.path, d.manifest.last+1, size, d.id, stop)
	if err != nil {
		return nil, err
	}
	if err := d.openDirectWriter(g); err != nil {
		return nil, errors.Join(err, g.discard(d.fs))
	}
	return g, nil
}

// openDirectWriter makes g's file a directWriter, if file system and length allow it.
func (d *directory) openDirectWriter(g *segment) error {
	if d.opt.NoDirect || g.size%blockSize != 0 {
		return nil
	}
	direct, err := d.fs.OpenDirect(g.path)
	if errors.Is(err, errors.ErrUnsupported) {
		d.logger.Debug("the raft log goes through the page cache", "file", g.path, "reason", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening %s for direct writes: %w", g.path, err)
	}
	g.file = newDirectWriter(g.file, direct, &d.park)
	return nil
}

// removeUnlisted removes segments that the manifest does not name: those prepared or dropped when
// the server stopped. Nothing in them counts.
func (d *directory) removeUnlisted() error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return fmt.Errorf("raftlog: listing the directory: %w", err)
	}
	for _, name := range names {
		id, ok := segmentID(name)
		if !ok || d.manifest.first <= id && id <= d.manifest.last {
			continue
		}
		if err := d.fs.Remove(filepath.Join(d.path, name)); err != nil {
			return fmt.Errorf("raftlog: removing an unused file: %w", err)
		}
	}
	return nil
}

// commit makes m the manifest. If committed is true the new one may have replaced the old
// one even though there is an error, so nothing may be assumed about which of them counts.
func (d *directory) commit(m manifest) (committed bool, err error) {
	temp := filepath.Join(d.path, manifestTemp)
	f, err := openOrCreate(d.fs, temp)
	if err != nil {
		return false, fmt.Errorf("creating the manifest: %w", err)
	}
	err = writeFull(f, m.encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("writing the manifest: %w", err)
	}
	if err := d.fs.Rename(temp, filepath.Join(d.path, manifestName)); err != nil {
		return true, fmt.Errorf("replacing the manifest: %w", err)
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return true, fmt.Errorf("syncing directory %s: %w", d.path, err)
	}
	d.manifest = m
	d.reserveManifest(temp)
	return true, nil
}

// reserveManifest takes the space of the next manifest in advance: on a full disk the manifest must still change,
// because that is how segments are dropped. It may fail; then the next commit needs space.
func (d *directory) reserveManifest(temp string) {
	f, err := d.fs.Create(temp)
	if err != nil {
		return
	}
	if writeFull(f, make([]byte, manifestSize), 0) == nil {
		_ = f.Sync()
	}
	_ = f.Close()
}

// readHighWater returns the content of the high-water file, 0 if it is not valid.
func (d *directory) readHighWater() position {
	b, err := readSmall(d.fs, filepath.Join(d.path, highWaterName), highWaterSize)
	if err != nil {
		return 0
	}
	return decodeHighWater(b, d.id)
}

// openHighWater opens the high-water file, which is optional.
func (d *directory) openHighWater() {
	path := filepath.Join(d.path, highWaterName)
	f, err := openOrCreate(d.fs, path)
	if err != nil {
		d.logger.Warn("cannot open the raft log's high-water file", "file", path, "error", err)
		return
	}
	d.highWater = f
}

// noteHighWater writes that the log is durable up to p, without a sync.
func (d *directory) noteHighWater(p position) error {
	if d.highWater == nil {
		return nil
	}
	return writeFull(d.highWater, encodeHighWater(d.id, p), 0)
}

// manifest lists the segments that exist. It is replaced atomically and is always durable before
// anything relies on it: a segment is named before the first record goes into it, and no longer
// named before its file is removed.
type manifest struct {
	store     uint64   // random; names this log
	opens     uint32   // times the log was opened; upper half of every generation
	first     uint32   // first and last segment, prepared ones included; last = first-1: none
	last      uint32   //
	highWater position // known durable when the manifest was written
}

func (m manifest) encode() []byte {
	b := make([]byte, 0, manifestSize)
	b = append(b, manifestMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, m.opens)
	b = binary.LittleEndian.AppendUint64(b, m.store)
	b = binary.LittleEndian.AppendUint32(b, m.first)
	b = binary.LittleEndian.AppendUint32(b, m.last)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.highWater))
	return putTrailer(b[:manifestSize])
}

// decodeManifest is the inverse of encode; path is for errors only.
func decodeManifest(b []byte, path string) (manifest, error) {
	var m manifest
	corrupt := func(format string, args ...any) error {
		return &CorruptError{File: path, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) != manifestSize {
		return m, corrupt("the manifest has %d bytes, want %d", len(b), manifestSize)
	}
	if err := checkTrailer(b, manifestMagic); err != nil {
		return m, corrupt("%v", err)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return m, fmt.Errorf("%s has format version %d, this program reads version %d",
			path, v, formatVersion)
	}
	m.opens = binary.LittleEndian.Uint32(b[12:])
	m.store = binary.LittleEndian.Uint64(b[16:])
	m.first = binary.LittleEndian.Uint32(b[24:])
	m.last = binary.LittleEndian.Uint32(b[28:])
	m.highWater = position(binary.LittleEndian.Uint64(b[32:]))
	if m.first == 0 || m.last < m.first-1 {
		return m, corrupt("segments %d-%d", m.first, m.last)
	}
	return m, nil
}

func openOrCreate(fsys FS, path string) (File, error) {
	f, err := fsys.Open(path)
	if isNotExist(err) {
		f, err = fsys.Create(path)
	}
	return f, err
}

// readSmall reads a file of at most limit bytes.
func readSmall(fsys FS, path string, limit int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err == nil && size > limit {
		size = limit + 1 // enough to be noticed as too long
	}
	b := make([]byte, size)
	if err == nil {
		err = readFull(f, b, 0)
	}
	return b, errors.Join(err, f.Close())
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// encodeHighWater encodes the content of the high-water file: a position known durable.
func encodeHighWater(store uint64, p position) []byte {
	b := make([]byte, 0, highWaterSize)
	b = append(b, highWaterMagic...)
	b = binary.LittleEndian.AppendUint64(b, store)
	b = binary.LittleEndian.AppendUint64(b, uint64(p))
	return putTrailer(b[:highWaterSize])
}

// decodeHighWater returns 0 if b is not a high-water file of this store: the file is written
// without syncs, so any content is possible after a power cut.
func decodeHighWater(b []byte, store uint64) position {
	if len(b) != highWaterSize || checkTrailer(b, highWaterMagic) != nil ||
		binary.LittleEndian.Uint64(b[8:]) != store {
		return 0
	}
	return position(binary.LittleEndian.Uint64(b[16:]))
}
