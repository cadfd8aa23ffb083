//go:build interop

package conformance_test

import (
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/znode"
)

// The digests of user:secret and other:secret (base64 of SHA-1).
const (
	userDigest  = "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4="
	otherDigest = "other:8q+cqA9FicvypK1WV0YuCD5XdXU="
)

// acls leaves out IPv6, which ZooKeeper has since 3.9.4 (addresses), and schemes that it knows only where they are
// configured.
func acls() []step {
	s := []step{a.create("/acl", null, znode.Persistent)}
	for i, l := range [][]znode.ACL{
		nil, {}, acl(31, "world", "anyone"), acl(31, "world", "somebody"), acl(31, "", ""),
		acl(31, "super", ""), acl(31, "super", "x"), acl(31, "auth", ""), acl(31, "auth", "x"),
		acl(0, "world", "anyone"), acl(63, "world", "anyone"), acl(-1, "world", "anyone"),
		acl(31, "what", "ever"), acl(31, "digest", "u"), acl(31, "digest", "u:"),
		acl(31, "digest", ":h"), acl(31, "digest", "u:h"), acl(31, "digest", "u:h:x"),
		acl(31, "digest", ""), acl(31, "ip", "127.0.0.1"), acl(31, "ip", "127.0.0.0/8"),
		acl(31, "ip", "127.0.0.1/32"), acl(31, "ip", "127.0.0.1/33"), acl(31, "ip", "127.0.0.1/-1"),
		acl(31, "ip", "127.0.0.1/x"), acl(31, "ip", "127.0.0"), acl(31, "ip", "256.0.0.1"),
		acl(31, "ip", ""), acl(31, "ip", "::ffff:127.0.0.1"), acl(31, "ip", "localhost"),
		acl(1, "ip", "10.0.0.1"),
		{{Perms: 31, ID: znode.Anyone}, {Perms: 31, ID: znode.Anyone}},
		{{Perms: 1, ID: znode.Anyone}, {Perms: 31, ID: znode.ID{Scheme: "digest", ID: "u:h"}}},
		{{Perms: 31, ID: znode.Anyone}, {Perms: 31, ID: znode.ID{Scheme: "what", ID: "x"}}},
	} {
		path := "/acl/" + string(rune('A'+i))
		s = append(s, a.createACL(path, str("x"), 0, l), a.getACL(path), a.get(path, false),
			a.setACL("/acl", l, -1), a.getACL("/acl"))
		s = append(s, a.setACL("/acl", znode.OpenACL, -1)) // where it is still allowed
		if i%4 == 3 {
			// A new connection, as some of the lists lock everyone out.
			s = append(s, x.connect(1), x.auth("digest", cluster.SuperCredentials),
				x.setACL("/acl", znode.OpenACL, -1), x.close())
		}
	}
	return s
}

// addresses are ids of scheme ip.
func addresses() []step {
	s := []step{a.create("/ip", null, 0)}
	for i, id := range []string{"::127.0.0.1", "127.0.0.01", "+127.0.0.1"} {
		path := fmt.Sprintf("/ip/odd-%d", i)
		s = append(s, a.createACL(path, null, 0, acl(31, "ip", id)), a.getACL(path))
	}
	for i, id := range []string{"::1", "::", "::1/128", "::1/129", "::1/0", "::/0", "fe80::/10", "fe80::1%lo", "1::2::3",
		"2001:db8:0:0:0:0:0:1", "2001:DB8::1/32", "::ffff:127.0.0.1/96", "::ffff:127.0.0.1/128", "::ffff:10.0.0.1",
		"[::1]", "::1/", "::1/+64", "::1/-0", "::1/064", "::1/64/64", "/64", "/", "127.0.0.1/", "127.0.0.1/+8",
		"127.0.0.1/08", "0.0.0.0/0", "127.0.0.2/30", "127.0.0.2/31", "127.1.2.3/9", "127.0.0.1/8/8", " 127.0.0.1",
		"127.0.0.1 ", "127.0.0.1.1", "0x7f.0.0.1", "-1.0.0.0", "127..0.1", "12345::",
		"1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", ":1", "1:", ":::"} {
		path := fmt.Sprintf("/ip/%d", i)
		s = append(s, a.createACL(path, str("x"), 0, append(acl(31, "ip", id), acl(8, "world", "anyone")...)),
			a.getACL(path), a.get(path, false))
	}
	return s
}

// otherSchemes have ids of schemes that are not configured here.
func otherSchemes() []step {
	s := []step{a.create("/sch", null, 0)}
	for i, l := range [][]znode.ACL{acl(31, "sasl", "user"), acl(31, "sasl", "user@REALM"), acl(31, "x509", "CN=user,O=x"),
		append(acl(31, "sasl", "user"), znode.OpenACL...)} {
		path := fmt.Sprintf("/sch/%d", i)
		s = append(s, a.createACL(path, null, 0, l), a.getACL(path), a.get(path, false))
	}
	return append(s, a.auth("digest", "user:secret"), a.multi(a.createACL("/sch/9", null, 0, acl(31, "x509", "CN=user"))))
}

// otherDigests have ids with another algorithm than the usual one: what that one has made is of no use.
func otherDigests() []step {
	s := []step{d.connect(2), d.auth("digest", "user:secret"), d.whoAmI()}
	for i, l := range [][]znode.ACL{acl(31, "auth", ""), acl(31, "digest", userDigest), acl(31, "digest", "user:secret")} {
		path := fmt.Sprintf("/od%d", i)
		s = append(s, d.createACL(path, str("x"), 0, l), d.getACL(path), d.get(path, false), d.set(path, null, -1),
			d.setACL(path, l, -1), b.getACL(path))
	}
	return append(s, d.close())
}

func digests() []step {
	return []step{
		d.connect(2), d.createACL("/dig", null, 0, acl(31, "auth", "")),
		d.auth("digest", "user:secret"), d.createACL("/dig", str("mine"), 0, acl(31, "auth", "")),
		d.getACL("/dig"), d.get("/dig", false), a.get("/dig", false), a.getACL("/dig"),
		a.set("/dig", null, -1), a.delete("/dig", -1), a.exists("/dig", false), a.ls("/dig", false),
		a.descendants("/dig"), a.create("/dig/x", null, 0), d.create("/dig/x", str("1"), 0),
		a.delete("/dig/x", -1), a.multi(a.check("/dig", -1)), d.multi(d.check("/dig", -1)),
		d.auth("digest", "other:secret"), d.createACL("/dig/two", null, 0, acl(31, "auth", "ignored")),
		d.getACL("/dig/two"), d.whoAmI(), a.auth("digest", "user:wrong"), a.get("/dig", false),
		a.auth("digest", "user:secret"), a.get("/dig", false), a.get("/dig/two", false),
		b.createACL("/dig3", null, 0, acl(31, "digest", userDigest)), b.getACL("/dig3"), a.getACL("/dig3"),
		b.createACL("/dig4", null, 0, acl(1, "digest", otherDigest)), d.get("/dig4", false),
		d.getACL("/dig4"), b.getACL("/dig4"), d.setACL("/dig4", znode.OpenACL, -1),
		b.delete("/dig4", -1), d.close(), a.whoAmI(), b.whoAmI(),
	}
}

func auths() []step {
	var s []step
	for _, x := range []struct{ scheme, credentials string }{
		{"digest", "no-colon"}, {"digest", ""}, {"digest", "a:b:c"}, {"world", "anyone"}, {"ip", "1.2.3.4"},
		{"what", "x"}, {"", ""}, {"super", "x"}, {"auth", ""}, {"sasl", "x"},
		{"digest", cluster.SuperCredentials},
	} {
		s = append(s, d.connect(1), d.auth(x.scheme, x.credentials), d.whoAmI(), d.exists("/dig", false),
			d.getACL("/dig"), d.create("/auths-", null, znode.PersistentSequential))
		if !slices.Contains([]string{"digest", "ip"}, x.scheme) {
			// The connection has ended; the session must not expire some time later.
			s = append(s, d.resume(2), d.whoAmI())
		}
		s = append(s, d.close())
	}
	// auth and what needs it, without waiting between them.
	return append(s, d.connect(3), d.burst(d.auth("digest", "user:secret"),
		d.createACL("/pipelined", null, 0, acl(31, "auth", "")), d.get("/pipelined", false)), d.close())
}

// aclChecks asks for everything under every single permission.
func aclChecks() []step {
	s := []step{x.connect(2), x.auth("digest", cluster.SuperCredentials),
		x.create("/perm", null, 0), a.set("/perm", str("x"), -1)}
	for _, perm := range []znode.Perms{0, 1, 2, 4, 8, 16, 1 | 2, 4 | 8, 31} {
		s = append(s, x.create("/perm/n", str("d"), 0), x.create("/perm/n/old", null, 0),
			x.setACL("/perm/n", acl(perm, "world", "anyone"), -1),
			b.get("/perm/n", false), b.set("/perm/n", str("e"), -1), b.set("/perm/n", str("e"), 99),
			b.ls("/perm/n", false), b.ls2("/perm/n", false), b.create("/perm/n/new", null, 0),
			b.create("/perm/n/old", null, 0), b.createACL("/perm/n/new", null, 0, nil),
			b.delete("/perm/n/old", -1), b.delete("/perm/n/none", -1), b.delete("/perm/n/new", 7),
			b.delete("/perm/n/new", -1), b.getACL("/perm/n"), b.descendants("/perm/n"),
			b.descendants("/perm"), b.multi(b.check("/perm/n", -1)), b.multi(b.set("/perm/n", null, -1)),
			b.multi(b.create("/perm/n/m", null, 0), b.delete("/perm/n/m", -1)),
			b.multiRead(b.get("/perm/n", false), b.ls("/perm/n", false), b.get("/perm", false)),
			b.sync("/perm/n"), b.exists("/perm/n", false),
			b.setACL("/perm/n", acl(perm, "world", "anyone"), 99),
			b.setACL("/perm/n", acl(perm, "world", "anyone"), -1), x.getACL("/perm/n"),
			x.delete("/perm/n/old", -1), x.delete("/perm/n/new", -1), x.delete("/perm/n", -1))
	}
	return append(s, x.close())
}
