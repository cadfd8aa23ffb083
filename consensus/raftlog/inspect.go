package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// SegmentMagic begins every segment file.
const SegmentMagic = segmentMagic

// kindNames are the names in FORMAT.md.
var kindNames = map[kind]string{
	kindEntry: "entry", kindStart: "start", kindSeal: "seal", kindOpen: "open", kindSuffix: "suffix",
	kindPrefix: "prefix", kindReset: "reset",
}

// FoundEntry and FoundEnd are values of Found.Kind.
const (
	FoundEntry = "entry"
	FoundEnd   = "end"
)

// Found is a record of a log, as FORMAT.md describes it, or the log's end.
type Found struct {
	File   string
	Offset int64
	Kind   string // as in FORMAT.md, or FoundEnd
	Index  uint64
	Term   uint64
	Type   string    // of an entry: raft's name of its type
	Time   time.Time // of an entry: when it was appended
	Data   []byte    // of an entry; valid during the call
	Reason string    // of FoundEnd: what is wrong with the bytes there, which were never durable; empty: zeros
}

// Inspect calls visit with each record of the log in a directory, or of one segment file, in the order in which they
// were written, and then with the end. What a later record deletes is among them. It changes nothing, and another
// process may have the log open: entries that it appends meanwhile may be left out.
//
// Errors: of visit; as of Open, *CorruptError after everything before the damage has been visited.
func Inspect(path string, dir bool, visit func(*Found) error) error {
	opt, err := Options{MustExist: true, FS: readOnly{OS()}}.withDefaults()
	if err != nil {
		return err
	}
	if !dir {
		return inspectSegment(path, &opt, visit)
	}
	// A log that is written meanwhile may look damaged: its newest marks are newer than the records that were read, or
	// a segment that the manifest named is gone. It is read on until that brings nothing new.
	var seen position
	for again := false; ; again = true {
		from := seen
		end, err := inspectDir(path, &opt, func(g *segment, off int64, rec *record) error {
			if at(g.id, off) < from {
				return nil
			}
			seen = at(g.id, off+recordSize(&rec.entry))
			return visit(found(g, off, rec))
		})
		var corrupt *CorruptError
		switch {
		case err == nil:
			return visit(end)
		case !errors.As(err, &corrupt) || again && seen == from:
			return err
		}
	}
}

// readOnly opens files of others, which may not be written.
type readOnly struct{ FS }

// Open implements FS.
func (readOnly) Open(name string) (File, error) {
	f, err := os.Open(name)
	return osFile{f}, err
}

// inspectDir is one pass over a directory.
func inspectDir(path string, opt *Options, visit func(*segment, int64, *record) error) (end *Found, err error) {
	d := newDirectory(path, opt)
	if err := d.loadManifest(); err != nil {
		return nil, err
	}
	segments, err := d.openSegments()
	defer func() { err = errors.Join(err, releaseAll(segments)) }()
	if err != nil {
		return nil, err
	}
	r, err := recoverRecords(d, segments, visit)
	if err != nil {
		return nil, err
	}
	return r.found(d.path), nil
}

func (r *recovery) found(dir string) *Found {
	f := &Found{
		File: segmentPath(dir, r.end.segment()), Offset: r.end.offset(), Kind: FoundEnd, Index: r.span.last,
	}
	if r.torn {
		f.Reason = r.reason
	}
	return f
}

// inspectSegment reads one segment, whose log may have others.
func inspectSegment(path string, opt *Options, visit func(*Found) error) (err error) {
	head, err := readHead(opt.FS, path)
	if err != nil {
		return err
	}
	id, store := binary.LittleEndian.Uint32(head[12:]), binary.LittleEndian.Uint64(head[24:])
	d := newDirectory(filepath.Dir(path), opt)
	d.id = store
	r := &recovery{mark: d.readHighWater(), visit: func(g *segment, off int64, rec *record) error {
		return visit(found(g, off, rec))
	}}
	g, err := openSegmentFile(opt.FS, path, id, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.release()) }()
	b := make([]byte, g.size)
	if err := readFull(g.file, b, 0); err != nil {
		return fmt.Errorf("raftlog: reading %s: %w", path, err)
	}
	sealed, err := r.replay(g, b, true)
	if err != nil {
		return err
	}
	if !sealed {
		r.scan(g, b, r.end.offset())
		if r.end < r.mark {
			return r.corrupt(g, r.end.offset(), fmt.Sprintf("%s, but the log was durable up to segment %d, offset %d",
				r.reason, r.mark.segment(), r.mark.offset()))
		}
	}
	end := r.found(d.path)
	end.File = path
	return visit(end)
}

// readHead reads the fields of a segment's header, which openSegmentFile verifies.
func readHead(fsys FS, path string) (b []byte, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b = make([]byte, 32)
	if err = readFull(f, b, 0); err != nil {
		err = &CorruptError{File: path, Reason: "the file ends inside its header"}
	}
	return b, errors.Join(err, f.Close())
}

func found(g *segment, off int64, rec *record) *Found {
	e := &rec.entry
	f := &Found{File: g.path, Offset: off, Kind: kindNames[rec.kind], Index: e.Index, Term: e.Term}
	if rec.kind == kindEntry {
		f.Type, f.Time, f.Data = e.Type.String(), e.AppendedAt, e.Data
	}
	return f
}
