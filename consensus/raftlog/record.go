package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"
)

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
