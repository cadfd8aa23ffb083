package znode

import "strings"

// aclID is a short name for an ACL list. Most znodes share a handful of lists,
// so a node stores the number, and the table stores the list and counts its
// users.
type aclID uint32

// openACL is the number of world:anyone:all, never removed.
const openACL aclID = 0

type aclTable struct {
	lists []aclEntry
	byKey map[string]aclID
	free  []aclID
	bytes int64 // memory of all lists; see ACLMemory
}

type aclEntry struct {
	list []ACL
	key  string
	uses int
}

func newACLTable() aclTable {
	t := aclTable{byKey: map[string]aclID{}}
	t.ref(OpenACL)
	return t
}

// ref returns the number of list and counts one more user of it.
func (t *aclTable) ref(list []ACL) aclID {
	key := aclKey(list)
	if id, ok := t.byKey[key]; ok {
		t.lists[id].uses++
		return id
	}
	own := make([]ACL, len(list))
	for i, a := range list { // cloned: the strings may lie in a large log entry
		own[i] = ACL{a.Perms, ID{strings.Clone(a.ID.Scheme), strings.Clone(a.ID.ID)}}
	}
	e := aclEntry{list: own, key: key, uses: 1}
	t.bytes += ACLMemory(list)
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		t.lists[id] = e
		t.byKey[key] = id
		return id
	}
	t.lists = append(t.lists, e)
	id := aclID(len(t.lists) - 1)
	t.byKey[key] = id
	return id
}

// hold counts one more user of a number in use; drop counts one less.
func (t *aclTable) hold(id aclID) { t.lists[id].uses++ }

func (t *aclTable) drop(id aclID) {
	e := &t.lists[id]
	e.uses--
	if e.uses == 0 && id != openACL {
		t.bytes -= ACLMemory(e.list)
		delete(t.byKey, e.key)
		*e = aclEntry{}
		t.free = append(t.free, id)
	}
}

func (t *aclTable) get(id aclID) []ACL { return t.lists[id].list }

func aclKey(list []ACL) string {
	var b strings.Builder
	for _, a := range list {
		for s := uint(0); s < 32; s += 8 {
			b.WriteByte(byte(a.Perms >> s))
		}
		writeSized(&b, a.ID.Scheme)
		writeSized(&b, a.ID.ID)
	}
	return b.String()
}

func writeSized(b *strings.Builder, s string) {
	for i := uint(0); i < 32; i += 8 {
		b.WriteByte(byte(len(s) >> i))
	}
	b.WriteString(s)
}
