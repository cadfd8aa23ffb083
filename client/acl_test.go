package client_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/client"
)

// Computed with openssl; the second is the super user of the tests with real servers.
func TestDigestID_Examples(t *testing.T) {
	for _, x := range []struct{ user, password, id string }{
		{"super", "admin", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="},
		{"super", "integration", "super:FGl0qT2M5E+MH9QCeyPBy30Tcxc="},
		{"a", "b:c", "a:cLzgnoJ6mP5qz3w+mwvPE2vDgu0="}, // the password may have colons
		{"a", "", "a:faqErSBWcv9/lZW1ERCcDsnNQLg="},
	} {
		id, err := client.DigestID(x.user, x.password)
		must(t, err)
		if want := (client.ID{Scheme: "digest", ID: x.id}); id != want {
			t.Errorf("%s:%s is %v, want %v", x.user, x.password, id, want)
		}
	}
	for _, user := range []string{"", "a:b"} {
		_, err := client.DigestACL(client.PermAll, user, "secret")
		wantErr(t, err, client.ErrBadArguments)
	}
}

// A list made of a name and a password admits clients that prove them, with the
// permissions given; the creator of the znode need not be that user.
func TestReal_DigestACL_LetsInWhoKnowsThePassword(t *testing.T) {
	ctx, servers := t.Context(), startServer(t)
	anybody := connect(t, servers)
	reader, err := client.DigestACL(client.PermRead|client.PermDelete, "reader", "pass:word")
	must(t, err)
	owner, err := client.DigestACL(client.PermAll, "owner", "secret")
	must(t, err)
	_, _, err = anybody.Create(ctx, "/d", []byte("x"), client.Persistent, append(reader, owner...)...)
	must(t, err)
	_, _, err = anybody.Get(ctx, "/d")
	wantErr(t, err, client.ErrNoAuth)
	wrong := connect(t, servers, client.WithAuth("digest", []byte("reader:password")))
	_, _, err = wrong.Get(ctx, "/d")
	wantErr(t, err, client.ErrNoAuth)

	r := connect(t, servers, client.WithAuth("digest", []byte("reader:pass:word")))
	must(t, r.Sync(ctx, "/d"))
	_, _, err = r.Get(ctx, "/d")
	must(t, err)
	_, err = r.Set(ctx, "/d", nil, client.AnyVersion)
	wantErr(t, err, client.ErrNoAuth)
	o := connect(t, servers, client.WithAuth("digest", []byte("owner:secret")))
	must(t, o.Sync(ctx, "/d"))
	acl, stat, err := o.GetACL(ctx, "/d")
	must(t, err)
	if len(acl) != 2 || acl[0] != reader[0] || acl[1] != owner[0] {
		t.Errorf("the list is %v, want %v and %v", acl, reader[0], owner[0])
	}
	_, err = o.SetACL(ctx, "/d", append(client.ReadACL(), owner...), stat.Aversion)
	must(t, err)
	must(t, anybody.Sync(ctx, "/d"))
	_, _, err = anybody.Get(ctx, "/d")
	must(t, err)
}

// The predefined lists grant what their documentation states.
func TestReal_ReadyMadeACLs(t *testing.T) {
	ctx, servers := t.Context(), startServer(t)
	anybody, c := connect(t, servers), connect(t, servers, client.WithAuth("digest", []byte("u:p")))
	_, _, err := anybody.Create(ctx, "/nobody", nil, client.Persistent, client.CreatorACL()...)
	wantErr(t, err, client.ErrInvalidACL)
	for path, acl := range map[string][]client.ACL{
		"/open": client.OpenACL(), "/read": client.ReadACL(), "/own": client.CreatorACL(),
	} {
		_, _, err := c.Create(ctx, path, nil, client.Persistent, acl...)
		must(t, err)
		must(t, anybody.Sync(ctx, path))
		if _, _, err = anybody.Get(ctx, path); (err == nil) != (path != "/own") {
			t.Errorf("reading %s: %v", path, err)
		}
		if _, err = anybody.Set(ctx, path, nil, client.AnyVersion); (err == nil) != (path == "/open") {
			t.Errorf("writing %s: %v", path, err)
		}
	}
	_, err = c.Set(ctx, "/own", nil, client.AnyVersion)
	must(t, err)
	careful := connect(t, servers, client.WithDefaultACL(client.ReadACL()...))
	m := careful.Multi()
	m.Create("/multi", nil, client.Persistent)
	must(t, m.Commit(ctx))
	_, _, err = careful.Create(ctx, "/default", nil, client.Persistent)
	must(t, err)
	for _, path := range []string{"/default", "/multi"} {
		_, err = careful.Set(ctx, path, nil, client.AnyVersion)
		wantErr(t, err, client.ErrNoAuth)
	}
	acl, _, err := c.GetACL(ctx, "/own")
	must(t, err)
	want, err := client.DigestACL(client.PermAll, "u", "p")
	must(t, err)
	if len(acl) != 1 || acl[0] != want[0] {
		t.Errorf("the server makes %v of it, want %v", acl, want)
	}
}
