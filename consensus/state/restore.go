package state

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
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

// RestoreStep is the action of an OpRestore.
type RestoreStep uint8

// The steps.
const (
	RestorePart   RestoreStep = iota // brings the next part, in Command.Data
	RestoreCommit                    // all parts have been sent: restore
	RestoreAbort                     // forget the parts
)

const lastRestoreStep = RestoreAbort

// RestoreCommand is the parameters of an OpRestore without its data.
//
// The codes of its results: OK; ErrThrottled if another upload is in progress;
// ErrDataInconsistency if the upload is unknown or incomplete, because another
// one has replaced it; ErrBadArguments if it is too large; ErrMarshalling if it
// is not a backup; ErrNotEmpty if there are znodes and Replace is not set.
// After all of them but OK, nothing has changed.
type RestoreCommand struct {
	Step    RestoreStep
	Upload  uint64 // names the upload; chosen at random by the server
	Part    uint64 // the number of this part, from 0; of a commit, how many there are
	Sum     uint64 // of a commit: xxHash64 of the whole backup
	Replace bool   // of a commit: even if there are znodes besides the system's
}

func (x *RestoreCommand) append(b []byte) []byte {
	b = appendUint(appendUint(append(b, byte(x.Step)), x.Upload), x.Part)
	return append(appendUint(b, x.Sum), flag(x.Replace))
}

func readRestore(r *reader) RestoreCommand {
	x := RestoreCommand{
		Step: RestoreStep(r.byte()), Upload: r.uint(), Part: r.uint(), Sum: r.uint(),
		Replace: r.byte() == 1,
	}
	if x.Step > lastRestoreStep {
		r.fail(errRestoreStep(x.Step))
	}
	return x
}

type errRestoreStep RestoreStep

func (e errRestoreStep) Error() string { return fmt.Sprintf("unknown step %d of a restore", uint8(e)) }

// upload is the backup being uploaded. Its parts are immutable, so a snapshot
// may share them.
type upload struct {
	id    uint64
	from  ServerID
	time  int64 // of the entry with the newest part, milliseconds since the epoch
	parts [][]byte
	bytes int64
}

// receive performs a step of a restore. It returns the backup to restore, and
// nil unless the step is a valid commit.
func (m *Machine) receive(c *Command, from ServerID, timeMillis int64) *backup.Backup {
	x := &c.Restore
	switch x.Step {
	case RestorePart:
		m.result.Code = m.receivePart(c, from, timeMillis)
		return nil
	case RestoreAbort:
		m.forgetUpload(x.Upload)
		return nil
	}
	u := m.upload
	if u == nil || u.id != x.Upload || uint64(len(u.parts)) != x.Part {
		m.result.Code = znode.ErrDataInconsistency
		return nil
	}
	m.upload = nil
	if !x.Replace && !m.Empty() {
		m.result.Code = znode.ErrNotEmpty
		return nil
	}
	if u.sum() != x.Sum {
		m.result.Code = znode.ErrMarshalling
		return nil
	}
	b, err := ReadBackup(u.reader())
	if err != nil {
		m.result.Code = znode.ErrMarshalling
		return nil
	}
	return b
}

func (m *Machine) receivePart(c *Command, from ServerID, timeMillis int64) znode.Error {
	x, u := &c.Restore, m.upload
	switch {
	case x.Part > 0:
		if u == nil || u.id != x.Upload || uint64(len(u.parts)) != x.Part {
			return znode.ErrDataInconsistency
		}
	case u != nil && u.from != from && timeMillis-u.time < UploadIdle && m.mirror == nil:
		return znode.ErrThrottled
	default:
		// A server has one upload at a time, so a new one ends the previous.
		u = &upload{id: x.Upload, from: from}
		m.upload = u
	}
	if u.bytes += int64(len(c.Data)); u.bytes > MaxBackup || !possiblePart(c.Data) {
		m.upload = nil
		return znode.ErrBadArguments
	}
	u.parts = append(u.parts, bytes.Clone(c.Data)) // it is part of the entry
	u.time = timeMillis
	return znode.OK
}

// forgetUpload drops the upload with this id, if it is still there.
func (m *Machine) forgetUpload(id uint64) {
	if m.upload != nil && m.upload.id == id {
		m.upload = nil
	}
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
