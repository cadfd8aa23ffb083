package state

import (
	"fmt"
	"io"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// maxDecoded bounds what a backup may be when it is not compressed any more, so
// that a small file cannot fill every server's memory. It is more than a tree that
// MaxBackup is the size of takes when it is hardly compressible, and a tenth of
// what a malicious one could ask for.
const maxDecoded = 32 << 30

// maxBackupZxid bounds a backup's zxid. A restore's is larger, and there must be
// room for all that come after it.
const maxBackupZxid znode.Zxid = 1 << 61

// super is somebody who may do everything.
var super = []znode.ID{znode.SuperIDs}

type errRestoreStep RestoreStep

func (e errRestoreStep) Error() string { return fmt.Sprintf("unknown step %d of a restore", uint8(e)) }

// Backup is a tree that a restore can put in the place of the present one.
type Backup struct {
	tree *znode.Tree
	zxid znode.Zxid
	time int64
}

// Zxid is that of the last transaction in the backup.
func (b *Backup) Zxid() znode.Zxid { return b.zxid }

// TimeMillis is when that was, in milliseconds since the epoch.
func (b *Backup) TimeMillis() int64 { return b.time }

// Size is what the backup holds.
func (b *Backup) Size() znode.Size { return b.tree.Size() }

// ReadBackup decodes and checks a file that Snapshot.Write has written: its
// checksums, its digest, and whatever would make it impossible to restore. The
// error says what is wrong. Of the file's state only the tree is used.
func ReadBackup(in io.Reader) (*Backup, error) {
	m, err := readSnapshot(in, maxDecoded)
	if err != nil {
		return nil, err
	}
	b := &Backup{tree: m.tree, zxid: m.zxid, time: m.time}
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("reading snapshot: %w", err)
	}
	return b, nil
}

// check finds what no server can have written: without its ephemerals, such a
// tree would not be one.
func (b *Backup) check() error {
	if b.zxid < 0 || b.zxid > maxBackupZxid {
		return fmt.Errorf("its zxid %v is out of range", b.zxid)
	}
	s := b.tree.Snapshot()
	defer s.Release()
	return s.Walk(func(r *znode.Record) error {
		switch r.Path {
		case znode.RootPath, znode.SystemPath, znode.QuotaPath, znode.ConfigPath:
			if r.Stat.EphemeralOwner != 0 {
				return fmt.Errorf("%s is not persistent", r.Path)
			}
		}
		if r.Stat.Cversion < 0 {
			return fmt.Errorf("%q has had %d children", r.Path, r.Stat.Cversion)
		}
		if parent, _ := b.tree.Exists(znode.Parent(r.Path), super); parent.EphemeralOwner != 0 {
			return fmt.Errorf("%q is below an ephemeral znode", r.Path)
		}
		return nil
	})
}

// wanted returns the znode's Stat, and whether it is to be restored: ephemerals
// are not, since their sessions are over.
func (b *Backup) wanted(path string) bool {
	stat, code := b.tree.Exists(path, super)
	return code == znode.OK && stat.EphemeralOwner == 0
}

// Preview computes what a restore of b would change in the state, and changes
// nothing. It works on a copy of the tree.
func (s *Snapshot) Preview(b *Backup) (Restored, error) {
	builder := znode.NewBuilder()
	if err := s.tree.Walk(builder.Add); err != nil {
		return Restored{}, fmt.Errorf("copying the tree: %w", err)
	}
	tree, err := builder.Tree()
	if err != nil {
		return Restored{}, fmt.Errorf("copying the tree: %w", err)
	}
	x := &znode.Txn{Zxid: max(s.zxid, b.zxid) + 1, TimeMillis: s.time}
	_, done := merge(x, tree, b)
	return done, nil
}

// OnlyState leaves out what restores have left in the state: a backup that is on its
// way, and the answers to those that had a key. A backup is none the worse for it, and
// is then of the format's first version, which all can read.
func (s *Snapshot) OnlyState() {
	s.upload = nil
	s.keys = slices.DeleteFunc(s.keys, func(a *answer) bool { return a.result.Op == OpRestore })
}
