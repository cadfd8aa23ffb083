package znode

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// TestVisitChildren_BackwardsMissesNobody deletes and creates children at random while they are visited: who stays is
// seen.
func TestVisitChildren_BackwardsMissesNobody(t *testing.T) {
	rnd := seed.Rand(t)
	for range 50 {
		tree, x := NewTree(), &Txn{}
		stays := map[string]bool{}
		for i := range 100 {
			x.Zxid++
			mustCreate(t, tree, x, &CreateRequest{Path: fmt.Sprint("/", i), ACL: OpenACL})
			stays[fmt.Sprint(i)] = true
		}
		seen := map[string]bool{}
		for at := 98 + 7; at > 0; at -= 7 {
			if _, code := tree.VisitChildren("/", at-7, at, nil, func(name string) { seen[name] = true }); code != OK {
				t.Fatalf("visit from %d: %v, want no error", at-7, code)
			}
			for range rnd.IntN(6) {
				x.Zxid++
				if name := fmt.Sprint(rnd.IntN(100)); tree.Delete(x, "/"+name, AnyVersion) == OK {
					delete(stays, name)
				}
				if rnd.IntN(3) == 0 {
					mustCreate(t, tree, x, &CreateRequest{Path: fmt.Sprint("/new", x.Zxid), ACL: OpenACL})
				}
			}
		}
		for name := range stays {
			if !seen[name] {
				t.Errorf("%s stayed and was not seen", name)
			}
		}
	}
}

func TestVisit_ShowsEachZnodeOnce(t *testing.T) {
	tree, x := NewTree(), &Txn{Zxid: 1}
	want := []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}
	for i := range 3000 {
		want = append(want, mustCreate(t, tree, x, &CreateRequest{Path: fmt.Sprint("/", i), ACL: OpenACL}))
	}
	var got []string
	for part := range Parts {
		tree.Visit(part, func(path string, _ []byte, s *Stat) { got = append(got, path) })
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d znodes, want %d", len(got), len(want))
	}
	if tree.Seed() == NewTree().Seed() {
		t.Error("seeds")
	}
}

func TestAbout(t *testing.T) {
	me := []ID{{Scheme: "ip", ID: "10.0.0.1"}}
	tree, x := NewTree(), &Txn{Zxid: 1, Session: 7, ExtendedTypes: true, Identities: me}
	private := []ACL{{Perms: PermAll, ID: me[0]}}
	for _, r := range []CreateRequest{
		{Path: "/p", ACL: OpenACL}, {Path: "/p/e", ACL: OpenACL, Mode: Ephemeral, Data: []byte("12")}, {Path: "/p/secret", ACL: private},
		{Path: "/p/secret/below", ACL: OpenACL}, {Path: "/c", ACL: ReadACL, Kind: CreateContainer, Mode: Container},
		{Path: "/t", ACL: OpenACL, Kind: CreateTTL, Mode: PersistentTTL, TTL: 5000},
	} {
		mustCreate(t, tree, x, &r)
	}
	for path, want := range map[string]About{
		"/p":         {Kind: "persistent", Perms: PermAll, Below: Size{Znodes: 3, Ephemerals: 1, Bytes: 4 + 2 + 9 + 15}},
		"/p/e":       {Kind: "ephemeral", Perms: PermAll},
		"/c":         {Kind: "container", Perms: PermRead},
		"/t":         {Kind: "ttl", TTLMillis: 5000, Perms: PermAll},
		"/zookeeper": {Kind: "persistent", Perms: PermAll, Below: Size{Znodes: 2, Bytes: 16 + 17}},
	} {
		if got, _, code := tree.About(path, nil, 10); code != OK || got != want {
			t.Errorf("%s: %+v %v, want %+v", path, got, code, want)
		}
	}
	if got, _, _ := tree.About("/", nil, 4); got.Below.Znodes != 4 {
		t.Errorf("counted %d, at most 4", got.Below.Znodes)
	}
	if _, _, code := tree.About("/p/secret", nil, 1); code != ErrNoAuth {
		t.Errorf("about a znode that may not be read: %v, want %v", code, ErrNoAuth)
	}
	for path, want := range map[string]bool{"/": true, "/p/e": true, "/p/secret": false, "/p/secret/below": false, "/none": false} {
		if got := tree.Visible(path, nil); got != want {
			t.Errorf("Visible(%s) = %t", path, got)
		}
	}
	for path, want := range map[string]bool{
		"/": true, "/none": true, "/p/none/below": true, "/p/secret": false, "/p/secret/below": false, "/p/secret/none": false,
	} {
		if got := tree.Tellable(path, nil); got != want {
			t.Errorf("Tellable(%s) = %t", path, got)
		}
	}
	if !tree.Visible("/p/secret/below", me) {
		t.Error("who may read all of it does not see it")
	}
}

func TestTree_EphemeralOwners_Counts(t *testing.T) {
	tree := NewTree()
	for i, s := range []SessionID{1, 2, 2} {
		mustCreate(t, tree, &Txn{Zxid: 1, Session: s}, &CreateRequest{Path: fmt.Sprintf("/e%d", i), Mode: Ephemeral, ACL: OpenACL})
	}
	got := map[SessionID]int{}
	tree.EphemeralOwners(func(s SessionID, n int) { got[s] = n })
	if len(got) != 2 || got[1] != 1 || got[2] != 2 {
		t.Errorf("ephemerals by owner: %v, want 1 of session 1 and 2 of session 2", got)
	}
}
