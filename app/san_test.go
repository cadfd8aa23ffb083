package app_test

import (
	"crypto/x509"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/server/auth"
)

// A client is who the URI in its certificate says, and ACLs may name it so; another certificate of the same authority
// with the same subject is no one.
func TestServer_TLS_IdentityFromAURI(t *testing.T) {
	const workload = "spiffe://example.org/ns/prod/sa/kafka"
	ca := certs.Authority(t, "ca")
	o := secured(t, ca)
	o.Settings.PortUnification, o.Settings.TLS.ClientAuth = true, config.ClientAuthNeed
	all := regexp.MustCompile(".*")
	o.Settings.Auth.SAN = &auth.SAN{Kind: auth.SANURI, Match: all, Extract: all}
	n := started(t, o)
	connect := func(change func(*x509.Certificate)) *client.Client {
		c, err := client.Connect(t.Context(), n.ClientAddr().String(),
			client.WithTLS(identity(ca, ca.Issue(t, "client", change))))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	kafka := connect(func(c *x509.Certificate) {
		u, err := url.Parse(workload)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = []*url.URL{u}
	})
	id := client.ID{Scheme: "x509", ID: workload}
	if ids, err := kafka.WhoAmI(t.Context()); err != nil || !slices.Contains(ids, id) {
		t.Errorf("the server knows %v, %v; want %v", ids, err, id)
	}
	acl := []client.ACL{{Perms: client.PermAll, ID: id}}
	if _, _, err := kafka.Create(t.Context(), "/kafka", []byte("x"), client.Persistent, acl...); err != nil {
		t.Fatal(err)
	}
	if data, _, err := kafka.Get(t.Context(), "/kafka"); err != nil || string(data) != "x" {
		t.Errorf("its own znode: %q, %v", data, err)
	}
	other := connect(nil)
	if ids, err := other.WhoAmI(t.Context()); err != nil || slices.ContainsFunc(ids, func(i client.ID) bool { return i.Scheme == "x509" }) {
		t.Errorf("a certificate without a URI is %v, %v", ids, err)
	}
	if _, _, err := other.Get(t.Context(), "/kafka"); !errors.Is(err, client.ErrNoAuth) {
		t.Errorf("another's znode: %v, want %v", err, client.ErrNoAuth)
	}
}
