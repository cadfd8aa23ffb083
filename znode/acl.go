package znode

import (
	"slices"
	"strings"
)

// Perms is a set of permissions (Programmer's Guide, "ACL Permissions").
type Perms int32

// The permissions. A server stores any number a client sends, as ZooKeeper does.
const (
	PermRead   Perms = 1 << iota // get data and list children
	PermWrite                    // set data
	PermCreate                   // create children
	PermDelete                   // delete children
	PermAdmin                    // set the ACL
	PermAll    Perms = 31
)

const permLetters = "rwcda"

// String writes the set in zkCli's order and letters: cdrwa.
func (p Perms) String() string {
	var b strings.Builder
	for _, l := range "cdrwa" {
		if p&(1<<strings.IndexRune(permLetters, l)) != 0 {
			b.WriteRune(l)
		}
	}
	return b.String()
}

// ACL grants permissions to an identity.
type ACL struct {
	Perms Perms
	ID    ID
}

// The identities and lists that are used everywhere.
var (
	Anyone   = ID{Scheme: "world", ID: "anyone"}
	OpenACL  = []ACL{{Perms: PermAll, ID: Anyone}}
	ReadACL  = []ACL{{Perms: PermRead, ID: Anyone}}
	AuthIDs  = ID{Scheme: "auth", ID: ""}
	SuperIDs = ID{Scheme: "super", ID: ""}
)

// MaxACL bounds the entries of a list that a client sets, with "auth" replaced by the client's identities. The tree
// accepts longer ones, which logs and backups may contain.
const MaxACL = 1000

// Permits reports whether a client with these identities may do one of the
// wanted things under an ACL (ZooKeeperServer.checkACL): an empty list and the
// super user may do everything, and any one of the wanted bits is enough.
func Permits(acl []ACL, want Perms, ids []ID) bool { return granted(acl, want, ids) != 0 }

// fewPairs is how many pairs of an entry and an identity are compared one by one: more take longer than a set.
const fewPairs = 256

// granted returns which of the wanted permissions a client with these identities has under an ACL. Its work grows with
// the sum of the two lists, not with their product, because a client chooses both.
func granted(acl []ACL, want Perms, ids []ID) (have Perms) {
	if len(acl) == 0 {
		return want
	}
	for i := range ids {
		if ids[i].Scheme == "super" {
			return want
		}
	}
	for i := range acl {
		if acl[i].ID == Anyone {
			have |= acl[i].Perms & want
		}
	}
	if have == want {
		return want
	}
	if len(acl)*len(ids) > fewPairs {
		return have | grantedByMany(acl, want, ids)
	}
	for i := range acl {
		for j := range ids {
			if acl[i].Perms&want != 0 && ids[j].Scheme == acl[i].ID.Scheme && idMatches(ids[j], acl[i].ID.ID) {
				have |= acl[i].Perms & want
			}
		}
	}
	return have
}

// grantedByMany returns the permissions that the entries of a long ACL grant to a
// client with many identities.
func grantedByMany(acl []ACL, want Perms, ids []ID) (have Perms) {
	set := make(map[ID]bool, len(ids))
	var addresses []ID // a connection has one
	for _, id := range ids {
		if set[id] = true; id.Scheme == "ip" {
			addresses = append(addresses, id)
		}
	}
	for i := range acl {
		a := &acl[i]
		if a.Perms&want&^have == 0 {
			continue
		}
		matches := a.ID.Scheme != "ip" && set[a.ID] || a.ID.Scheme == "sasl" && set[ID{"sasl", "super"}]
		for _, id := range addresses {
			matches = matches || a.ID.Scheme == "ip" && ipMatches(id.ID, a.ID.ID)
		}
		if matches {
			have |= a.Perms & want
		}
	}
	return have
}

// permits is Permits for a znode's ACL in a transaction. It evaluates a long list once per transaction,
// however many operations need it.
func (t *Tree) permits(x *Txn, id aclID, want Perms) bool {
	acl := t.acls.get(id)
	if len(acl)*len(x.Identities) <= fewPairs {
		return Permits(acl, want, x.Identities)
	}
	have, known := x.granted[id]
	if !known {
		if x.granted == nil {
			x.granted = map[aclID]Perms{}
		}
		have = granted(acl, PermAll, x.Identities)
		x.granted[id] = have
	}
	return have&want != 0
}

// fewEntries is how many entries of a list are compared with each other: more take longer than a set.
const fewEntries = 16

// fixACL checks a list that a client wants to set and completes it
// (PrepRequestProcessor.fixupACL): it drops duplicates from what the client
// sent, and then replaces "auth" by every identity that the client has proved.
func fixACL(list []ACL, ids []ID, firstRules bool) ([]ACL, Error) {
	if len(list) == 0 {
		return nil, ErrInvalidACL
	}
	if len(list) == 1 && list[0].ID == Anyone {
		return list, OK
	}
	fixed := make([]ACL, 0, len(list))
	var seen map[ACL]bool
	if len(list) > fewEntries {
		seen = make(map[ACL]bool, len(list))
	}
	for i, a := range list {
		if seen[a] || seen == nil && slices.Contains(list[:i], a) {
			continue
		}
		if seen != nil {
			seen[a] = true
		}
		switch {
		case a.ID.Scheme == "auth":
			n := len(fixed)
			for _, id := range ids {
				if slices.Contains(authSchemes, id.Scheme) {
					fixed = append(fixed, ACL{a.Perms, id})
				}
			}
			if len(fixed) == n {
				return nil, ErrInvalidACL
			}
		case ValidID(a.ID), !firstRules && isAlternativeName(a.ID):
			fixed = append(fixed, a)
		default:
			return nil, ErrInvalidACL
		}
	}
	return fixed, OK
}

// CompletedACL bounds how many entries list has once "auth" is replaced by every identity that a client has proved,
// and estimates their memory in bytes. It does not build the list.
func CompletedACL(list []ACL, ids []ID) (entries int, memory int64) {
	entries, memory = len(list), ACLMemory(list)
	auths := 0
	for i := range list {
		if list[i].ID.Scheme == "auth" {
			auths++
		}
	}
	if auths == 0 {
		return entries, memory
	}
	for i := range ids {
		if slices.Contains(authSchemes, ids[i].Scheme) {
			entries += auths
			memory += int64(auths) * ACLMemory([]ACL{{ID: ids[i]}})
		}
	}
	return entries - auths, memory
}

// withoutHashes is a copy of an ACL for a client without ADMIN.
func withoutHashes(list []ACL) []ACL {
	list = slices.Clone(list)
	for i, a := range list {
		list[i].ID.ID = WithoutHash(a.ID)
	}
	return list
}

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
	last  aclID // of the list that was last looked for: the next is the same, usually
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
	if len(t.lists) > 0 {
		if e := &t.lists[t.last]; e.uses > 0 && slices.Equal(e.list, list) {
			e.uses++
			return t.last
		}
	}
	key := aclKey(list)
	if id, ok := t.byKey[key]; ok {
		t.lists[id].uses++
		t.last = id
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
