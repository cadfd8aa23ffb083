package raftlog

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func seedRecords() [][]byte {
	var out [][]byte
	for k := kindEntry; k <= kindMax; k++ {
		out = append(out, appendRecord(nil, &record{
			kind: k, generation: 1<<32 | uint64(k), mark: at(1, 4096),
			entry: raft.Log{
				Index: uint64(k), Term: 3, Type: raft.LogConfiguration, Data: []byte("data"),
				Extensions: []byte("x"), AppendedAt: time.Unix(5, 6),
			},
		}, 1, segmentHeaderSize))
	}
	return append(out, nil, make([]byte, recordHeaderSize))
}

// A decoded record must be what its encoding states, byte for byte, and lie inside the input.
func FuzzDecodeRecord(f *testing.F) {
	for _, b := range seedRecords() {
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if n, err := recordExtent(b, int64(len(b))); fix && err == nil {
			// Give the record the right checksum, or nothing gets past that.
			sum := checksum(b[4:n], 1, segmentHeaderSize)
			b[0], b[1], b[2], b[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		r, n, err := decodeRecord(b, 1, segmentHeaderSize)
		if err != nil {
			return
		}
		if n > int64(len(b)) || n != recordSize(&r.entry) {
			t.Fatalf("record of %d bytes in %d, recordSize %d", n, len(b), recordSize(&r.entry))
		}
		again := appendRecord(nil, &r, 1, segmentHeaderSize)
		s, _, err := decodeRecord(again, 1, segmentHeaderSize)
		if err != nil {
			t.Fatalf("the encoding of what was decoded: %v", err)
		}
		if s.kind != r.kind || s.generation != r.generation || s.mark != r.mark ||
			s.entry.Index != r.entry.Index || s.entry.Term != r.entry.Term ||
			!s.entry.AppendedAt.Equal(r.entry.AppendedAt) ||
			!bytes.Equal(s.entry.Data, r.entry.Data) ||
			!bytes.Equal(s.entry.Extensions, r.entry.Extensions) {
			t.Fatalf("%+v came back as %+v", r, s)
		}
		if _, _, err := decodeRecord(again, 2, segmentHeaderSize); err == nil {
			t.Fatal("the record is also valid in another segment")
		}
		if _, _, err := decodeRecord(again, 1, segmentHeaderSize+8); err == nil {
			t.Fatal("the record is also valid at another offset")
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add(manifest{store: 7, opens: 1, first: 1, last: 2, highWater: at(1, 5000)}.encode(), true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) == manifestSize {
			copy(b, manifestMagic)
			putTrailer(b)
		}
		m, err := decodeManifest(b, "manifest")
		if err != nil {
			return
		}
		if again, err := decodeManifest(m.encode(), "manifest"); err != nil || again != m {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

// Recovery of arbitrary bytes in a segment never panics, and its index and span agree.
func FuzzReplay(f *testing.F) {
	seg := make([]byte, segmentHeaderSize)
	for _, r := range []record{
		{kind: kindStart}, {kind: kindEntry, entry: raft.Log{Index: 1, Term: 1}},
		{kind: kindEntry, entry: raft.Log{Index: 2, Term: 1, Data: []byte("x")}},
		{kind: kindSuffix, entry: raft.Log{Index: 2}},
		{kind: kindEntry, entry: raft.Log{Index: 2, Term: 2}},
		{kind: kindPrefix, entry: raft.Log{Index: 2}}, {kind: kindSeal},
	} {
		seg = appendRecord(seg, &r, 1, int64(len(seg)))
	}
	f.Add(seg[segmentHeaderSize:])
	f.Fuzz(func(t *testing.T, body []byte) {
		b := append(make([]byte, segmentHeaderSize), body...)
		for off := int64(segmentHeaderSize); off < int64(len(b)); {
			n, err := recordExtent(b[off:], int64(len(b))-off)
			if err != nil {
				break
			}
			sum := checksum(b[off+4:off+n], 1, off)
			copy(b[off:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
			off += n
		}
		g := &segment{id: 1, size: int64(len(b)), path: "segment"}
		r := &recovery{}
		if _, err := r.replay(g, b, true); err != nil {
			return
		}
		r.scan(g, b, r.end.offset())
		if r.end.offset() > g.size {
			t.Fatalf("end %d of %d bytes", r.end.offset(), g.size)
		}
		if r.index.n > 0 && r.index.base+uint64(r.index.n)-1 != r.span.last {
			t.Fatalf("index %d+%d, log %+v", r.index.base, r.index.n, r.span)
		}
	})
}

func TestIndex_Deletions_KeepPositions(t *testing.T) {
	var x index
	add := func(from, to uint64) {
		for i := from; i <= to; i++ {
			x.add(i, position(i*10))
		}
	}
	check := func(first, last uint64) {
		t.Helper()
		for i := first; i <= last; i++ {
			if x.get(i) != position(i*10) {
				t.Fatalf("index %d lost", i)
			}
		}
		if x.base != first || x.base+uint64(x.n)-1 != last {
			t.Fatalf("index holds %d positions from %d on, want %d-%d", x.n, x.base, first, last)
		}
	}
	add(5, 3*chunkLen)
	check(5, 3*chunkLen)
	x.deleteBelow(chunkLen + 7)
	check(chunkLen+7, 3*chunkLen)
	x.deleteFrom(2 * chunkLen)
	check(chunkLen+7, 2*chunkLen-1)
	if len(x.chunks) > 2 {
		t.Errorf("%d chunks kept", len(x.chunks))
	}
	add(2*chunkLen, 5*chunkLen)
	check(chunkLen+7, 5*chunkLen)
	x.deleteFrom(math.MaxUint64)
	x.deleteBelow(1)
	check(chunkLen+7, 5*chunkLen)
	x.deleteBelow(math.MaxUint64)
	if x.n != 0 || x.chunks != nil {
		t.Errorf("not empty: %+v", x.n)
	}
	add(9, 10)
	check(9, 10)
}

func TestCache_Add_StaysInBounds(t *testing.T) {
	c := newCache(10, 1000)
	for i := uint64(1); i <= 100; i++ {
		c.add(&raft.Log{Index: i, Data: make([]byte, i*3)})
		if c.n > 10 || c.bytes > 1000 || c.n == 0 {
			t.Fatalf("after %d: %d entries, %d bytes", i, c.n, c.bytes)
		}
		var out raft.Log
		if !c.get(i, &out) || out.Index != i || len(out.Data) != int(i*3) {
			t.Fatalf("newest entry %d not held", i)
		}
	}
	c.add(&raft.Log{Index: 101, Data: make([]byte, 2000)})
	if c.n != 0 || c.bytes != 0 {
		t.Errorf("%d entries, %d bytes after an entry that does not fit", c.n, c.bytes)
	}
	c.add(&raft.Log{Index: 102})
	c.add(&raft.Log{Index: 103})
	c.deleteFrom(103)
	if c.get(103, new(raft.Log)) || !c.get(102, new(raft.Log)) {
		t.Error("suffix deletion missed")
	}
	c.deleteBelow(200)
	if c.n != 0 || c.bytes != 0 {
		t.Errorf("%d entries, %d bytes after deleting all", c.n, c.bytes)
	}
}

func TestSegmentID_InvertsPath(t *testing.T) {
	for _, id := range []uint32{1, 0xabcdef, math.MaxUint32} {
		if got, ok := segmentID(segmentPath("", id)); !ok || got != id {
			t.Errorf("segmentID(%s) = %d, %v", segmentPath("", id), got, ok)
		}
	}
	for _, name := range []string{
		"", "manifest", "1.seg", "0000000g.seg", "0000000A.seg", "+0000001.seg",
	} {
		if _, ok := segmentID(name); ok {
			t.Errorf("%q taken for a segment", name)
		}
	}
}
