package state

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Restored is what a restore has changed, in numbers of znodes.
type Restored struct {
	Created int // were missing
	Changed int // had other data, another ACL, or were of another kind
	Deleted int // are not in the backup
	Kept    int // ephemerals of sessions of now, which stay
	Skipped int // ephemerals of the backup, which are left out
}

func (r *Restored) counts() []*int {
	return []*int{&r.Created, &r.Changed, &r.Deleted, &r.Kept, &r.Skipped}
}

// merger turns a tree into a backup's, as one transaction: what is the same stays
// as it is, so that a client sees what it has to see and nothing else.
//
// The result is built as another tree, of the backup's znodes and of the present
// ephemerals that still have a place in it. That costs the same whether much or
// little is different.
type merger struct {
	x      *znode.Txn
	now    *znode.Tree
	backup *Backup
	done   Restored
	edits  bool // there is any difference

	// owners are the sessions of the present ephemerals, and the markers of the
	// present containers and TTL znodes.
	owners map[string]znode.SessionID
	births map[string]int32    // parent → children that are created
	losses map[string]struct{} // parents of those that are deleted
	quotas map[string]*usage   // quota'd path → what there will be

	created, deleted []string
	changed          []string // those whose data, or kind, changes

	builder *znode.Builder
	stats   []znode.Record // the quotas' records of usage, added when that is known
}

// usage counts a subtree.
type usage struct{ count, bytes int64 }

// merge computes the tree that a restore of b makes of now, and adds its events to
// x. Neither tree is changed. When nothing is different the result is now itself.
func merge(x *znode.Txn, now *znode.Tree, b *Backup) (*znode.Tree, Restored) {
	g := &merger{
		x: x, now: now, backup: b,
		owners: map[string]znode.SessionID{}, births: map[string]int32{},
		losses: map[string]struct{}{}, quotas: map[string]*usage{}, builder: znode.NewBuilder(),
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

// must is for what the checks of a Backup have ruled out.
func (g *merger) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("state: invariant broken: restoring a backup that was checked: %v", err))
	}
}

// compareNow finds out what becomes of a present znode.
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
	g.losses[znode.Parent(r.Path)] = struct{}{}
	return nil
}

// ephemeral reports whether a present znode belongs to a session.
func (g *merger) ephemeral(r *znode.Record) bool {
	if r.Stat.EphemeralOwner == 0 {
		return false
	}
	stat, _ := g.now.Exists(r.Path, super)
	return stat.EphemeralOwner != 0
}

// compareThen finds what of the backup is missing.
func (g *merger) compareThen(r *znode.Record) error {
	if r.Stat.EphemeralOwner != 0 && !g.backup.wanted(r.Path) {
		g.done.Skipped++
		return nil
	}
	g.countUsage(r.Path)
	if stat, code := g.now.Exists(r.Path, super); code != znode.OK || stat.EphemeralOwner != 0 {
		g.created = append(g.created, r.Path)
		parent := znode.Parent(r.Path)
		g.births[parent] = more(g.births[parent], 1)
	}
	return nil
}

// countUsage prepares to count, if the znode at path records the usage of a quota.
func (g *merger) countUsage(path string) {
	if subject, ok := usageSubject(path); ok {
		g.quotas[subject] = &usage{}
	}
}

// addThen puts a znode of the backup into the result.
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

// create makes a znode of the backup a new one. It has the versions that it had,
// so that who has seen it then finds it as it was, and numbers its children from
// where it was.
func (g *merger) create(r *znode.Record) znode.Record {
	g.edits = true
	next := *r
	s := &next.Stat
	s.Czxid, s.Mzxid, s.Pzxid = g.x.Zxid, g.x.Zxid, g.x.Zxid
	s.Ctime, s.Mtime = g.x.TimeMillis, g.x.TimeMillis
	s.Cversion = max(s.Cversion, znode.Version(g.births[r.Path]))
	return next
}

// keep is a znode that is there now, with what the backup changes in it.
func (g *merger) keep(r *znode.Record, data []byte, stat *znode.Stat) znode.Record {
	acl, _, _ := g.now.ACLOf(r.Path, super)
	next := znode.Record{Path: r.Path, Data: data, ACL: acl, Stat: *stat}
	s := &next.Stat
	s.EphemeralOwner = g.owners[r.Path]
	// A Record has the number of children ever created, which a Stat hides in the
	// number of creates and deletes. The addition may carry into the sign.
	had := znode.Version(uint32(stat.Cversion+znode.Version(stat.NumChildren)) / 2)
	s.Cversion = znode.Version(more(int32(max(had, r.Stat.Cversion)), g.births[r.Path]))
	g.edits = g.edits || s.Cversion != had
	if _, lost := g.losses[r.Path]; lost || g.births[r.Path] > 0 {
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

// sameData compares data and kind. The list of members is that of now, and the
// usage of quotas is counted, so neither is the backup's business.
func (g *merger) sameData(r, now *znode.Record) bool {
	if _, ok := usageSubject(r.Path); ok || r.Path == znode.ConfigPath {
		return true
	}
	return (r.Data == nil) == (now.Data == nil) && bytes.Equal(r.Data, now.Data) &&
		r.Stat.EphemeralOwner == now.Stat.EphemeralOwner
}

// addNow puts the present ephemerals that stay into the result.
func (g *merger) addNow(r *znode.Record) error {
	if r.Stat.EphemeralOwner == 0 || !g.ephemeral(r) || g.backup.wanted(r.Path) ||
		!g.backup.wanted(znode.Parent(r.Path)) {
		return nil
	}
	return g.add(r)
}

// add puts a znode into the result, at the end if it records usage.
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

// more adds to a number of children, which stays at its limit as in every create.
func more(n, by int32) int32 { return int32(min(int64(n)+int64(by), math.MaxInt32)) }

// emit adds the events: first what goes, children before their parents, then what
// comes and changes, parents before their children.
func (g *merger) emit(tree *znode.Tree) {
	g.done.Created, g.done.Deleted = len(g.created), len(g.deleted)
	slices.SortFunc(g.deleted, func(a, b string) int { return strings.Compare(b, a) })
	slices.Sort(g.created)
	slices.Sort(g.changed)
	events := slices.Grow(g.x.Events, len(g.deleted)+len(g.created)+len(g.changed))
	before, after := aclCache{tree: g.now}, aclCache{tree: tree}
	event := func(t znode.EventType, c *aclCache, path string) {
		e := znode.Event{Type: t, Path: path, Zxid: g.x.Zxid, ACL: c.own(path)}
		if t != znode.EventDataChanged {
			e.ParentACL = c.parent(path)
		}
		events = append(events, e)
	}
	for _, path := range g.deleted {
		event(znode.EventDeleted, &before, path)
	}
	created, changed := g.created, g.changed
	for len(created)+len(changed) > 0 {
		if len(changed) == 0 || len(created) > 0 && created[0] < changed[0] {
			event(znode.EventCreated, &after, created[0])
			created = created[1:]
		} else {
			event(znode.EventDataChanged, &after, changed[0])
			changed = changed[1:]
		}
	}
	g.x.Events = events
}

// aclCache looks up ACLs for events, which mostly share a few.
type aclCache struct {
	tree *znode.Tree
	last []znode.ACL
	path string // whose ACL of is
	of   []znode.ACL
}

func (c *aclCache) own(path string) []znode.ACL {
	acl, _, _ := c.tree.ACLOf(path, super)
	if !slices.Equal(acl, c.last) {
		c.last = acl
	}
	return c.last
}

func (c *aclCache) parent(path string) []znode.ACL {
	if p := znode.Parent(path); p != c.path {
		c.path, c.of = p, c.own(p)
	}
	return c.of
}
