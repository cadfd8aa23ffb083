package backup

import (
	"fmt"

	"github.com/zk-lite/zk-lite/znode"
)

// maxZxid bounds a backup's zxid. A restore's is larger, and there must be
// room for all that come after it.
const maxZxid znode.Zxid = 1 << 61

// super is an identity with all permissions.
var super = []znode.ID{znode.SuperIDs}

// Backup is a tree that a restore can put in the place of the present one.
type Backup struct {
	tree *znode.Tree
	zxid znode.Zxid
	time int64
}

// New returns the backup that has this tree, the zxid of the last transaction in it,
// and its time in milliseconds since the epoch. The error describes what makes it
// impossible to restore.
func New(tree *znode.Tree, zxid znode.Zxid, timeMillis int64) (*Backup, error) {
	b := &Backup{tree: tree, zxid: zxid, time: timeMillis}
	return b, b.check()
}

// Zxid is that of the last transaction in the backup.
func (b *Backup) Zxid() znode.Zxid { return b.zxid }

// TimeMillis is when that was, in milliseconds since the epoch.
func (b *Backup) TimeMillis() int64 { return b.time }

// Size is what the backup holds.
func (b *Backup) Size() znode.Size { return b.tree.Size() }

// Memory is about how much of the heap its tree takes, in bytes.
func (b *Backup) Memory() int64 { return b.tree.Memory() }

// check finds what no server can have written: without its ephemerals, such a
// tree would not be one.
func (b *Backup) check() error {
	if b.zxid < 0 || b.zxid > maxZxid {
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
