package backup

import (
	"fmt"

	"github.com/zk-lite/zk-lite/znode"
)

// maxZxid bounds a backup's zxid. A restore's is larger, and there must be room
// for all later ones.
const maxZxid znode.Zxid = 1 << 61

// super is an identity with all permissions.
var super = []znode.ID{znode.SuperIDs}

// Backup is a tree that can replace the current one in a restore.
type Backup struct {
	tree *znode.Tree
	zxid znode.Zxid
	time int64
}

// New returns the backup of a tree, with the zxid of the last transaction in it and
// its time in milliseconds since the epoch. The error describes why the tree cannot
// be restored.
func New(tree *znode.Tree, zxid znode.Zxid, timeMillis int64) (*Backup, error) {
	b := &Backup{tree: tree, zxid: zxid, time: timeMillis}
	return b, b.check()
}

// Zxid is the zxid of the last transaction in the backup.
func (b *Backup) Zxid() znode.Zxid { return b.zxid }

// TimeMillis is the time of the last transaction, in milliseconds since the epoch.
func (b *Backup) TimeMillis() int64 { return b.time }

// Size is the size of the backup's tree.
func (b *Backup) Size() znode.Size { return b.tree.Size() }

// Memory estimates how much of the heap its tree takes, in bytes.
func (b *Backup) Memory() int64 { return b.tree.Memory() }

// check refuses a tree that no server can have written, and that would be
// invalid without its ephemerals.
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

// wanted returns the znode's Stat, and whether to restore the znode: not an
// ephemeral, because its session has ended.
func (b *Backup) wanted(path string) bool {
	stat, code := b.tree.Exists(path, super)
	return code == znode.OK && stat.EphemeralOwner == 0
}
