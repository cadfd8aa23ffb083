package backup

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Difference is a znode that differs between two backups.
type Difference struct {
	Path        string
	Left, Right bool // whether it exists in each
	// What differs if it exists in both. Kind is persistent, container, a TTL in milliseconds, or
	// ephemeral.
	Data, ACL, Kind bool
	Ephemeral       bool // in either backup
}

// ephemeral reports whether there is an ephemeral at path.
func (b *Backup) ephemeral(path string) bool {
	stat, _ := b.tree.Exists(path, super)
	return stat.EphemeralOwner != 0
}

// Diff lists the znodes that differ, by path. It ignores versions, times and sessions, and also the list of
// members and the counted usage of quotas, which a restore does not bring back.
func Diff(left, right *Backup) (all []Difference) {
	a, b := left.tree.Snapshot(), right.tree.Snapshot()
	defer a.Release()
	defer b.Release()
	marks := map[string]znode.SessionID{} // of the right side's znodes that are not persistent
	_ = b.Walk(func(r *znode.Record) error {
		if r.Stat.EphemeralOwner != 0 {
			marks[r.Path] = r.Stat.EphemeralOwner
		}
		if _, code := left.tree.Exists(r.Path, super); code != znode.OK {
			all = append(all, Difference{Path: r.Path, Right: true, Ephemeral: right.ephemeral(r.Path)})
		}
		return nil
	})
	_ = a.Walk(func(r *znode.Record) error {
		d := Difference{Path: r.Path, Left: true, Ephemeral: left.ephemeral(r.Path)}
		data, stat, code := right.tree.Get(r.Path, super)
		if code != znode.OK {
			all = append(all, d)
			return nil
		}
		acl, _, _ := right.tree.ACLOf(r.Path, super)
		other := stat.EphemeralOwner != 0
		d.Right = true
		d.ACL = !slices.Equal(acl, r.ACL)
		d.Kind = d.Ephemeral != other || !other && marks[r.Path] != r.Stat.EphemeralOwner
		d.Ephemeral = d.Ephemeral || other
		if _, usage := usageSubject(r.Path); !usage && r.Path != znode.ConfigPath {
			d.Data = !bytes.Equal(data, r.Data) || (data == nil) != (r.Data == nil)
		}
		if d.Data || d.ACL || d.Kind {
			all = append(all, d)
		}
		return nil
	})
	slices.SortFunc(all, func(x, y Difference) int { return strings.Compare(x.Path, y.Path) })
	return all
}
