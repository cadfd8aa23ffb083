package znode

import (
	"slices"
	"testing"
)

// ZooKeeper drops duplicates from the list that the client sent, and expands
// "auth" afterwards. We compared with the expanded list: two entries auth:""
// were expanded twice, and a digest named beside auth was dropped.
func TestRegression_FixACL_DuplicatesAreTheClients(t *testing.T) {
	me := ID{"digest", "me:hash"}
	ids := []ID{me, {"ip", "127.0.0.1"}}
	for name, c := range map[string]struct{ in, want []ACL }{
		"auth twice":    {[]ACL{{PermAll, AuthIDs}, {PermAll, AuthIDs}}, []ACL{{PermAll, me}}},
		"auth and self": {[]ACL{{PermAll, AuthIDs}, {PermAll, me}}, []ACL{{PermAll, me}, {PermAll, me}}},
		"self and auth": {[]ACL{{PermAll, me}, {PermAll, AuthIDs}}, []ACL{{PermAll, me}, {PermAll, me}}},
		"self twice":    {[]ACL{{PermAll, me}, {PermAll, me}}, []ACL{{PermAll, me}}},
	} {
		got, code := fixACL(c.in, ids, false)
		if code != OK || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, code, c.want)
		}
	}
}

// DigestAuthenticationProvider.isValid wants exactly two parts from Java's
// split, which drops all empty parts at the end. We took "u::" for two.
func TestRegression_ValidID_DigestOfEmptyParts(t *testing.T) {
	for id, want := range map[string]bool{
		"u:h": true, ":h": true, "u:h:": true, "u:h::": true,
		"": false, "u": false, "u:": false, "u::": false, ":": false, "::": false, "u:h:x": false,
		"u::h": false,
	} {
		if got := ValidID(ID{"digest", id}); got != want {
			t.Errorf("digest %q: %v, want %v", id, got, want)
		}
	}
}

// ContainerManager counts a container that never had a child from its last
// change (getElapsed looks at mtime). We counted from its creation.
func TestRegression_Reapable_NeverUsedCountsFromTheLastChange(t *testing.T) {
	tree := NewTree()
	mustCreate(t, tree, &Txn{Zxid: 1, TimeMillis: 1000}, &CreateRequest{
		Kind: CreateContainer, Mode: Container, Path: "/c", ACL: OpenACL})
	if _, code := tree.SetData(&Txn{Zxid: 2, TimeMillis: 5000}, "/c", nil, AnyVersion); code != OK {
		t.Fatalf("set of /c: %v, want no error", code)
	}
	for now, want := range map[int64]int{5000: 0, 6000: 0, 6001: 1} {
		if got := tree.Reapable(now, 1000, 10); len(got) != want {
			t.Errorf("at %d: %v, want %d", now, got, want)
		}
	}
}

// The version after -2 was -1, which means any version in a condition: a client that had read it overwrote what others
// wrote meanwhile (ZOOKEEPER-4743). Logs of release 1.0 are applied as they were.
func TestRegression_Version_IsNeverMinusOne(t *testing.T) {
	for _, first := range []bool{false, true} {
		tree, x := NewTree(), &Txn{Zxid: 1, FirstRules: first}
		mustCreate(t, tree, x, &CreateRequest{Path: "/n", ACL: OpenACL})
		n := tree.get("/n")
		n.version, n.editRare().aversion = -2, -2
		data, code := tree.SetData(x, "/n", nil, -2)
		acl, aclCode := tree.SetACL(x, "/n", ReadACL, -2)
		want := Version(0)
		if first {
			want = -1
		}
		if code != OK || aclCode != OK || data.Version != want || acl.Aversion != want {
			t.Errorf("first rules %v: %v, version %d; %v, %d", first, code, data.Version, aclCode, acl.Aversion)
		}
	}
}
