package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"sync/atomic"
)

const (
	// formatVersion is in every file's header; a file with another one is refused.
	formatVersion = 1
	// segmentHeaderSize is a page, so that no append ever rewrites the header.
	segmentHeaderSize = 4096
	segmentMagic      = "zkraftlg"
	segmentSuffix     = ".seg"
)

// zeroChunk bytes are written at a time when a segment is prepared, and synced before the next
// ones, so that a log sync during a preparation waits for this many bytes at most.
const zeroChunk = 1 << 20

// segment is an open segment file. The store holds one reference, each reader one while reading;
// the last release closes the file.
type segment struct {
	id   uint32
	size int64
	path string
	file File
	refs atomic.Int32
}

func (g *segment) acquire() { g.refs.Add(1) }

// release gives up a reference. The error is that of closing the file.
func (g *segment) release() error {
	if g.refs.Add(-1) > 0 {
		return nil
	}
	return g.file.Close()
}

func segmentPath(dir string, id uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%08x%s", id, segmentSuffix))
}

// segmentID is the inverse of segmentPath for a base name.
func segmentID(name string) (uint32, bool) {
	var id uint32
	if len(name) != 8+len(segmentSuffix) {
		return 0, false
	}
	if _, err := fmt.Sscanf(name, "%08x"+segmentSuffix, &id); err != nil {
		return 0, false
	}
	return id, filepath.Base(segmentPath("", id)) == name
}

func encodeSegmentHeader(id uint32, size int64, store uint64) []byte {
	b := make([]byte, 0, segmentHeaderSize)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, id)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	b = binary.LittleEndian.AppendUint64(b, store)
	b = b[:segmentHeaderSize]
	return putTrailer(b)
}

// putTrailer sets the last four bytes of b to the checksum of the others.
func putTrailer(b []byte) []byte {
	n := len(b) - 4
	sum := crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(b[n:], sum)
	return b
}

func checkTrailer(b []byte, magic string) error {
	n := len(b) - 4
	if string(b[:len(magic)]) != magic {
		return fmt.Errorf("magic %q, want %q", b[:len(magic)], magic)
	}
	sum := crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli))
	if want := binary.LittleEndian.Uint32(b[n:]); sum != want {
		return fmt.Errorf("header checksum %#08x, want %#08x", sum, want)
	}
	return nil
}

// createSegment makes a segment file full of zeros, durable with its name. On error it removes
// the file, if it can. A closed stop ends the work with errStopped.
func createSegment(
	fsys FS, dir string, id uint32, size int64, store uint64, stop <-chan struct{},
) (*segment, error) {
	path := segmentPath(dir, id)
	f, err := fsys.Create(path)
	if err != nil {
		return nil, fmt.Errorf("creating a log segment: %w", err)
	}
	g := &segment{id: id, size: size, path: path, file: f}
	g.refs.Store(1)
	err = fillSegment(g, store, stop)
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		err = fmt.Errorf("preparing log segment %s of %d bytes: %w", path, size, err)
		return nil, errors.Join(err, g.discard(fsys))
	}
	return g, nil
}

// discard closes and removes a segment that is not in use, which gives its space back.
func (g *segment) discard(fsys FS) error {
	return errors.Join(g.release(), fsys.Remove(g.path))
}

// fillSegment writes zeros rather than reserving space: the first write into a reserved but
// unwritten extent makes the file system commit its journal in the following sync.
func fillSegment(g *segment, store uint64, stop <-chan struct{}) error {
	zeros := make([]byte, min(zeroChunk, g.size))
	for off := int64(0); off < g.size; off += int64(len(zeros)) {
		select {
		case <-stop:
			return errStopped
		default:
		}
		n := min(int64(len(zeros)), g.size-off)
		if err := writeFull(g.file, zeros[:n], off); err != nil {
			return err
		}
		if err := g.file.Datasync(); err != nil {
			return err
		}
	}
	if err := writeFull(g.file, encodeSegmentHeader(g.id, g.size, store), 0); err != nil {
		return err
	}
	return g.file.Sync()
}

// writeFull is WriteAt that checks for short writes itself.
func writeFull(f File, b []byte, off int64) error {
	n, err := f.WriteAt(b, off)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// openSegment opens an existing segment and verifies its header. Everything that it checks was
// durable before the manifest named the segment, so an error means damage.
func openSegment(fsys FS, dir string, id uint32, store uint64) (*segment, error) {
	path := segmentPath(dir, id)
	corrupt := func(format string, args ...any) error {
		return &CorruptError{File: path, Reason: fmt.Sprintf(format, args...)}
	}
	f, err := fsys.Open(path)
	if isNotExist(err) {
		return nil, corrupt("the segment file is missing")
	} else if err != nil {
		return nil, fmt.Errorf("opening a log segment: %w", err)
	}
	g := &segment{id: id, path: path, file: f}
	g.refs.Store(1)
	if err := g.readHeader(store, corrupt); err != nil {
		return nil, errors.Join(err, g.release())
	}
	return g, nil
}

func (g *segment) readHeader(store uint64, corrupt func(string, ...any) error) error {
	length, err := g.file.Size()
	if err != nil {
		return fmt.Errorf("reading the size of %s: %w", g.path, err)
	}
	b := make([]byte, segmentHeaderSize)
	if length < segmentHeaderSize {
		return corrupt("the file has %d bytes, less than its header of %d", length, len(b))
	}
	if err := readFull(g.file, b, 0); err != nil {
		return fmt.Errorf("reading the header of %s: %w", g.path, err)
	}
	if err := checkTrailer(b, segmentMagic); err != nil {
		return corrupt("%v", err)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return fmt.Errorf("%s has format version %d, this program reads version %d",
			g.path, v, formatVersion)
	}
	g.size = int64(binary.LittleEndian.Uint64(b[16:]))
	if id := binary.LittleEndian.Uint32(b[12:]); id != g.id {
		return corrupt("this is segment %d, want %d", id, g.id)
	}
	if s := binary.LittleEndian.Uint64(b[24:]); s != store {
		return corrupt("the segment belongs to log %016x, this is log %016x", s, store)
	}
	if length != g.size {
		return corrupt("the file has %d bytes, want %d", length, g.size)
	}
	return nil
}

// readFull is ReadAt that treats an end of file as an error only if bytes are missing.
func readFull(f File, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
