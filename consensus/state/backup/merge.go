package backup

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Changes counts the znodes that a restore has changed.
type Changes struct {
	Created int // were missing
	Changed int // had other data, another ACL, or were of another kind
	Deleted int // are not in the backup
	Kept    int // ephemerals of current sessions, which stay
	Skipped int // ephemerals of the backup, which are left out
}

// Counts lists the numbers, in the order in which snapshots store them.
func (c *Changes) Counts() []*int {
	return []*int{&c.Created, &c.Changed, &c.Deleted, &c.Kept, &c.Skipped}
}

// merger turns a tree into a backup's, as one transaction. It does not touch
// znodes that are the same, so that clients see only real changes.
//
// It builds the result as another tree, of the backup's znodes and of the
// current ephemerals that still have a place in it. The cost does not depend on
// how much differs.
type merger struct {
	x      *znode.Txn
	now    *znode.Tree
	backup *Backup
	done   Changes
	edits  bool // there is any difference

	// owners are the sessions of the current ephemerals, and the markers of the
	// current containers and TTL znodes.
	owners      map[string]znode.SessionID
	newChildren map[string]int32  // parent → number of its created children
	lostChild   map[string]bool   // parents of deleted znodes
	quotas      map[string]*usage // quota'd path → its usage in the result

	created, deleted []string
	changed          []string // those whose data, or kind, changes

	builder *znode.Builder
	stats   []znode.Record // the quotas' records of usage, added last
}

// usage counts a subtree.
type usage struct{ count, bytes int64 }

// Merge computes the tree that a restore of b makes of now, and adds its events to
// x. It changes neither tree. If nothing differs, the result is now itself.
func Merge(x *znode.Txn, now *znode.Tree, b *Backup) (*znode.Tree, Changes) {
	g := &merger{
		x: x, now: now, backup: b,
		owners: map[string]znode.SessionID{}, newChildren: map[string]int32{},
		lostChild: map[string]bool{}, quotas: map[string]*usage{}, builder: znode.NewBuilder(),
	}
	present, future := now.Snapshot(), b.tree.Snapshot()
	defer present.Release()
	defer future.Release()
	g.must(present.Walk(g.compareNow))
	g.must(future.Walk(g.compareThen))
	g.must(future.Walk(g.addThen))
	g.must(present.Walk(g.addNow))
	if !g.edits {
		return now, g.done
	}
	g.addStats()
	tree, err := g.builder.Tree()
	g.must(err)
	g.emit(tree)
	return tree, g.done
}

// must panics for an error that the checks of a Backup have ruled out.
func (g *merger) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("backup: invariant broken: restoring a backup that was checked: %v", err))
	}
}

// compareNow decides whether a current znode stays.
func (g *merger) compareNow(r *znode.Record) error {
	if r.Stat.EphemeralOwner != 0 {
		g.owners[r.Path] = r.Stat.EphemeralOwner
	}
	wanted, ephemeral := g.backup.wanted(r.Path), g.ephemeral(r)
	switch {
	case wanted && !ephemeral:
		return nil
	case !wanted && ephemeral && g.backup.wanted(znode.Parent(r.Path)):
		g.done.Kept++
		g.countUsage(r.Path)
		return nil
	}
	g.deleted = append(g.deleted, r.Path)
	g.lostChild[znode.Parent(r.Path)] = true
	return nil
}

// ephemeral reports whether a current znode belongs to a session.
func (g *merger) ephemeral(r *znode.Record) bool {
	if r.Stat.EphemeralOwner == 0 {
		return false
	}
	stat, _ := g.now.Exists(r.Path, super)
	return stat.EphemeralOwner != 0
}

// compareThen decides whether a znode of the backup is new.
func (g *merger) compareThen(r *znode.Record) error {
	if r.Stat.EphemeralOwner != 0 && !g.backup.wanted(r.Path) {
		g.done.Skipped++
		return nil
	}
	g.countUsage(r.Path)
	if stat, code := g.now.Exists(r.Path, super); code != znode.OK || stat.EphemeralOwner != 0 {
		g.created = append(g.created, r.Path)
		parent := znode.Parent(r.Path)
		g.newChildren[parent] = more(g.newChildren[parent], 1)
	}
	return nil
}

// countUsage prepares to count, if the znode at path records the usage of a quota.
func (g *merger) countUsage(path string) {
	if subject, ok := usageSubject(path); ok {
		g.quotas[subject] = &usage{}
	}
}

// addThen adds a znode of the backup to the result.
func (g *merger) addThen(r *znode.Record) error {
	if r.Stat.EphemeralOwner != 0 && !g.backup.wanted(r.Path) {
		return nil
	}
	data, stat, code := g.now.Get(r.Path, super)
	var next znode.Record
	if code != znode.OK || stat.EphemeralOwner != 0 {
		next = g.create(r)
	} else {
		next = g.keep(r, data, &stat)
	}
	return g.add(&next)
}

// create makes a znode of the backup a new one. It keeps its versions, so that a client
// that saw it then finds it unchanged, and continues numbering its children from its old
// counter.
func (g *merger) create(r *znode.Record) znode.Record {
	g.edits = true
	next := *r
	s := &next.Stat
	s.Czxid, s.Mzxid, s.Pzxid = g.x.Zxid, g.x.Zxid, g.x.Zxid
	s.Ctime, s.Mtime = g.x.TimeMillis, g.x.TimeMillis
	s.Cversion = max(s.Cversion, znode.Version(g.newChildren[r.Path]))
	return next
}

// keep is a current znode with the backup's changes.
func (g *merger) keep(r *znode.Record, data []byte, stat *znode.Stat) znode.Record {
	acl, _, _ := g.now.ACLOf(r.Path, super)
	next := znode.Record{Path: r.Path, Data: data, ACL: acl, Stat: *stat}
	s := &next.Stat
	s.EphemeralOwner = g.owners[r.Path]
	// A Record has the number of children ever created, which a Stat hides in the
	// number of creates and deletes. The addition may carry into the sign.
	had := znode.Version(uint32(stat.Cversion+znode.Version(stat.NumChildren)) / 2)
	s.Cversion = znode.Version(more(int32(max(had, r.Stat.Cversion)), g.newChildren[r.Path]))
	g.edits = g.edits || s.Cversion != had
	if g.lostChild[r.Path] || g.newChildren[r.Path] > 0 {
		s.Pzxid, g.edits = g.x.Zxid, true
	}
	changed := false
	if !g.sameData(r, &next) {
		next.Data, s.EphemeralOwner = r.Data, r.Stat.EphemeralOwner
		s.Mzxid, s.Mtime = g.x.Zxid, g.x.TimeMillis
		s.Version = max(s.Version, r.Stat.Version) + 1
		g.changed = append(g.changed, r.Path)
		changed = true
	}
	if !slices.Equal(acl, r.ACL) {
		next.ACL = r.ACL
		s.Aversion = max(s.Aversion, r.Stat.Aversion) + 1
		changed = true
	}
	if changed {
		g.done.Changed++
		g.edits = true
	}
	return next
}

// sameData compares data and kind. It ignores the list of members, which stays
// current, and the usage of quotas, which is counted.
func (g *merger) sameData(r, now *znode.Record) bool {
	if _, ok := usageSubject(r.Path); ok || r.Path == znode.ConfigPath {
		return true
	}
	return (r.Data == nil) == (now.Data == nil) && bytes.Equal(r.Data, now.Data) &&
		r.Stat.EphemeralOwner == now.Stat.EphemeralOwner
}

// addNow adds the current ephemerals that stay to the result.
func (g *merger) addNow(r *znode.Record) error {
	if r.Stat.EphemeralOwner == 0 || !g.ephemeral(r) || g.backup.wanted(r.Path) ||
		!g.backup.wanted(znode.Parent(r.Path)) {
		return nil
	}
	return g.add(r)
}

// add adds a znode to the result, at the end if it records usage.
func (g *merger) add(r *znode.Record) error {
	if _, ok := usageSubject(r.Path); ok {
		g.stats = append(g.stats, *r)
		return nil
	}
	if len(g.quotas) > 0 && !strings.HasPrefix(r.Path, znode.SystemPath+"/") {
		for path := r.Path; path != znode.RootPath; path = znode.Parent(path) {
			if u := g.quotas[path]; u != nil {
				u.count++
				u.bytes += int64(len(r.Data))
			}
		}
	}
	return g.builder.Add(r)
}

// addStats adds the records of usage, as they are written when a quota is new.
func (g *merger) addStats() {
	for i := range g.stats {
		r := &g.stats[i]
		subject, _ := usageSubject(r.Path)
		u := g.quotas[subject]
		r.Data = fmt.Appendf(nil, "count=%d,bytes=%d", u.count, u.bytes)
		g.must(g.builder.Add(r))
	}
}

// usageSubject returns the path whose usage a znode records, if it does.
func usageSubject(path string) (string, bool) {
	subject, ok := strings.CutPrefix(path, znode.QuotaPath)
	if !ok {
		return "", false
	}
	subject, ok = strings.CutSuffix(subject, "/zookeeper_stats")
	return subject, ok && subject != ""
}

// more adds to a number of children, which does not exceed its limit, as in every
// create.
func more(n, by int32) int32 { return int32(min(int64(n)+int64(by), math.MaxInt32)) }
