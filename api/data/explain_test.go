package data

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// What is explained is what the tree decides, and the entry that is named is enough for it.
func TestExplain_AgreesWithTheTree(t *testing.T) {
	r := seed.Rand(t)
	ids := []znode.ID{
		{Scheme: "digest", ID: "a:1"}, {Scheme: "digest", ID: "a:2"}, {Scheme: "digest", ID: "b:1"},
		{Scheme: "ip", ID: "10.0.0.1"}, {Scheme: "ip", ID: "10.9.0.1"}, {Scheme: "sasl", ID: "u"},
		{Scheme: "sasl", ID: "super"}, {Scheme: "x509", ID: "CN=a"}, {Scheme: "token", ID: "t"}, {Scheme: "super", ID: "x"},
	}
	names := append(ids[:len(ids)-1:len(ids)-1], znode.Anyone, znode.ID{Scheme: "ip", ID: "10.0.0.0/8"})
	of := func(from []znode.ID, most int) (some []znode.ID) {
		for range r.IntN(most) {
			some = append(some, from[r.IntN(len(from))])
		}
		return some
	}
	permitted := 0
	for range 20_000 {
		var acl []znode.ACL
		for _, name := range of(names, 4) {
			acl = append(acl, znode.ACL{Perms: znode.Perms(r.IntN(32)), ID: name})
		}
		client := of(ids, 4)
		for _, right := range ownRights {
			e := right.explain("/x", acl, client, "")
			if want := znode.Permits(acl, right.needs, client); *e.May != want {
				t.Fatalf("%s under %v by %v: %t, want %t", right.operation, acl, client, *e.May, want)
			} else if want {
				permitted++
			}
		}
	}
	if permitted < 10_000 {
		t.Errorf("only %d were permitted", permitted)
	}
}
