package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
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
	return openSegmentFile(fsys, segmentPath(dir, id), id, store)
}

func openSegmentFile(fsys FS, path string, id uint32, store uint64) (*segment, error) {
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

// position is a place in the log: segment id in the upper 32 bits, byte offset in the lower. Later
// places have greater positions.
type position uint64

func at(seg uint32, off int64) position { return position(seg)<<32 | position(uint32(off)) }

func (p position) segment() uint32 { return uint32(p >> 32) }
func (p position) offset() int64   { return int64(uint32(p)) }

// kind is the effect of a record on the log. The values are part of the format.
type kind uint8

const (
	kindEntry  kind = 1 // appends the entry
	kindStart  kind = 2 // first of a segment: the span of entries before it
	kindSeal   kind = 3 // last of a segment: the log continues in the next one
	kindOpen   kind = 4 // the log was opened here: everything before is durable
	kindSuffix kind = 5 // deletes the entries with this index and above
	kindPrefix kind = 6 // deletes the entries below this index
	kindReset  kind = 7 // deletes all entries; the next may have any index
	kindMax         = kindReset
)

const (
	recordHeaderSize = 64
	recordMagic      = 0x4c5a // makes the search for records after damage cheap
	recordAlign      = 8      // records start at multiples of this, for the same reason
)

// record is one record. Index is the entry's index, or the index that a deletion starts or ends
// at, or the first index of a kindStart, whose term field holds the last index.
type record struct {
	kind       kind
	generation uint64
	mark       position // known durable when the record was written: everything below
	entry      raft.Log
}

// recordSize returns the bytes that an entry takes in a segment.
func recordSize(e *raft.Log) int64 {
	n := recordHeaderSize + int64(len(e.Extensions)) + int64(len(e.Data))
	return (n + recordAlign - 1) &^ (recordAlign - 1)
}

// checksum covers the record and its place, so that bytes that were moved, or are left from
// another use of the file, are not mistaken for a record.
func checksum(b []byte, seg uint32, off int64) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint32(place[:], seg)
	binary.LittleEndian.PutUint32(place[4:], uint32(off))
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(place[:], table), table, b)
}

// appendRecord appends the encoding of r, which will be at off in segment seg, to b.
func appendRecord(b []byte, r *record, seg uint32, off int64) []byte {
	start := len(b)
	e := &r.entry
	b = binary.LittleEndian.AppendUint32(b, 0) // checksum, set below
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Extensions)+len(e.Data)))
	b = append(b, byte(r.kind), byte(e.Type))
	b = binary.LittleEndian.AppendUint16(b, recordMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Extensions)))
	b = binary.LittleEndian.AppendUint64(b, r.generation)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.mark))
	b = binary.LittleEndian.AppendUint64(b, e.Index)
	b = binary.LittleEndian.AppendUint64(b, e.Term)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.AppendedAt.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.AppendedAt.Nanosecond()))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, e.Extensions...)
	b = append(b, e.Data...)
	for (len(b)-start)%recordAlign != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[start:], checksum(b[start+4:], seg, off))
	return b
}

// recordExtent returns the length in bytes of the record at the start of b, by its header. The header
// is not verified yet, only bounded: limit is the room to the end of the segment.
func recordExtent(b []byte, limit int64) (int64, error) {
	if limit < recordHeaderSize || len(b) < recordHeaderSize {
		return 0, fmt.Errorf("no room for a record header of %d bytes", recordHeaderSize)
	}
	if m := binary.LittleEndian.Uint16(b[10:]); m != recordMagic {
		return 0, fmt.Errorf("no record here (magic %#04x, want %#04x)", m, recordMagic)
	}
	n := recordHeaderSize + int64(binary.LittleEndian.Uint32(b[4:]))
	n = (n + recordAlign - 1) &^ (recordAlign - 1)
	if n > limit {
		return 0, fmt.Errorf("record length %d exceeds the %d bytes left in the segment", n, limit)
	}
	return n, nil
}

// decodeRecord decodes the record at the start of b, which is the content of segment seg from off on
// and may be longer than the record. Extensions and Data of the result share b's memory. It returns
// the record's length too.
func decodeRecord(b []byte, seg uint32, off int64) (record, int64, error) {
	var r record
	n, err := recordExtent(b, int64(len(b)))
	if err != nil {
		return r, 0, err
	}
	want := binary.LittleEndian.Uint32(b)
	if got := checksum(b[4:n], seg, off); got != want {
		return r, 0, fmt.Errorf("checksum %#08x, want %#08x", got, want)
	}
	size := int64(binary.LittleEndian.Uint32(b[4:]))
	ext := int64(binary.LittleEndian.Uint32(b[12:]))
	r.kind = kind(b[8])
	if r.kind == 0 || r.kind > kindMax || ext > size {
		return r, 0, fmt.Errorf("kind %d with %d of %d bytes extensions", r.kind, ext, size)
	}
	r.generation = binary.LittleEndian.Uint64(b[16:])
	r.mark = position(binary.LittleEndian.Uint64(b[24:]))
	e := &r.entry
	e.Type = raft.LogType(b[9])
	e.Index = binary.LittleEndian.Uint64(b[32:])
	e.Term = binary.LittleEndian.Uint64(b[40:])
	sec := int64(binary.LittleEndian.Uint64(b[48:]))
	e.AppendedAt = time.Unix(sec, int64(binary.LittleEndian.Uint32(b[56:]))).UTC()
	body := b[recordHeaderSize : recordHeaderSize+size : recordHeaderSize+size]
	if ext > 0 {
		e.Extensions = body[:ext:ext]
	}
	if size > ext {
		e.Data = body[ext:]
	}
	return r, n, nil
}
