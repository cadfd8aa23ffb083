package state

import (
	"fmt"
	"io"
	"slices"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// maxDecoded bounds what a backup may be when it is not compressed any more, so
// that a small file cannot fill every server's memory. It is more than a tree that
// MaxBackup is the size of takes when it is hardly compressible, and a tenth of
// what a malicious one could ask for.
const maxDecoded = 32 << 30

// super is an identity with all permissions.
var super = []znode.ID{znode.SuperIDs}

type errRestoreStep RestoreStep

func (e errRestoreStep) Error() string { return fmt.Sprintf("unknown step %d of a restore", uint8(e)) }

// ReadBackup decodes and checks a file that Snapshot.Write has written: its
// checksums, its digest, and whatever would make it impossible to restore. The
// error says what is wrong. Of the file's state only the tree is used.
func ReadBackup(in io.Reader) (*backup.Backup, error) {
	m, err := readSnapshot(in, maxDecoded)
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

// OnlyState leaves out what restores have left in the state: a backup that is on its
// way, and the answers to those that had a key. A backup is none the worse for it, and
// is then of the format's first version, which all can read.
func (s *Snapshot) OnlyState() {
	s.upload = nil
	s.keys = slices.DeleteFunc(s.keys, func(a *answer) bool { return a.result.Op == OpRestore })
}
