package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// maxDecoded bounds the decompressed size of a backup, so that a small file cannot
// fill every server's memory. It is more than a hardly compressible tree with a
// backup of MaxBackup needs, and a tenth of what a malicious one could claim.
const maxDecoded = 32 << 30

// super is an identity with all permissions.
var super = []znode.ID{znode.SuperIDs}

// ReadBackup decodes and checks a file that Snapshot.Write has written: its
// checksums, its digest, and whatever would make it impossible to restore. The
// error describes what is wrong. Of the file's state only the tree is used.
func ReadBackup(in io.Reader) (*backup.Backup, error) { return ReadBackupWithin(in, maxDecoded) }

// ErrDecodedTooLarge reports that a decompressed backup exceeds its bound.
var ErrDecodedTooLarge = errors.New("too large when it is decompressed")

// ReadBackupWithin is ReadBackup with a bound on the decompressed size: a small file can hold gigabytes. Errors: also
// ErrDecodedTooLarge.
func ReadBackupWithin(in io.Reader, bytes int64) (*backup.Backup, error) {
	m, err := readSnapshot(in, min(bytes, maxDecoded))
	if err != nil {
		return nil, err
	}
	b, err := backup.New(m.tree, m.zxid, m.time)
	if err != nil {
		return nil, fmt.Errorf("reading snapshot: %w", err)
	}
	return b, nil
}

// Preview computes what a restore of b would change in the state, and changes
// nothing. It works on a copy of the tree.
func (s *Snapshot) Preview(b *backup.Backup) (backup.Changes, error) {
	builder := znode.NewBuilder()
	if err := s.tree.Walk(builder.Add); err != nil {
		return backup.Changes{}, fmt.Errorf("copying the tree: %w", err)
	}
	tree, err := builder.Tree()
	if err != nil {
		return backup.Changes{}, fmt.Errorf("copying the tree: %w", err)
	}
	x := &znode.Txn{Zxid: max(s.zxid, b.Zxid()) + 1, TimeMillis: s.time}
	_, done := backup.Merge(x, tree, b)
	return done, nil
}

// OnlyState leaves out the traces of restores in the state: a backup that is being uploaded, and the answers to those
// that had a key; and the level and the history of the log, which belong to the ensemble. A backup does not need
// them. It also leaves out tokens, because a backup is stored elsewhere.
func (s *Snapshot) OnlyState() {
	s.upload, s.level, s.term, s.history = nil, 0, 0, 0
	for id, m := range s.members {
		m.Token, m.TokenUntil = [32]byte{}, 0
		s.members[id] = m
	}
	s.keys = slices.DeleteFunc(s.keys, func(a *answer) bool { return a.result.Op == OpRestore })
}

// Empty reports whether the tree holds nothing but the root and /zookeeper with
// what is below it.
func (m *Machine) Empty() bool {
	stat, _ := m.tree.Exists(znode.RootPath, super)
	return stat.NumChildren == 1
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
	case u != nil && u.from != from && timeMillis-u.time < UploadIdle:
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
