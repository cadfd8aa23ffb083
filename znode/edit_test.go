package znode

import (
	"slices"
	"testing"
)

func TestTree_Delete_Errors(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/a/b", ACL: onlyMe})
	mustCreate(t, tree, x, &CreateRequest{Path: "/shut", ACL: grant(PermAll &^ PermDelete)})
	mustCreate(t, tree, x, &CreateRequest{Path: "/shut/x", ACL: OpenACL})
	for _, c := range []struct {
		path    string
		version Version
		want    Error
	}{
		{"", -1, ErrBadArguments},
		{"/", -1, ErrBadArguments},
		{"/zookeeper", -1, ErrBadArguments},
		{"/zookeeper/quota", -1, ErrBadArguments},
		{"/zookeeper/config", -1, ErrBadArguments},
		{"foo", -1, ErrBadArguments},
		{"/a\x00", -1, ErrBadArguments},
		{"/no/b", -1, ErrNoNode},
		{"/a/", -1, ErrNoNode}, // no full check of the path
		{"/a/..", -1, ErrNoNode},
		{"/shut/missing", -1, ErrNoAuth}, // the permission comes first
		{"/shut/x", -1, ErrNoAuth},
		{"/a/missing", -1, ErrNoNode},
		{"/a", 1, ErrBadVersion}, // before NOTEMPTY
		{"/a", 0, ErrNotEmpty},
		{"/a/b", 1, ErrBadVersion},
		{"/a/b", 0, OK}, // no permission on the znode itself is needed
		{"/a", -1, OK},
	} {
		if code := tree.Delete(x, c.path, c.version); code != c.want {
			t.Errorf("delete %q version %d: %v, want %v", c.path, c.version, code.Name(), c.want.Name())
		}
	}
}

func TestTree_Delete_ParentStat(t *testing.T) {
	tree := NewTree()
	mustCreate(t, tree, &Txn{Zxid: 1, TimeMillis: 1}, &CreateRequest{Path: "/p", ACL: OpenACL})
	mustCreate(t, tree, &Txn{Zxid: 2, TimeMillis: 2}, &CreateRequest{Path: "/p/c", ACL: OpenACL})
	mustCreate(t, tree, &Txn{Zxid: 3, TimeMillis: 3}, &CreateRequest{Path: "/p/c/g", ACL: OpenACL})
	stat := func() Stat { s, _ := tree.Exists("/p", nil); return s }
	if s := stat(); s.Pzxid != 2 || s.Cversion != 1 {
		t.Errorf("after a grandchild: %+v", s)
	}
	if _, code := tree.SetData(&Txn{Zxid: 4, TimeMillis: 4}, "/p/c", []byte("x"), 0); code != OK {
		t.Fatalf("set of /p/c: %v, want no error", code)
	}
	if s := stat(); s.Pzxid != 2 || s.Cversion != 1 { // ClickHouse #115457
		t.Errorf("after the child's data: %+v", s)
	}
	tree.Delete(&Txn{Zxid: 5}, "/p/c/g", -1)
	tree.Delete(&Txn{Zxid: 6, TimeMillis: 6}, "/p/c", -1)
	if s := stat(); s.Pzxid != 6 || s.Cversion != 2 || s.NumChildren != 0 || s.Mzxid != 1 || s.Mtime != 1 {
		t.Errorf("after the child's delete: %+v", s)
	}
}

func TestTree_SetData_ErrorsAndStat(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, TimeMillis: 10}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", Data: []byte("same"), ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/ro", ACL: grant(PermAll &^ PermWrite)})
	for _, c := range []struct {
		path    string
		version Version
		want    Error
	}{
		{"/a/", -1, ErrBadArguments}, {"", -1, ErrBadArguments}, {"/no", 3, ErrNoNode},
		{"/ro", 9, ErrNoAuth}, {"/a", 1, ErrBadVersion}, {"/a", -2, ErrBadVersion},
		{"/zookeeper/config", -1, ErrNoAuth}, {"/", -1, OK},
	} {
		if _, code := tree.SetData(x, c.path, nil, c.version); code != c.want {
			t.Errorf("set %q version %d: %v, want %v", c.path, c.version, code.Name(), c.want.Name())
		}
	}
	st, code := tree.SetData(&Txn{Zxid: 8, TimeMillis: 80}, "/a", []byte("same"), 0)
	want := Stat{Czxid: 1, Mzxid: 8, Pzxid: 1, Ctime: 10, Mtime: 80, Version: 1, DataLength: 4}
	if code != OK || st != want {
		t.Errorf("equal bytes count as a change: %+v, %v", st, code)
	}
}

func TestTree_SetACL_ErrorsAndStat(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, TimeMillis: 10}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/no-admin", ACL: grant(PermAll &^ PermAdmin)})
	for _, c := range []struct {
		path    string
		acl     []ACL
		version Version
		want    Error
	}{
		{"/a/", nil, 0, ErrBadArguments}, {"/missing", nil, 0, ErrInvalidACL},
		{"/missing", OpenACL, 0, ErrNoNode}, {"/no-admin", OpenACL, 7, ErrNoAuth},
		{"/a", OpenACL, 7, ErrBadVersion},
	} {
		if _, code := tree.SetACL(x, c.path, c.acl, c.version); code != c.want {
			t.Errorf("setACL %q: %v, want %v", c.path, code.Name(), c.want.Name())
		}
	}
	y := &Txn{Zxid: 8, TimeMillis: 80}
	st, code := tree.SetACL(y, "/a", onlyMe, 0)
	if want := (Stat{Czxid: 1, Mzxid: 1, Pzxid: 1, Ctime: 10, Mtime: 10, Aversion: 1}); code != OK || st != want {
		t.Errorf("set of the ACL: %+v (%v), want %+v", st, code, want)
	}
	if len(y.Events) != 0 {
		t.Errorf("setACL emitted %v", y.Events)
	}
	if _, code := tree.SetACL(y, "/a", OpenACL, -1); code != ErrNoAuth {
		t.Errorf("ACLs are inherited or ignored: %v", code)
	}
}

func TestTree_Check_Outcomes(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/secret", ACL: grant(PermAll &^ PermRead)})
	for _, c := range []struct {
		path    string
		version Version
		want    Error
	}{
		{"/a", -1, OK}, {"/a", 0, OK}, {"/a", 1, ErrBadVersion}, {"/b", -1, ErrNoNode},
		{"/secret", -1, ErrNoAuth}, {"/a/", -1, ErrBadArguments}, {"/", -1, OK},
	} {
		if code := tree.Check(x, c.path, c.version); code != c.want {
			t.Errorf("check %q %d: %v, want %v", c.path, c.version, code.Name(), c.want.Name())
		}
	}
}

// TestTree_Reads_Permissions: what each read asks for, and what it does with
// paths that no create would accept.
func TestTree_Reads_Permissions(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1}
	mustCreate(t, tree, x, &CreateRequest{Path: "/none", ACL: grant(0)})
	mustCreate(t, tree, x, &CreateRequest{Path: "/read", ACL: grant(PermRead)})
	mustCreate(t, tree, x, &CreateRequest{Path: "/admin", ACL: grant(PermAdmin)})
	read := map[string]func(string, []ID) Error{
		"exists":   func(p string, ids []ID) Error { _, c := tree.Exists(p, ids); return c },
		"get":      func(p string, ids []ID) Error { _, _, c := tree.Get(p, ids); return c },
		"children": func(p string, ids []ID) Error { _, _, c := tree.Children(p, ids); return c },
		"count":    func(p string, ids []ID) Error { _, c := tree.Descendants(p, ids); return c },
		"getACL":   func(p string, ids []ID) Error { _, _, c := tree.ACLOf(p, ids); return c },
	}
	for name, f := range read {
		admin := ErrNoAuth
		if name == "getACL" {
			admin = OK
		}
		for path, want := range map[string]Error{
			"/none": ErrNoAuth, "/read": OK, "/admin": admin, "/missing": ErrNoNode,
			"/": OK, "": OK, "relative": ErrNoNode, "/read/": ErrNoNode, "//": ErrNoNode,
		} {
			if got := f(path, nil); got != want {
				t.Errorf("%s %q: %v, want %v", name, path, got.Name(), want.Name())
			}
			if got := f(path, []ID{super}); got == ErrNoAuth {
				t.Errorf("%s %q: the super user is refused", name, path)
			}
		}
	}
}

func TestTree_ACLOf_MasksDigests(t *testing.T) {
	tree := NewTree()
	acl := []ACL{{PermRead, Anyone}, {PermAll, alice}, {PermRead, ID{"ip", "10.0.0.1"}}}
	mustCreate(t, tree, &Txn{Zxid: 1}, &CreateRequest{Path: "/a", ACL: acl})
	masked := slices.Clone(acl)
	masked[1].ID.ID = "alice:x"
	for _, c := range []struct {
		ids  []ID
		want []ACL
	}{{nil, masked}, {[]ID{bob}, masked}, {[]ID{alice}, acl}, {[]ID{super}, acl}} {
		if got, _, code := tree.ACLOf("/a", c.ids); code != OK || !slices.Equal(got, c.want) {
			t.Errorf("%v sees %v, %v", c.ids, got, code)
		}
	}
	if got, _, _ := tree.ACLOf("/a", []ID{super}); !slices.Equal(got, acl) {
		t.Errorf("masking changed the stored list: %v", got)
	}
}

func TestTree_Ephemerals_RawPrefix(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, Session: 3}
	for _, p := range []string{"/a", "/ab", "/b"} {
		mustCreate(t, tree, x, &CreateRequest{Path: p, ACL: OpenACL, Mode: Ephemeral})
	}
	for prefix, want := range map[string][]string{
		"": {"/a", "/ab", "/b"}, "/": {"/a", "/ab", "/b"}, "/a": {"/a", "/ab"}, "/c": {},
	} {
		got := tree.Ephemerals(3, prefix)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("ephemerals below %q: %q, want %q", prefix, got, want)
		}
	}
	if got := tree.Ephemerals(4, ""); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}

func TestTree_DeleteOwned_InPathOrderWithOneZxid(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, Session: 3}
	for _, p := range []string{"/b", "/a", "/c"} {
		mustCreate(t, tree, x, &CreateRequest{Path: p, ACL: OpenACL, Mode: Ephemeral})
	}
	x.Reset()
	x.Zxid = 9
	if paths := tree.DeleteOwned(x, 3); !slices.Equal(paths, []string{"/a", "/b", "/c"}) {
		t.Fatalf("deleted %q, want /a, /b and /c", paths)
	}
	for i, e := range x.Events {
		if e.Type != EventDeleted || e.Zxid != 9 || e.Path != []string{"/a", "/b", "/c"}[i] {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if tree.Size().Ephemerals != 0 || len(tree.DeleteOwned(x, 3)) != 0 {
		t.Error("some are left")
	}
}

func TestTree_Reap_Outcomes(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, TimeMillis: 1000, Session: 4, ExtendedTypes: true}
	mustCreate(t, tree, x, &CreateRequest{Kind: CreateContainer, Path: "/c", ACL: grant(0)})
	mustCreate(t, tree, x, &CreateRequest{Kind: CreateContainer, Path: "/fresh", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Kind: CreateTTL, Mode: PersistentTTL, TTL: 50, Path: "/t", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/plain", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/e", ACL: OpenACL, Mode: Ephemeral})
	x.Identities = []ID{super}
	mustCreate(t, tree, x, &CreateRequest{Path: "/c/x", ACL: OpenACL})
	reapable := func(now int64, want ...string) {
		t.Helper()
		got := tree.Reapable(now, 0, 100)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("reapable at %d: %v, want %v", now, got, want)
		}
	}
	reap := func(path string, now int64, want Error) {
		t.Helper()
		if code := tree.Reap(&Txn{Zxid: 2, TimeMillis: now}, path); code != want {
			t.Errorf("reap %s at %d: %v, want %v", path, now, code.Name(), want.Name())
		}
	}
	reapable(1050)
	reapable(1051, "/t")
	reap("/c", 1051, ErrNotEmpty)
	reap("/t", 1050, ErrBadVersion)
	reap("/plain", 9999, ErrBadVersion)
	reap("/e", 9999, ErrBadVersion)
	reap("/missing", 9999, ErrNoNode)
	reap("/", 9999, ErrNoNode)
	// A child holds a TTL znode but does not renew it; new data does.
	mustCreate(t, tree, x, &CreateRequest{Path: "/t/x", ACL: OpenACL})
	reapable(1051)
	reap("/t", 1051, ErrNotEmpty)
	tree.Delete(x, "/t/x", -1)
	reapable(1051, "/t")
	tree.SetData(&Txn{Zxid: 3, TimeMillis: 1040}, "/t", nil, -1)
	reapable(1090)
	tree.Delete(x, "/c/x", -1)
	reapable(1091, "/c", "/t") // /fresh never had a child
	if got := tree.Reapable(1091, 0, 1); len(got) != 1 {
		t.Errorf("limit 1: %v", got)
	}
	reap("/c", 1091, OK)
	reap("/t", 1091, OK)
	reapable(1 << 40)
}
