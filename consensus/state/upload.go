package state

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
)

// A restore is in the log in parts, because a backup is larger than one entry may
// be. Every machine collects the parts, which change nothing; the commit turns the
// tree into the backup's, as one transaction.
const (
	// MaxBackup bounds a backup's file, in bytes. Every server holds it in memory,
	// in addition to the tree that it makes of it, until it is committed.
	MaxBackup = 2 << 30
	// MaxBackupPart bounds one part: a quarter of an entry of the log, so that
	// clients' commands find room beside it.
	MaxBackupPart = 256 << 10
	// UploadIdle is how long an upload must have been without a new part, by the
	// clock of the log's entries and in milliseconds, before another server's may
	// replace it. The parts of an active one follow each other within a second, or
	// an election.
	UploadIdle = 60 * 1000
)

// upload is the backup being uploaded. Its parts are immutable, so a snapshot
// may share them.
type upload struct {
	id    uint64
	from  ServerID
	time  int64 // of the entry with the newest part, milliseconds since the epoch
	parts [][]byte
	bytes int64
}

// clone is for a snapshot: the writer keeps appending to its own.
func (u *upload) clone() *upload {
	if u == nil {
		return nil
	}
	c := *u
	c.parts = u.parts[:len(u.parts):len(u.parts)]
	return &c
}

// reader reads the parts one after the other.
func (u *upload) reader() io.Reader {
	parts := make([]io.Reader, len(u.parts))
	for i, p := range u.parts {
		parts[i] = bytes.NewReader(p)
	}
	return io.MultiReader(parts...)
}

// sum is the required value of RestoreCommand.Sum.
func (u *upload) sum() uint64 {
	h := xxhash.New()
	for _, p := range u.parts {
		_, _ = h.Write(p) // never fails
	}
	return h.Sum64()
}

func possiblePart(b []byte) bool { return len(b) > 0 && len(b) <= MaxBackupPart }

// appendHead encodes an upload without its parts; nothing for none.
func (u *upload) appendHead(b []byte) []byte {
	if u == nil {
		return b
	}
	b = appendInt(appendUint(appendUint(b, u.id), uint64(u.from)), u.time)
	return appendUint(b, uint64(len(u.parts)))
}

// readUpload reads the blocks of an upload, if there is one.
func readUpload(in *bufio.Reader) (*upload, error) {
	b, err := readBlock(in, nil)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	r := reader{b: b}
	u := &upload{id: r.uint(), from: ServerID(r.uint()), time: r.int()}
	n := r.uint()
	if r.err != nil || r.off != len(b) || n > MaxBackup {
		return nil, errors.New("its description is damaged")
	}
	for range n {
		if b, err = readBlock(in, b); err != nil {
			return nil, err
		}
		if u.bytes += int64(len(b)); !possiblePart(b) || u.bytes > MaxBackup {
			return nil, errors.New("a part of it has a size that none can have")
		}
		u.parts = append(u.parts, bytes.Clone(b))
	}
	return u, nil
}
