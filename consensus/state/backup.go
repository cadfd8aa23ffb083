package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// A backup is a snapshot with a label between its magic and its zstd stream, which names the ensemble. The label is
// a skippable frame of zstd (RFC 8878, 3.1.2), which other readers skip.
const (
	labelFrame   = "\x5a\x2a\x4d\x18" + "\x19\x00\x00\x00" // the kind of frame, and the size of what follows
	labelVersion = 1
	labelBytes   = 1 + 16 + 8         // the version, the ensemble, and the xxhash of both
	zstdFrame    = "\x28\xb5\x2f\xfd" // the start of the stream that the label precedes
)

// BackupHead is how many bytes BackupEnsemble needs to see of a backup.
const BackupHead = len(snapshotMagic) + len(labelFrame) + labelBytes

// WriteBackup encodes the snapshot as a backup of this ensemble. It leaves out what OnlyState leaves out.
func (s *Snapshot) WriteBackup(w io.Writer, ensemble [16]byte) error {
	s.OnlyState()
	b := append([]byte(snapshotMagic+labelFrame), labelVersion)
	b = append(b, ensemble[:]...)
	b = binary.BigEndian.AppendUint64(b, xxhash.Sum64(b[len(b)-17:]))
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("writing backup: %w", err)
	}
	return s.writeStream(w)
}

// OnlyState leaves out the traces of restores in the state: a backup that is being uploaded, and the answers to those
// that had a key; and the level, the history of the log, what is mirrored, was taken over or is being reconfigured,
// which belong to the ensemble. A backup does not need them. It also leaves out tokens, because a backup is stored
// elsewhere.
func (s *Snapshot) OnlyState() {
	s.upload, s.mirror, s.takeover, s.reconfig, s.leaving = nil, nil, Takeover{}, nil, nil
	s.level, s.term, s.history = 0, 0, 0
	for id, m := range s.members {
		m.Token, m.TokenUntil = [32]byte{}, 0
		s.members[id] = m
	}
	s.keys = slices.DeleteFunc(s.keys, func(a *answer) bool { return a.result.Op == OpRestore })
}

// BackupEnsemble returns the ensemble of a backup, from its first BackupHead bytes. It is zero if they have no
// label, because the file is not a backup or a build before v1.0 wrote it.
//
// Errors: the label is damaged, or has another version.
func BackupEnsemble(head []byte) (ensemble [16]byte, err error) {
	b, is := bytes.CutPrefix(head, []byte(snapshotMagic))
	if !is || bytes.HasPrefix(b, []byte(zstdFrame)) {
		return ensemble, nil
	}
	b, is = bytes.CutPrefix(b, []byte(labelFrame))
	switch {
	case !is || len(b) < labelBytes:
		return ensemble, errors.New("the label of its ensemble is cut off or changed")
	case b[0] != labelVersion:
		return ensemble, fmt.Errorf("the label of its ensemble has version %d; this build reads version %d", b[0],
			labelVersion)
	case binary.BigEndian.Uint64(b[17:]) != xxhash.Sum64(b[:17]):
		return ensemble, errors.New("the label of its ensemble has another checksum")
	}
	return [16]byte(b[1:17]), nil
}

// maxDecoded bounds the decompressed size of a backup, so that a small file cannot
// fill every server's memory. It is more than a hardly compressible tree with a
// backup of MaxBackup needs, and a tenth of what a malicious one could claim.
const maxDecoded = 32 << 30

// ReadBackup decodes and checks a file that Snapshot.Write has written: its
// checksums, its digest, and everything that would make it impossible to restore.
// The error describes what is wrong. Of the file's state only the tree is used.
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

// Empty reports whether the tree holds nothing but the root and /zookeeper with
// what is below it.
func (m *Machine) Empty() bool {
	stat, _ := m.tree.Exists(znode.RootPath, super)
	return stat.NumChildren == 1
}

// Empty reports whether the tree holds nothing but the root and /zookeeper with
// what is below it.
func (s *Snapshot) Empty() bool {
	return s.tree.Walk(func(r *znode.Record) error {
		if r.Path == znode.RootPath || r.Path == znode.SystemPath || strings.HasPrefix(r.Path, znode.SystemPath+"/") {
			return nil
		}
		return errTreeNotEmpty
	}) == nil
}

var errTreeNotEmpty = errors.New("the tree is not empty")
