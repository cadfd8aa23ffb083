package backup

import (
	"bytes"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// emit adds the events: first the deletions, children before their parents, then the
// creations and changes, parents before their children.
func (g *merger) emit(tree *znode.Tree) {
	g.done.Created, g.done.Deleted = len(g.created), len(g.deleted)
	slices.SortFunc(g.deleted, func(a, b string) int { return strings.Compare(b, a) })
	slices.Sort(g.created)
	slices.Sort(g.changed)
	g.x.Events = slices.Grow(g.x.Events, len(g.deleted)+len(g.created)+len(g.changed))
	for _, path := range g.deleted {
		g.now.EmitAs(g.x, znode.EventDeleted, path, nil)
	}
	created, changed := g.created, g.changed
	for len(created)+len(changed) > 0 {
		if len(changed) == 0 || len(created) > 0 && created[0] < changed[0] {
			tree.EmitAs(g.x, znode.EventCreated, created[0], nil)
			created = created[1:]
		} else {
			before, _, _ := g.now.Get(changed[0], super)
			tree.EmitAs(g.x, znode.EventDataChanged, changed[0], before)
			changed = changed[1:]
		}
	}
}

// Replace adds to x the events of a tree that takes another's place: the znodes that are gone, that are new, or that
// have been written meanwhile. It leaves out the list of members. It changes neither tree.
func Replace(x *znode.Txn, now, next *znode.Tree) {
	g := &merger{x: x, now: now}
	before, after := now.Snapshot(), next.Snapshot()
	defer before.Release()
	defer after.Release()
	g.must(before.Walk(func(r *znode.Record) error {
		if _, code := next.Exists(r.Path, super); code != znode.OK {
			g.deleted = append(g.deleted, r.Path)
		}
		return nil
	}))
	g.must(after.Walk(func(r *znode.Record) error {
		data, stat, code := now.Get(r.Path, super)
		switch {
		case r.Path == znode.ConfigPath:
		case code != znode.OK:
			g.created = append(g.created, r.Path)
		case stat.Mzxid != r.Stat.Mzxid || !bytes.Equal(data, r.Data):
			g.changed = append(g.changed, r.Path)
		}
		return nil
	}))
	g.emit(next)
}
