package znode

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The identities that the tests use.
var (
	alice  = ID{"digest", "alice:hash"}
	bob    = ID{"digest", "bob:hash"}
	super  = ID{"super", ""}
	onlyMe = []ACL{{PermAll, alice}}
)

// grant is an ACL that gives these permissions to everyone.
func grant(p Perms) []ACL { return []ACL{{p, Anyone}} }

// TestTree_Create_Errors goes through every check of a create, in the order of
// PrepRequestProcessor: of two things that are wrong the earlier is reported.
func TestTree_Create_Errors(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, Session: 7}
	mustCreate(t, tree, x, &CreateRequest{Path: "/a", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/eph", ACL: OpenACL, Mode: Ephemeral})
	mustCreate(t, tree, x, &CreateRequest{Path: "/shut", ACL: grant(PermAll &^ PermCreate)})
	bad := []ACL{{PermAll, ID{"nobody", "knows"}}}
	for _, c := range []struct {
		what string
		r    CreateRequest
		want Error
	}{
		{"mode first", CreateRequest{Path: "x", Mode: 7}, ErrBadArguments},
		{"negative mode", CreateRequest{Path: "/x", ACL: OpenACL, Mode: -1}, ErrBadArguments},
		{"TTL off before its value", CreateRequest{Kind: CreateTTL, Path: "x", Mode: PersistentTTL}, ErrUnimplemented},
		{"TTL mode of a plain create", CreateRequest{Path: "/x", ACL: OpenACL, Mode: PersistentTTL}, ErrUnimplemented},
		{"plain mode of a TTL create", CreateRequest{Kind: CreateTTL, Path: "/x", ACL: OpenACL, TTL: 5}, ErrBadArguments},
		{"no slash", CreateRequest{Path: "foo", ACL: OpenACL}, ErrBadArguments},
		{"empty path", CreateRequest{Path: "", ACL: OpenACL}, ErrBadArguments},
		{"no slash before ACL", CreateRequest{Path: "foo"}, ErrBadArguments},
		{"NUL", CreateRequest{Path: "/no/x\x00", ACL: OpenACL}, ErrBadArguments},
		{"NUL first", CreateRequest{Path: "\x00/x", ACL: OpenACL}, ErrBadArguments},
		{"no ACL before parent", CreateRequest{Path: "/no/x"}, ErrInvalidACL},
		{"bad ACL before parent", CreateRequest{Path: "/no/x", ACL: bad}, ErrInvalidACL},
		{"relative with a slash", CreateRequest{Path: "a/b", ACL: OpenACL}, ErrNoNode},
		{"parent missing before path", CreateRequest{Path: "/no/..", ACL: OpenACL}, ErrNoNode},
		{"empty name in the middle", CreateRequest{Path: "/a//b", ACL: OpenACL}, ErrNoNode},
		{"empty name at the root", CreateRequest{Path: "//b", ACL: OpenACL}, ErrBadArguments},
		{"permission before path", CreateRequest{Path: "/shut/..", ACL: OpenACL}, ErrNoAuth},
		{"permission", CreateRequest{Path: "/shut/x", ACL: OpenACL}, ErrNoAuth},
		{"dot", CreateRequest{Path: "/a/.", ACL: OpenACL}, ErrBadArguments},
		{"trailing slash", CreateRequest{Path: "/a/", ACL: OpenACL}, ErrBadArguments},
		{"path before ephemeral parent", CreateRequest{Path: "/eph/..", ACL: OpenACL}, ErrBadArguments},
		{"root", CreateRequest{Path: "/", ACL: OpenACL}, ErrNodeExists},
		{"exists", CreateRequest{Path: "/a", ACL: OpenACL}, ErrNodeExists},
		{"child of an ephemeral", CreateRequest{Path: "/eph/x", ACL: OpenACL}, ErrNoChildrenForEphemeral},
		{"config is readable only", CreateRequest{Path: "/zookeeper/config/x", ACL: OpenACL}, ErrNoAuth},
		{"under /zookeeper", CreateRequest{Path: "/zookeeper/x", ACL: OpenACL}, OK},
		{"fine", CreateRequest{Path: "/a/..b", ACL: OpenACL}, OK},
	} {
		before, events := digestOf(tree), len(x.Events)
		path, _, code := tree.Create(x, &c.r)
		if code != c.want || code == OK && path != c.r.Path {
			t.Errorf("%s: create %q: %q, %v; want %v", c.what, c.r.Path, path, code.Name(), c.want.Name())
		}
		if code != OK && (digestOf(tree) != before || len(x.Events) != events) {
			t.Errorf("%s: the refused create left a trace", c.what)
		}
	}
}

func digestOf(t *Tree) uint64 {
	s := t.Snapshot()
	defer s.Release()
	return s.Digest()
}

func TestTree_Create_Stat(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 5, TimeMillis: 100, Session: 9}
	_, got, code := tree.Create(x, &CreateRequest{Path: "/a", Data: []byte("abc"), ACL: OpenACL, Mode: Ephemeral})
	want := Stat{
		Czxid: 5, Mzxid: 5, Pzxid: 5, Ctime: 100, Mtime: 100, EphemeralOwner: 9, DataLength: 3,
	}
	if code != OK || got != want {
		t.Errorf("created with %+v (%v), want %+v", got, code, want)
	}
	if now, _ := tree.Exists("/a", nil); now != got {
		t.Errorf("exists says %+v, create said %+v", now, got)
	}
	root, _ := tree.Exists("/", nil)
	if root.Cversion != 0 || root.NumChildren != 2 || root.Pzxid != 5 || root.Mzxid != 0 {
		t.Errorf("root after its first create: %+v", root) // a fresh one shows cversion -1
	}
}

func TestNewTree_Shape(t *testing.T) {
	tree := NewTree()
	root, code := tree.Exists("/", nil)
	if want := (Stat{Cversion: -1, NumChildren: 1}); code != OK || root != want {
		t.Errorf("root: %+v", root)
	}
	if alias, _ := tree.Exists("", nil); alias != root {
		t.Errorf("the znode of the empty path is %+v, want the root: %+v", alias, root)
	}
	for path, want := range map[string][]string{
		"/": {"zookeeper"}, "/zookeeper": {"config", "quota"}, "/zookeeper/quota": {}, "/zookeeper/config": {},
	} {
		names, _, code := tree.Children(path, nil)
		slices.Sort(names)
		if code != OK || !slices.Equal(names, want) {
			t.Errorf("children of %s: %v, %v", path, names, code)
		}
		data, _, _ := tree.Get(path, nil)
		if data == nil || len(data) != 0 {
			t.Errorf("%s holds %v, not empty data", path, data)
		}
	}
	if n, code := tree.Descendants("", nil); n != 4 || code != OK { // as ZooKeeper
		t.Errorf("Descendants of the empty path = %d, %v", n, code)
	}
	if n, code := tree.Descendants("/", nil); n != 3 || code != OK {
		t.Errorf("descendants of the root: %d, %v", n, code)
	}
	acl, _, _ := tree.ACLOf("/zookeeper/config", nil)
	if !slices.Equal(acl, ReadACL) {
		t.Errorf("ACL of the configuration: %v", acl)
	}
	if got := tree.Size(); got.Znodes != 4 || got.Ephemerals != 0 {
		t.Errorf("size %+v", got)
	}
}

// TestTree_Create_SequenceCountsCreates: every create under the parent moves
// the counter, deletes do not, and it is not the cversion.
func TestTree_Create_SequenceCountsCreates(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, Session: 1, ExtendedTypes: true}
	mustCreate(t, tree, x, &CreateRequest{Path: "/p", ACL: OpenACL})
	seq := func(prefix string, m Mode) string {
		r := CreateRequest{Path: prefix, ACL: OpenACL, Mode: m}
		if m.TTL() {
			r.Kind, r.TTL = CreateTTL, 1
		}
		return mustCreate(t, tree, x, &r)
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want(seq("/p/a-", PersistentSequential), "/p/a-0000000000")
	want(seq("/p/b-", EphemeralSequential), "/p/b-0000000001")
	mustCreate(t, tree, x, &CreateRequest{Path: "/p/plain", ACL: OpenACL})
	want(seq("/p/a-", PersistentSequentialTTL), "/p/a-0000000003")
	if code := tree.Delete(x, "/p/plain", AnyVersion); code != OK {
		t.Fatalf("delete of /p/plain: %v, want no error", code)
	}
	want(seq("/p/", PersistentSequential), "/p/0000000004")
	want(seq("/p/.", PersistentSequential), "/p/.0000000005")
	want(seq("/p/..", PersistentSequential), "/p/..0000000006")
	st, _ := tree.Exists("/p", nil)
	if st.Cversion != 8 || st.NumChildren != 6 { // 7 creates and a delete
		t.Errorf("parent: %+v", st)
	}
	want(seq("/", PersistentSequential), "/0000000001")
	want(mustCreate(t, tree, x, &CreateRequest{Kind: CreateContainer, Path: "/p/c", ACL: OpenACL,
		Mode: PersistentSequential}), "/p/c0000000007")
}

// TestTree_Create_SequenceAtTheLimit: the stored counter is only ever raised (DataTree.createNode), so that at its end
// the suffix would repeat, or a deleted znode's number come again. Names that continued with negative numbers would
// sort before the holder of a lock.
func TestTree_Create_SequenceAtTheLimit(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1}
	mustCreate(t, tree, x, &CreateRequest{Path: "/p", ACL: OpenACL})
	tree.get("/p").editRare().creates = math.MaxInt32
	r := &CreateRequest{Path: "/p/n", ACL: OpenACL, Mode: PersistentSequential}
	if _, _, code := tree.Create(x, r); code != ErrSystem {
		t.Errorf("create beyond the last number: %v, want %v", code, ErrSystem)
	}
	mustCreate(t, tree, x, &CreateRequest{Path: "/p/other", ACL: OpenACL})
	x.FirstRules = true
	if path := mustCreate(t, tree, x, r); path != "/p/n2147483647" {
		t.Errorf("by the first rules: created %s, want /p/n2147483647", path)
	}
	if _, _, code := tree.Create(x, r); code != ErrNodeExists {
		t.Errorf("by the first rules, again: %v, want %v", code, ErrNodeExists)
	}
}

// TestTree_Create_KindDecides: the operation, not the mode, makes containers
// and TTL znodes, and clients see owner 0 of both.
func TestTree_Create_KindDecides(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1, Session: 5, ExtendedTypes: true}
	for i, c := range []struct {
		kind  CreateKind
		mode  Mode
		ttl   int64
		code  Error
		owner SessionID // as stored
		shown SessionID
	}{
		{CreatePlain, Container, 0, OK, 0, 0},
		{CreatePlain, Ephemeral, 0, OK, 5, 5},
		{CreateContainer, Container, 0, OK, containerOwner, 0},
		{CreateContainer, Ephemeral, 0, OK, containerOwner, 0},
		{CreateContainer, PersistentTTL, 0, ErrBadArguments, 0, 0},
		{CreateTTL, PersistentTTL, 1, OK, SessionID(-1<<56 + 1), 0},
		{CreateTTL, PersistentTTL, ttlMaxMillis, OK, SessionID(-1<<56 + ttlMaxMillis), 0},
		{CreateTTL, PersistentTTL, ttlMaxMillis + 1, ErrBadArguments, 0, 0},
		{CreateTTL, PersistentTTL, 0, ErrBadArguments, 0, 0},
		{CreateTTL, PersistentTTL, -1, ErrBadArguments, 0, 0},
		{CreateTTL, Persistent, 1, ErrBadArguments, 0, 0},
		{CreatePlain, PersistentTTL, 1, ErrBadArguments, 0, 0},
	} {
		path := fmt.Sprintf("/n%d", i)
		_, st, code := tree.Create(x, &CreateRequest{Kind: c.kind, Mode: c.mode, TTL: c.ttl, Path: path, ACL: OpenACL})
		if code != c.code {
			t.Errorf("case %d: %v, want %v", i, code.Name(), c.code.Name())
		}
		if code != OK {
			continue
		}
		if n := tree.get(path); n.owner() != c.owner || st.EphemeralOwner != c.shown {
			t.Errorf("case %d: owner %v shown as %v", i, n.owner(), st.EphemeralOwner)
		}
		if c.kind != CreatePlain || c.mode == Container { // these may have children
			mustCreate(t, tree, x, &CreateRequest{Path: path + "/child", ACL: OpenACL})
		}
	}
	if got := tree.Size().Ephemerals; got != 1 {
		t.Errorf("%d ephemerals, want 1", got)
	}
}

func TestTree_Get_NullIsNotEmpty(t *testing.T) {
	tree := NewTree()
	x := &Txn{Zxid: 1}
	mustCreate(t, tree, x, &CreateRequest{Path: "/null", ACL: OpenACL})
	mustCreate(t, tree, x, &CreateRequest{Path: "/empty", Data: []byte{}, ACL: OpenACL})
	for range 2 {
		null, st, _ := tree.Get("/null", nil)
		empty, _, _ := tree.Get("/empty", nil)
		if null != nil || st.DataLength != 0 || empty == nil || len(empty) != 0 {
			t.Errorf("null %v, length %d; empty %v", null, st.DataLength, empty)
		}
		tree = rebuild(t, tree)
	}
	if _, code := tree.SetData(x, "/empty", nil, AnyVersion); code != OK {
		t.Fatalf("set of /empty: %v, want no error", code)
	}
	if b, _, _ := tree.Get("/empty", nil); b != nil {
		t.Errorf("set to null: %v", b)
	}
}

// rebuild makes a tree of a snapshot of another.
func rebuild(tb testing.TB, t *Tree) *Tree {
	tb.Helper()
	s := t.Snapshot()
	defer s.Release()
	b := NewBuilder()
	if err := s.Walk(b.Add); err != nil {
		tb.Fatal(err)
	}
	next, err := b.Tree()
	if err != nil {
		tb.Fatal(err)
	}
	return next
}

func TestParseSequence_Examples(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int32
		ok   bool
	}{
		{"0000000007", 7, true},
		{"2147483647", math.MaxInt32, true},
		{"-2147483648", math.MinInt32, true},
		{"-000000001", -1, true}, // Java's %010d counts the sign
		{"2147483648", 0, false},
		{"", 0, false}, {"-", 0, false}, {"007", 0, false}, {"00000000070", 0, false},
		{"+000000007", 0, false}, {"0x00000007", 0, false}, {"--00000001", 0, false},
		{"-1000000000", -1_000_000_000, true}, {"-999999999", -999_999_999, true},
		{"-000000000", 0, false}, {"-0000000001", 0, false}, // no format writes these
	} {
		n, ok := ParseSequence(c.text)
		if ok != c.ok || ok && n != c.n {
			t.Errorf("%q: %d, %v; want %d, %v", c.text, n, ok, c.n, c.ok)
		}
	}
}
