package raftlog

import (
	"encoding/binary"
	"fmt"
)

// recovery follows the records of all segments in order.
type recovery struct {
	span       span
	index      index
	generation uint64   // of the last record
	mark       position // everything below was known durable
	end        position // end of the valid records
	reason     string   // why there is no record at end
	torn       bool     // the bytes at end are not zeros

	visit func(g *segment, off int64, rec *record) error // called with each record that is followed; nil: none
}

// recoverRecords finds the end of the log, the first place without a valid record. It refuses the log
// if anything shows that it was durable beyond that place: the manifest, the high-water file or the
// mark of any record, those after the end included. A record lost above every mark may be a write that
// a power cut interrupted. Writes reach the disk in any order, so valid records may follow it, but none
// of them was ever reported as durable.
func recoverRecords(
	d *directory, segments []*segment, visit func(*segment, int64, *record) error,
) (*recovery, error) {
	r := &recovery{mark: max(d.manifest.highWater, d.readHighWater()), visit: visit}
	if len(segments) > 0 {
		r.end = at(segments[0].id, segmentHeaderSize)
	}
	var buf []byte
	for i, g := range segments {
		if int64(cap(buf)) < g.size {
			buf = make([]byte, g.size)
		}
		buf = buf[:g.size]
		if err := readFull(g.file, buf, 0); err != nil {
			return nil, fmt.Errorf("raftlog: reading %s: %w", g.path, err)
		}
		from := int64(segmentHeaderSize)
		if r.reason == "" {
			sealed, err := r.replay(g, buf, i == 0)
			if err != nil {
				return nil, err
			}
			if sealed && i < len(segments)-1 {
				continue
			}
			if sealed {
				return nil, r.corrupt(g, r.end.offset(), "the log goes on in a missing segment")
			}
			from = r.end.offset()
		}
		r.scan(g, buf, from)
	}
	return r, r.checkEnd(d, segments)
}

func (r *recovery) corrupt(g *segment, off int64, reason string) error {
	return &CorruptError{File: g.path, Offset: off, Index: r.span.last + 1, Reason: reason}
}

// replay applies the records of a segment. It stops after a seal, or at the first place without a
// valid record, and then sets reason.
func (r *recovery) replay(g *segment, b []byte, oldest bool) (sealed bool, err error) {
	off := int64(segmentHeaderSize)
	for {
		r.end = at(g.id, off)
		rec, n, err := decodeRecord(b[off:], g.id, off)
		switch {
		case err != nil:
			r.reason = err.Error()
		case rec.generation < r.generation:
			r.reason = fmt.Sprintf("a record of generation %#x, after one of %#x",
				rec.generation, r.generation)
		}
		if r.reason != "" {
			r.torn = !allZero(b[off:min(off+recordHeaderSize, g.size)])
			return false, nil
		}
		if (rec.kind == kindStart) != (off == segmentHeaderSize) {
			return false, r.corrupt(g, off, fmt.Sprintf("record of kind %d", rec.kind))
		}
		if rec.kind == kindStart && oldest {
			// The segments before were dropped; their entries count until the deletion
			// that freed them.
			r.span = span{rec.entry.Index, rec.entry.Term}
		}
		next, err := r.span.apply(&rec)
		if err != nil {
			return false, r.corrupt(g, off, err.Error())
		}
		if r.visit != nil {
			if err := r.visit(g, off, &rec); err != nil {
				return false, err
			}
		}
		r.note(&rec, at(g.id, off))
		r.span = next
		off += n
		if rec.kind == kindSeal {
			r.end = at(g.id, off)
			return true, nil
		}
	}
}

// note keeps index, generation and mark.
func (r *recovery) note(rec *record, p position) {
	r.generation = rec.generation
	r.mark = max(r.mark, rec.mark)
	switch i := rec.entry.Index; rec.kind {
	case kindEntry:
		r.index.add(i, p)
	case kindSuffix:
		r.index.deleteFrom(i)
	case kindPrefix:
		r.index.deleteBelow(i)
	case kindReset:
		r.index = index{}
	case kindStart, kindSeal, kindOpen:
	}
}

// scan looks for valid records in what is no longer part of the log, for their marks: a mark
// stays true whatever happens to its record. Records start at multiples of recordAlign.
func (r *recovery) scan(g *segment, b []byte, from int64) {
	for off := from; off+recordHeaderSize <= g.size; off += recordAlign {
		if binary.LittleEndian.Uint16(b[off+10:]) != recordMagic {
			continue
		}
		rec, _, err := decodeRecord(b[off:], g.id, off)
		if err == nil {
			r.mark = max(r.mark, rec.mark)
		}
	}
}

// checkEnd returns an error if no power cut can have left the end that was found.
func (r *recovery) checkEnd(d *directory, segments []*segment) error {
	if len(segments) == 0 {
		if r.mark > 0 {
			return &CorruptError{
				File:   segmentPath(d.path, r.mark.segment()),
				Reason: "the segment file is missing",
			}
		}
		return nil
	}
	g := segments[r.end.segment()-segments[0].id]
	if r.end < r.mark {
		return r.corrupt(g, r.end.offset(), fmt.Sprintf(
			"%s, but the log was durable up to %s offset %d",
			r.reason, segmentPath(d.path, r.mark.segment()), r.mark.offset()))
	}
	if !r.span.empty() && (r.index.n == 0 || r.index.base > r.span.first) {
		return r.corrupt(g, r.end.offset(), fmt.Sprintf(
			"the segments with entries from %d on are missing", r.span.first))
	}
	if r.torn {
		d.logger.Warn("cut off the end of the raft log, which was never durable",
			"file", g.path, "offset", r.end.offset(), "last", r.span.last, "reason", r.reason)
	}
	return nil
}

// rewriteVolatile makes durable what recovery read above the durable mark. A process that died of
// a failed sync leaves pages that the kernel holds as clean though the disk never got them, so
// the bytes are written again; a sync alone would do nothing.
func (r *recovery) rewriteVolatile(segments []*segment) error {
	for _, g := range segments {
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

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
