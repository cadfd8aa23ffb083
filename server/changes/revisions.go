package changes

import "github.com/zk-lite/zk-lite/znode"

// Past is a walk back through the changes of a znode, and with Below of all below it, which are later than To and,
// unless it is 0, earlier than Before. The zero values of the other fields begin it.
type Past struct {
	Path       string
	Below      bool
	To, Before znode.Zxid
	// From is the newest transaction, when the walk began. At its end there was nothing unseen after Floor: if To is
	// lower, some changes have been discarded that the walk would have had.
	From, Floor znode.Zxid
	// Reached is the transaction of the last change that was looked at: another walk with it as Before goes on.
	Reached znode.Zxid

	begun   bool
	restart uint64 // record.restart when it began
	next    uint64 // those before this number are to come
}

// Back visits the next changes of a walk, the newest first, until visit returns false. It looks at a part of the
// record, of whole transactions; more reports that there is more to look at. A Change is valid during its visit. The
// caller holds the view lock, shared.
func (f *Feed) Back(p *Past, visit func(c *Change) bool) (more bool) {
	r := &f.record
	if !p.begun {
		p.begun, p.restart, p.next, p.From = true, r.restart, r.total, r.newest
		if p.Before != 0 {
			p.next = r.seek(p.Before - 1)
		}
	}
	if p.Floor = r.floor; p.restart != r.restart {
		return false // of the former record it has not had all, or did not need more
	}
	for n := 0; p.next > r.oldest(); n++ {
		k := r.entry(p.next - 1)
		switch {
		case k.zxid <= p.To:
			return false
		case n >= scanAtATime && k.zxid != p.Reached:
			return true
		}
		p.next, p.Reached = p.next-1, k.zxid
		if k.path != p.Path && !(p.Below && within(k.path, p.Path)) {
			continue
		}
		c := Change{
			Type: k.typ, Path: k.path, At: Position{Zxid: k.zxid}, Edit: r.event(p.next), By: k.by,
			TimeMillis: k.timeMillis, Purged: k.purged,
		}
		if !visit(&c) {
			return false
		}
	}
	return false
}

// Stands reports whether a znode, whose Stat is now, is still as c has left it.
func (c *Change) Stands(now *znode.Stat) bool {
	return c.Type != znode.EventDeleted && c.Edit.Stat.Mzxid == now.Mzxid && c.Edit.Stat.Version == now.Version
}

// Purge removes the values that the znode at e.Path had, and with EventPurgedBelow those of all below it. What the
// client of e may not WRITE stays; of a znode that is gone, that is what the ACL of the change says. The present values
// are in the tree. The caller holds the view lock alone. It looks at the whole record, some 10 ns for each change.
func (f *Feed) Purge(e *znode.Event, tree *znode.Tree) {
	r := &f.record
	for n := r.oldest(); n < r.total; n++ {
		k := r.entry(n)
		if k.purged || k.path != e.Path && !(e.Type == znode.EventPurgedBelow && within(k.path, e.Path)) {
			continue
		}
		switch code := tree.Allows(e.Txn, k.path, znode.PermWrite); {
		case code == znode.OK, code == znode.ErrNoNode && znode.Permits(k.may.own, znode.PermWrite, e.Txn.Identities):
			r.purge(k)
		}
	}
}
