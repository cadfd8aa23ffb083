package znode

// Txn is the context of one transaction: everything an edit must not find out
// by itself, and the events it caused. The zero value of a flag is the strict
// choice. A Txn is used by one goroutine and may be used again after Reset.
type Txn struct {
	Zxid       Zxid
	TimeMillis int64     // wall clock of the proposer, milliseconds since the epoch
	Session    SessionID // session that asks; owner of ephemerals it creates
	Identities []ID      // what the connection has authenticated as

	ExtendedTypes bool // TTL znodes are allowed (extendedTypesEnabled)
	EnforceQuota  bool // hard quotas refuse (enforceQuota)

	// Events are what the edits emitted, in order.
	Events []Event
	// Exceeded lists the quota'd paths whose soft or hard limit this
	// transaction went over, for the log.
	Exceeded []string

	undo   []change
	atomic bool
}

// Reset makes x ready for the next transaction; the identity fields stay.
func (x *Txn) Reset() {
	clear(x.Events)
	x.Events, x.Exceeded = x.Events[:0], nil
}

// change is an undo record: what a primitive did to the tree.
type change struct {
	kind  changeKind
	node  *node
	saved node // for changeEdited: the node before
}

type changeKind uint8

const (
	changeInserted changeKind = iota
	changeRemoved
	changeEdited
	changeACL // saved.acl -> node.acl, besides changeEdited
)

// Begin starts a multi: until Commit or Rollback, edits can be undone.
func (t *Tree) Begin(x *Txn) { x.atomic = true }

// Commit keeps the edits since Begin.
func (t *Tree) Commit(x *Txn) {
	for i := range x.undo {
		switch c := &x.undo[i]; c.kind {
		case changeRemoved:
			t.acls.drop(c.node.acl)
		case changeACL:
			t.acls.drop(c.saved.acl)
		}
	}
	x.endAtomic()
}

// Rollback takes back every edit and event since Begin.
func (t *Tree) Rollback(x *Txn) {
	for i := len(x.undo) - 1; i >= 0; i-- {
		switch c := &x.undo[i]; c.kind {
		case changeInserted:
			t.unlink(c.node)
			t.acls.drop(c.node.acl)
		case changeRemoved:
			t.link(c.node)
		case changeACL:
			t.acls.drop(c.node.acl)
			c.node.acl = c.saved.acl
		case changeEdited:
			t.restore(c)
		}
	}
	x.endAtomic()
	x.Reset()
}

// restore puts the fields back that an edit may have changed. The place among
// the siblings and the set of children are other records' business.
func (t *Tree) restore(c *change) {
	n, s := c.node, &c.saved
	t.account(n, -1)
	n.blob = s.blob
	t.account(n, 1)
	n.mzxid, n.mtime, n.version = s.mzxid, s.mtime, s.version
	if n.rare != nil {
		was := s.readRare()
		n.rare.pzxid, n.rare.aversion, n.rare.creates = was.pzxid, was.aversion, was.creates
	}
	t.noteQuota(n, true)
}

func (x *Txn) endAtomic() {
	clear(x.undo)
	x.undo, x.atomic = x.undo[:0], false
}

// The primitives. Nothing else changes a znode, and only they emit events.

// insert adds n under its parent, which it makes a parent once more.
func (t *Tree) insert(x *Txn, parent, n *node) {
	parent = t.edit(x, parent)
	r := parent.editRare()
	if next := r.creates + 1; next > r.creates {
		r.creates = next // a full counter stays (DataTree.createNode raises only)
	}
	r.pzxid = x.Zxid
	t.link(n)
	if x.atomic {
		x.undo = append(x.undo, change{kind: changeInserted, node: n})
	}
	x.emit(t, EventCreated, n, parent)
}

// remove takes n, which has no children, out.
func (t *Tree) remove(x *Txn, n *node) {
	if x.atomic {
		n = t.own(n) // a rollback would link it again
	}
	parent := t.edit(x, t.parentOf(n.path()))
	parent.editRare().pzxid = x.Zxid
	x.emit(t, EventDeleted, n, parent)
	t.unlink(n)
	if x.atomic {
		x.undo = append(x.undo, change{kind: changeRemoved, node: n})
	} else {
		t.acls.drop(n.acl)
	}
}

// replaceData gives n new data and counts the change.
func (t *Tree) replaceData(x *Txn, n *node, data []byte) *node {
	n = t.edit(x, n)
	t.putData(n, data)
	n.version++
	n.mzxid, n.mtime = x.Zxid, x.TimeMillis
	x.emit(t, EventDataChanged, n, nil)
	return n
}

// replaceACL gives n another ACL; no watch fires for it.
func (t *Tree) replaceACL(x *Txn, n *node, list []ACL) *node {
	n = t.edit(x, n)
	old := n.acl
	n.acl = t.acls.ref(list)
	n.editRare().aversion++
	if x.atomic {
		x.undo = append(x.undo, change{kind: changeACL, node: n, saved: node{acl: old}})
	} else {
		t.acls.drop(old)
	}
	return n
}

// putData changes data without counting it as a change by a client.
func (t *Tree) putData(n *node, data []byte) {
	t.account(n, -1)
	n.setBlob(n.path(), data)
	t.account(n, 1)
	t.noteQuota(n, true)
}

// edit returns the copy of n to write to and remembers what it was.
func (t *Tree) edit(x *Txn, n *node) *node {
	n = t.own(n)
	if x.atomic {
		x.undo = append(x.undo, change{kind: changeEdited, node: n, saved: n.copy()})
	}
	return n
}

func (x *Txn) emit(t *Tree, typ EventType, n, parent *node) {
	e := Event{Type: typ, Path: n.path(), Zxid: x.Zxid, ACL: t.acls.get(n.acl)}
	if parent != nil {
		e.ParentACL = t.acls.get(parent.acl)
	}
	x.Events = append(x.Events, e)
}
