package znode

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestPermissions_EachAlone: each permission, alone, granted to one identity,
// against each operation. That identity may do what the permission is for and
// nothing else; another identity may do nothing.
func TestPermissions_EachAlone(t *testing.T) {
	const parent, child = "/p", "/p/c"
	operations := []struct {
		name  string
		needs Perms
		do    func(*Tree, *Txn) Error
	}{
		{"exists", PermRead, func(t *Tree, x *Txn) Error { _, code := t.Exists(parent, x.Identities); return code }},
		{"get", PermRead, func(t *Tree, x *Txn) Error { _, _, code := t.Get(parent, x.Identities); return code }},
		{"children", PermRead, func(t *Tree, x *Txn) Error { _, _, code := t.Children(parent, x.Identities); return code }},
		{"descendants", PermRead, func(t *Tree, x *Txn) Error { _, code := t.Descendants(parent, x.Identities); return code }},
		{"check", PermRead, func(t *Tree, x *Txn) Error { return t.Check(x, parent, AnyVersion) }},
		{"get ACL", PermRead | PermAdmin, func(t *Tree, x *Txn) Error {
			_, _, code := t.ACLOf(parent, x.Identities)
			return code
		}},
		{"set data", PermWrite, func(t *Tree, x *Txn) Error {
			_, code := t.SetData(x, parent, nil, AnyVersion)
			return code
		}},
		{"set ACL", PermAdmin, func(t *Tree, x *Txn) Error {
			_, code := t.SetACL(x, parent, OpenACL, AnyVersion)
			return code
		}},
		{"create", PermCreate, func(t *Tree, x *Txn) Error {
			_, _, code := t.Create(x, &CreateRequest{Path: "/p/new", ACL: OpenACL})
			return code
		}},
		{"delete", PermDelete, func(t *Tree, x *Txn) Error { return t.Delete(x, child, AnyVersion) }},
	}
	for _, op := range operations {
		for _, granted := range []Perms{0, PermRead, PermWrite, PermCreate, PermDelete, PermAdmin, PermAll} {
			for _, who := range []ID{alice, bob} {
				tree := NewTree()
				mustCreate(t, tree, &Txn{Zxid: 1}, &CreateRequest{Path: parent, ACL: OpenACL})
				mustCreate(t, tree, &Txn{Zxid: 2}, &CreateRequest{Path: child, ACL: OpenACL})
				x := &Txn{Zxid: 3}
				if _, code := tree.SetACL(x, parent, []ACL{{granted, alice}}, AnyVersion); code != OK {
					t.Fatalf("set of the ACL: %v, want no error", code)
				}
				want := ErrNoAuth
				if who == alice && granted&op.needs != 0 {
					want = OK
				}
				x.Identities = []ID{who}
				if got := op.do(tree, x); got != want {
					t.Errorf("%s by %s, with %q granted to %s: %v, want %v",
						op.name, who.ID, granted, alice.ID, got.Name(), want.Name())
				}
			}
		}
	}
}

// TestACLTable_OneDifference: two lists that differ in one field have two numbers,
// and each number leads to its own list.
func TestACLTable_OneDifference(t *testing.T) {
	base := ACL{PermRead, ID{"digest", "alice:h"}}
	lists := [][]ACL{
		{},
		{base},
		{base, base},
		{base, {PermRead, ID{"digest", "alice:i"}}},
		{{PermRead, ID{"digesu", "alice:h"}}},
		{{PermRead, ID{"digest", "alice:i"}}},
		{{PermRead, ID{"digest", "alice:hh"}}},
		{{PermRead, ID{"diges", "talice:h"}}}, // the texts run together
		{{PermRead, ID{"digest", strings.Repeat("a", 1<<8)}}},
		{{PermRead, ID{"digest", strings.Repeat("a", 1<<16)}}},
	}
	for bit := range 32 {
		if p := base.Perms ^ Perms(1<<bit); p != 0 {
			lists = append(lists, []ACL{{p, base.ID}})
		}
	}
	table := newACLTable()
	numbers := map[aclID][]ACL{}
	for _, list := range lists {
		id := table.ref(list)
		if other, taken := numbers[id]; taken {
			t.Errorf("%v and %v have one number", list, other)
		}
		numbers[id] = list
	}
	for id, list := range numbers {
		if got := table.get(id); fmt.Sprint(got) != fmt.Sprint(list) {
			t.Errorf("number %d of %v leads to %v", id, list, got)
		}
	}
}

// TestDigest_OneDifference: two trees that differ in one field of one znode have
// two digests; two that are alike have one.
func TestDigest_OneDifference(t *testing.T) {
	digest := func(edit func(*Record)) uint64 {
		r := Record{
			Path: "/a/b", Data: []byte("data"),
			ACL: []ACL{{PermRead, ID{"digest", "alice:h"}}, {PermWrite, ID{"ip", "10.0.0.1"}}},
			Stat: Stat{
				Czxid: 11, Mzxid: 12, Pzxid: 13, Ctime: 14, Mtime: 15,
				Version: 16, Cversion: 17, Aversion: 18, EphemeralOwner: 19,
			},
		}
		edit(&r)
		tree := NewTree()
		b := NewBuilder()
		s := tree.Snapshot()
		defer s.Release()
		if err := s.Walk(b.Add); err != nil {
			t.Fatal(err)
		}
		for _, one := range []*Record{{Path: "/a"}, &r} {
			if err := b.Add(one); err != nil {
				t.Fatal(err)
			}
		}
		built, err := b.Tree()
		if err != nil {
			t.Fatal(err)
		}
		done := built.Snapshot()
		defer done.Release()
		return done.Digest()
	}
	edits := map[string]func(*Record){
		"path":               func(r *Record) { r.Path = "/a/c" },
		"data":               func(r *Record) { r.Data = []byte("dbta") },
		"data longer":        func(r *Record) { r.Data = []byte("dataa") },
		"data empty":         func(r *Record) { r.Data = []byte{} },
		"data null":          func(r *Record) { r.Data = nil },
		"data begins with 1": func(r *Record) { r.Data = []byte{1} },
		"no ACL":             func(r *Record) { r.ACL = nil },
		"one entry less":     func(r *Record) { r.ACL = r.ACL[:1] },
		"two entries turned": func(r *Record) { r.ACL = []ACL{r.ACL[1], r.ACL[0]} },
		"permissions":        func(r *Record) { r.ACL[1].Perms = PermDelete },
		"scheme":             func(r *Record) { r.ACL[0].ID.Scheme = "digesu" },
		"identity":           func(r *Record) { r.ACL[0].ID.ID = "alice:i" },
		"scheme longer":      func(r *Record) { r.ACL[0].ID = ID{"digesta", "lice:h"} },
	}
	for i := range reflect.TypeFor[Stat]().NumField() {
		field := reflect.TypeFor[Stat]().Field(i).Name
		if field == "DataLength" || field == "NumChildren" {
			continue // they follow from the rest
		}
		edits[field] = func(r *Record) {
			v := reflect.ValueOf(&r.Stat).Elem().FieldByName(field)
			v.SetInt(v.Int() + 100)
		}
	}
	same := digest(func(*Record) {})
	if again := digest(func(*Record) {}); again != same {
		t.Errorf("two equal trees have the digests %x and %x", same, again)
	}
	digests := map[uint64]string{same: "nothing"}
	for name, edit := range edits {
		d := digest(edit)
		if other, taken := digests[d]; taken {
			t.Errorf("another %s and another %s give one digest", name, other)
		}
		digests[d] = name
	}
}
