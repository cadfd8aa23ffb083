package auth

import (
	"crypto/x509"
	"net"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/znode"
)

func TestCertificate_AlternativeName(t *testing.T) {
	uri := func(texts ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, text := range texts {
				u, err := url.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				c.URIs = append(c.URIs, u)
			}
			c.DNSNames, c.EmailAddresses = []string{"a.example.org"}, []string{"ops@example.org"}
			c.IPAddresses = []net.IP{net.ParseIP("10.0.0.1")}
		}
	}
	const workload = "spiffe://example.org/ns/prod/sa/kafka"
	all := regexp.MustCompile(".*")
	for name, x := range map[string]struct {
		change func(*x509.Certificate)
		san    SAN
		want   string // empty: no id
	}{
		"SPIFFE":             {uri(workload), SAN{SANURI, all, all, 0}, workload},
		"a part of it":       {uri(workload), SAN{SANURI, all, regexp.MustCompile("/ns/([^/]+)/sa/([^/]+)$"), 2}, "kafka"},
		"one of several":     {uri("https://example.org", workload), SAN{SANURI, regexp.MustCompile("^spiffe:"), all, 0}, workload},
		"two that match":     {uri(workload, workload+"2"), SAN{SANURI, all, all, 0}, ""},
		"none":               {uri(), SAN{SANURI, all, all, 0}, ""},
		"none that matches":  {uri(workload), SAN{SANURI, regexp.MustCompile("^https:"), all, 0}, ""},
		"nothing to extract": {uri(workload), SAN{SANURI, all, regexp.MustCompile("/x/(.*)"), 1}, ""},
		"DNS":                {uri(), SAN{SANDNS, all, all, 0}, "a.example.org"},
		"email":              {uri(), SAN{SANEmail, all, all, 0}, "ops@example.org"},
		"address":            {uri(), SAN{SANAddress, all, all, 0}, "10.0.0.1"},
	} {
		cert := certs.Authority(t, "ca").Issue(t, "subject", x.change).Cert
		a := New(Config{SAN: &x.san, SuperName: workload})
		var want []znode.ID
		if x.want != "" {
			want = []znode.ID{{Scheme: "x509", ID: x.want}}
		}
		if x.want == workload {
			want = append(want, znode.ID{Scheme: "super", ID: workload})
		}
		if got := a.Certificate(cert); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
