package znode

import (
	"fmt"
	"slices"
	"testing"
)

// TestPermits_Table is reference 2.F, item 73.
func TestPermits_Table(t *testing.T) {
	ip := func(expr string) []ACL { return []ACL{{PermRead, ID{"ip", expr}}} }
	at := func(addr string) []ID { return []ID{{"ip", addr}} }
	for _, c := range []struct {
		what string
		acl  []ACL
		want Perms
		ids  []ID
		ok   bool
	}{
		{"empty list", nil, PermAdmin, nil, true},
		{"super", onlyMe, PermAll, []ID{bob, super}, true},
		{"super by another list", grant(0), PermRead, []ID{super}, true},
		{"world", grant(PermRead), PermRead, nil, true},
		{"world, other bit", grant(PermRead), PermWrite, nil, false},
		{"any bit is enough", grant(PermAdmin), PermRead | PermAdmin, nil, true},
		{"mine", onlyMe, PermWrite, []ID{alice}, true},
		{"not mine", onlyMe, PermWrite, []ID{bob}, false},
		{"other scheme", onlyMe, PermWrite, []ID{{"sasl", alice.ID}}, false},
		{"sasl", []ACL{{PermRead, ID{"sasl", "svc"}}}, PermRead, []ID{{"sasl", "svc"}}, true},
		{"sasl, another name", []ACL{{PermRead, ID{"sasl", "svc"}}}, PermRead, []ID{{"sasl", "sv"}}, false},
		{"sasl super", []ACL{{PermRead, ID{"sasl", "svc"}}}, PermRead, []ID{{"sasl", "super"}}, true},
		{"sasl super, another scheme", onlyMe, PermRead, []ID{{"sasl", "super"}}, false},
		{"x509", []ACL{{PermRead, ID{"x509", "CN=a"}}}, PermRead, []ID{{"x509", "CN=a"}}, true},
		{"second entry", []ACL{{PermWrite, alice}, {PermRead, alice}}, PermRead, []ID{alice}, true},
		{"bit beyond the five", grant(1 << 7), 1 << 7, nil, true},
		{"same address", ip("10.0.0.1"), PermRead, at("10.0.0.1"), true},
		{"other address", ip("10.0.0.1"), PermRead, at("10.0.0.2"), false},
		{"network", ip("10.1.0.0/16"), PermRead, at("10.1.255.3"), true},
		{"network, host bits set", ip("10.1.2.3/16"), PermRead, at("10.1.255.3"), true},
		{"other network", ip("10.1.0.0/16"), PermRead, at("10.2.0.1"), false},
		{"0 bits", ip("0.0.0.0/0"), PermRead, at("1.2.3.4"), true},
		{"0 bits, other family", ip("0.0.0.0/0"), PermRead, at("::1"), false},
		{"v6", ip("2001:db8::/32"), PermRead, at("2001:db8:1::5"), true},
		{"v6 of a v4 client", ip("::/0"), PermRead, at("1.2.3.4"), false},
		{"v6 with a zone", ip("fe80::/10"), PermRead, at("fe80::1%eth0"), true},
		{"no address", ip("10.0.0.0/8"), PermRead, at("pipe"), false},
	} {
		if got := Permits(c.acl, c.want, c.ids); got != c.ok {
			t.Errorf("%s: got %v, want %v", c.what, got, c.ok)
		}
		if len(c.acl) == 0 {
			continue
		}
		// The same with too many entries and identities to compare them one by one.
		acl, ids := c.acl, c.ids
		for i := range 2 * fewPairs {
			acl = append(acl, ACL{PermAll, ID{"digest", fmt.Sprintf("someone%d:else", i)}})
			ids = append(ids, ID{"digest", fmt.Sprintf("so%d:much", i)})
		}
		if got := Permits(acl, c.want, ids); got != c.ok {
			t.Errorf("%s, among many: got %v, want %v", c.what, got, c.ok)
		}
	}
}

// One request of 960 KB with 60,000 entries was compared with itself for 15 seconds on all servers, and 440 identities
// made 1.6 million entries of 64 KB: sizes that a client chooses must not be multiplied.
func TestRegression_ACL_WorkIsLinear(t *testing.T) {
	const many = 60_000
	list, ids := make([]ACL, many), make([]ID, many)
	for i := range list {
		list[i] = ACL{Perms(i), ID{"digest", "u:h"}}
		ids[i] = ID{"digest", fmt.Sprintf("u%d:h", i)}
	}
	tree, x := NewTree(), &Txn{Zxid: 1, TimeMillis: 1}
	x.Identities = ids[:1]
	if _, _, code := tree.Create(x, &CreateRequest{Path: "/a", ACL: list}); code != OK {
		t.Fatalf("create with the ACL: %s, want OK", code.Name())
	}
	x.Identities = ids
	for range 1000 { // the operations of a transaction: 60,000 times 60,000 comparisons each would not end today
		if code := tree.Check(x, "/a", AnyVersion); code != ErrNoAuth {
			t.Fatalf("got %s, want NOAUTH", code.Name())
		}
	}
	if n, memory := CompletedACL([]ACL{{1, AuthIDs}, {2, AuthIDs}, {1, Anyone}}, ids); n != 2*many+1 ||
		memory < 2*many*aclMemory {
		t.Errorf("got %d entries in %d bytes", n, memory)
	}
}

// Servers of release 1.0 take a subject only for an id of scheme x509, and replicas must not differ.
func TestFixACL_AlternativeNamesByTheFirstRules(t *testing.T) {
	list := []ACL{{PermAll, ID{"x509", "spiffe://example.org/a"}}}
	if got, code := fixACL(list, nil, true); code != ErrInvalidACL {
		t.Errorf("by the first rules the list is %v, %v, want %v", got, code, ErrInvalidACL)
	}
}

// TestFixACL_Table is reference 2.F, items 77 to 82.
func TestFixACL_Table(t *testing.T) {
	ids := []ID{{"ip", "1.2.3.4"}, alice, {"sasl", "svc"}, super, {"x509", "CN=a"}}
	one := func(scheme, id string) []ACL { return []ACL{{PermAll, ID{scheme, id}}} }
	for _, c := range []struct {
		what string
		in   []ACL
		ids  []ID
		want []ACL // nil: INVALIDACL
	}{
		{"null", nil, ids, nil},
		{"empty", []ACL{}, ids, nil},
		{"open", OpenACL, nil, OpenACL},
		{"perms 0", grant(0), nil, grant(0)},
		{"perms beyond 31", grant(-1), nil, grant(-1)},
		{"duplicates", []ACL{OpenACL[0], {PermRead, alice}, OpenACL[0]}, nil, []ACL{OpenACL[0], {PermRead, alice}}},
		{"auth", one("auth", "ignored"), ids, []ACL{
			{PermAll, alice}, {PermAll, ID{"sasl", "svc"}}, {PermAll, ID{"x509", "CN=a"}}}},
		{"auth of nobody", one("auth", ""), []ID{{"ip", "1.2.3.4"}, super}, nil},
		{"one bad entry", []ACL{OpenACL[0], {1, ID{"world", "me"}}}, nil, nil},
		{"world", one("world", "somebody"), ids, nil},
		{"super", one("super", ""), ids, nil},
		{"x509", one("x509", `CN=a\, b+UID=c,O="d, e", C=DE`), nil, one("x509", `CN=a\, b+UID=c,O="d, e", C=DE`)},
		{"x509 of nobody", one("x509", ""), nil, one("x509", "")},
		{"x509 without a keyword", one("x509", "CN=a,b"), nil, nil},
		{"x509 of a URI", one("x509", "spiffe://example.org/ns/a"), nil, one("x509", "spiffe://example.org/ns/a")},
		{"x509, keyword with a blank", one("x509", "C N=a"), nil, nil},
		{"x509, open quote", one("x509", `CN="a`), nil, nil},
		{"x509, ends with a backslash", one("x509", `CN=a\`), nil, one("x509", `CN=a\`)},
		{"sasl", one("sasl", "bob"), nil, one("sasl", "bob")},
		{"sasl principal", one("sasl", "s/h@R"), nil, one("sasl", "s/h@R")},
		{"sasl, two hosts", one("sasl", "s/h/g@R"), nil, nil},
		{"sasl, two realms", one("sasl", "s@R@Q"), nil, nil},
		{"token", one("token", "ops"), nil, one("token", "ops")},
		{"token without a name", one("token", ""), nil, nil},
		{"auth of a token", one("auth", ""), []ID{{"token", "ops"}}, one("token", "ops")},
		{"no scheme", one("", ""), ids, nil},
		{"ip", one("ip", "1.2.3.4"), nil, one("ip", "1.2.3.4")},
		{"ip network", one("ip", "1.2.3.4/32"), nil, one("ip", "1.2.3.4/32")},
		{"ip, bits too many", one("ip", "1.2.3.4/33"), nil, nil},
		{"ip, bits negative", one("ip", "1.2.3.4/-1"), nil, nil},
		{"ip, bits no number", one("ip", "1.2.3.4/x"), nil, nil},
		{"ip, no bits", one("ip", "1.2.3.4/"), nil, nil},
		{"ip, three parts", one("ip", "1.2.3"), nil, nil},
		{"ip, name", one("ip", "localhost"), nil, nil},
		{"ip v6", one("ip", "2001:db8::1/64"), nil, one("ip", "2001:db8::1/64")},
		{"ip v6, bits too many", one("ip", "::1/129"), nil, nil},
		{"ip v4 in v6", one("ip", "::ffff:1.2.3.4"), nil, nil},
		{"ip v6 with a zone", one("ip", "fe80::1%eth0"), nil, nil},
	} {
		got, code := fixACL(c.in, c.ids, false)
		if c.want == nil && code != ErrInvalidACL || c.want != nil && (code != OK || !slices.Equal(got, c.want)) {
			t.Errorf("%s: the ACL becomes %v (%v), want %v", c.what, got, code, c.want)
		}
	}
}

// TestACLTable_Numbers: a list keeps its number while it is used, and its
// place is used again afterwards.
func TestACLTable_Numbers(t *testing.T) {
	tab := newACLTable()
	if tab.ref(OpenACL) != openACL {
		t.Fatal("the open list has another number")
	}
	a := tab.ref(onlyMe)
	if tab.ref(slices.Clone(onlyMe)) != a {
		t.Fatal("an equal list got another number")
	}
	tab.drop(a)
	if tab.ref([]ACL{{PermRead, bob}}) == a {
		t.Fatal("the place of a used list was given away")
	}
	tab.drop(a)
	if b := tab.ref([]ACL{{PermAll, bob}}); b != a || !slices.Equal(tab.get(b), []ACL{{PermAll, bob}}) {
		t.Fatalf("free number %d was not used again: %d", a, b)
	}
	for range 3 {
		tab.drop(openACL)
	}
	if !slices.Equal(tab.get(openACL), OpenACL) {
		t.Fatal("the open list has gone")
	}
	// Lists whose texts run together must not be confused.
	if tab.ref([]ACL{{1, ID{"ab", "c"}}}) == tab.ref([]ACL{{1, ID{"a", "bc"}}}) {
		t.Fatal("two lists share a number")
	}
}
