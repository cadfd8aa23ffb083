package znode

// Txn is the context of one transaction: everything that an edit must not
// determine by itself, and the events it caused. The zero value of a flag is
// the strict choice. A Txn is for one goroutine and may be reused after Reset.
type Txn struct {
	Zxid       Zxid
	TimeMillis int64     // wall clock of the proposer, milliseconds since the epoch
	Session    SessionID // session of the client; owner of ephemerals it creates
	Identities []ID      // of the connection
	Trace      string    // W3C traceparent of the request; "" if it has none

	ExtendedTypes bool // TTL znodes are allowed (extendedTypesEnabled)
	EnforceQuota  bool // hard quotas refuse (enforceQuota)
	FirstRules    bool // as in release 1.0: versions and sequence numbers wrap; x509 ids in ACLs are subjects only

	// Events are what the edits emitted, in order.
	Events []Event
	// Exceeded lists the quota'd paths whose soft or hard limit this
	// transaction went over, for the log.
	Exceeded []string

	undo    []undoRecord
	atomic  bool
	granted map[aclID]Perms // of long lists, to Identities; see Tree.permits
}

// Reset makes x ready for the next transaction; the identity fields stay.
func (x *Txn) Reset() {
	clear(x.Events)
	clear(x.granted)
	x.Events, x.Exceeded = x.Events[:0], nil
}

// undoRecord is what a primitive did to the tree.
type undoRecord struct {
	kind  undoKind
	node  *node
	saved node // for undoEdited: the node before
}

type undoKind uint8

const (
	undoInserted undoKind = iota
	undoRemoved
	undoEdited
	undoACL // saved.acl -> node.acl, besides undoEdited
)

// Begin starts a multi: until Commit or Rollback, edits can be undone.
func (t *Tree) Begin(x *Txn) { x.atomic = true }

// Commit keeps the edits since Begin.
func (t *Tree) Commit(x *Txn) {
	for i := range x.undo {
		switch c := &x.undo[i]; c.kind {
		case undoRemoved:
			t.acls.drop(c.node.acl)
		case undoACL:
			t.acls.drop(c.saved.acl)
		}
	}
	x.endAtomic()
}

// Rollback undoes every edit and event since Begin.
func (t *Tree) Rollback(x *Txn) {
	for i := len(x.undo) - 1; i >= 0; i-- {
		switch c := &x.undo[i]; c.kind {
		case undoInserted:
			t.unlink(c.node)
			t.acls.drop(c.node.acl)
		case undoRemoved:
			t.link(c.node)
		case undoACL:
			t.acls.drop(c.node.acl)
			c.node.acl = c.saved.acl
		case undoEdited:
			t.undoEdit(c)
		}
	}
	x.endAtomic()
	x.Reset()
}

// undoEdit restores the fields that an edit may have changed. Other records
// restore the place among the siblings and the set of children.
func (t *Tree) undoEdit(c *undoRecord) {
	n, s := c.node, &c.saved
	t.replaceBlob(n, func() { n.blob = s.blob })
	n.mzxid, n.mtime, n.version = s.mzxid, s.mtime, s.version
	if n.rare != nil {
		was := s.readRare()
		n.rare.pzxid, n.rare.aversion, n.rare.creates = was.pzxid, was.aversion, was.creates
	}
}

func (x *Txn) endAtomic() {
	clear(x.undo)
	x.undo, x.atomic = x.undo[:0], false
}

// The primitives. Nothing else changes a znode, and only they emit events.

// insert adds n under its parent, and counts the creation there.
func (t *Tree) insert(x *Txn, parent, n *node) {
	parent = t.edit(x, parent)
	r := parent.editRare()
	if next := r.creates + 1; next > r.creates {
		r.creates = next // a full counter does not change (DataTree.createNode only increments)
	}
	r.pzxid = x.Zxid
	t.link(n)
	if x.atomic {
		x.undo = append(x.undo, undoRecord{kind: undoInserted, node: n})
	}
	x.emit(t, EventCreated, n, parent)
}

// remove removes n, which has no children.
func (t *Tree) remove(x *Txn, n *node) {
	if x.atomic {
		n = t.own(n) // a rollback links it again
	}
	parent := t.edit(x, t.parentOf(n.path()))
	parent.editRare().pzxid = x.Zxid
	x.emit(t, EventDeleted, n, parent)
	t.unlink(n)
	if x.atomic {
		x.undo = append(x.undo, undoRecord{kind: undoRemoved, node: n})
	} else {
		t.acls.drop(n.acl)
	}
}

// replaceData gives n new data and counts the change.
func (t *Tree) replaceData(x *Txn, n *node, data []byte) *node {
	n = t.edit(x, n)
	before := n.data()
	t.putData(n, data)
	n.version = x.nextVersion(n.version)
	n.mzxid, n.mtime = x.Zxid, x.TimeMillis
	x.emit(t, EventDataChanged, n, nil).Before = before
	return n
}

// replaceACL gives n another ACL; no watch fires for it.
func (t *Tree) replaceACL(x *Txn, n *node, list []ACL) *node {
	n = t.edit(x, n)
	old := n.acl
	n.acl = t.acls.ref(list)
	r := n.editRare()
	r.aversion = x.nextVersion(r.aversion)
	if x.atomic {
		x.undo = append(x.undo, undoRecord{kind: undoACL, node: n, saved: node{acl: old}})
	} else {
		t.acls.drop(old)
	}
	return n
}

// nextVersion is the version after v. 0 follows -2, because -1 in a condition means any version and would match
// any later write (ZooKeeper 3.9.3, ZOOKEEPER-4743).
func (x *Txn) nextVersion(v Version) Version {
	if v++; v == AnyVersion && !x.FirstRules {
		v = 0
	}
	return v
}

// putData changes data without counting a change by a client.
func (t *Tree) putData(n *node, data []byte) {
	t.replaceBlob(n, func() { n.setBlob(n.path(), data) })
}

// edit returns the copy of n to write to, and records the old one for a rollback.
func (t *Tree) edit(x *Txn, n *node) *node {
	n = t.own(n)
	if x.atomic {
		x.undo = append(x.undo, undoRecord{kind: undoEdited, node: n, saved: n.copy()})
	}
	return n
}

// emit adds an event. The caller may complete it before the next one is added.
func (x *Txn) emit(t *Tree, typ EventType, n, parent *node) *Event {
	x.Events = append(x.Events, x.event(t, typ, n, parent))
	return &x.Events[len(x.Events)-1]
}

func (x *Txn) event(t *Tree, typ EventType, n, parent *node) Event {
	e := Event{
		Type: typ, Path: n.path(), Zxid: x.Zxid, ACL: t.acls.get(n.acl),
		Stat: n.stat(), Data: n.data(), Mode: n.mode(), Txn: x,
	}
	if parent != nil {
		e.ParentACL = t.acls.get(parent.acl)
	}
	return e
}

// EmitAs adds the event of a znode of t that x has not edited there, as when t takes the place of another tree.
func (t *Tree) EmitAs(x *Txn, typ EventType, path string, before []byte) {
	n, parent := t.get(path), (*node)(nil)
	if typ != EventDataChanged {
		parent = t.parentOf(path)
	}
	x.emit(t, typ, n, parent).Before = before
}
