package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

// handshake connects a client to a server over loopback and returns what each of them met.
func handshake(t *testing.T, server, client *tls.Config) (atServer, atClient error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		s := tls.Server(c, server)
		err = s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		done <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := tls.Client(c, client)
	if atClient = s.Handshake(); atClient == nil {
		_, atClient = s.Read(make([]byte, 1)) // with TLS 1.3 a refusal comes after the handshake
	}
	c.Close()
	return <-done, atClient
}

func open(t *testing.T, cfg Config) *Files {
	t.Helper()
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// kit has an authority, and a server's key and trust stores by it.
type kit struct {
	ca  *certs.Pair
	dir string
	cfg Config
}

func newKit(t *testing.T) *kit {
	k := &kit{ca: certs.Authority(t, "ca"), dir: t.TempDir()}
	k.cfg = Config{Prefix: "ssl.", Key: k.store(t, "server.pem", k.ca.Issue(t, "server", nil)),
		Trust: Store{Location: certs.Write(t, k.dir+"/ca.pem", k.ca.CertPEM())}}
	return k
}

func (k *kit) store(t *testing.T, name string, p *certs.Pair) Store {
	return Store{Location: certs.Write(t, filepath.Join(k.dir, name), p.KeyPEM(t))}
}

// as is the configuration of a client with this certificate.
func (k *kit) as(t *testing.T, p *certs.Pair) *tls.Config {
	cfg := Config{Prefix: "ssl.", Trust: k.cfg.Trust}
	if p != nil {
		cfg.Key = k.store(t, "client.pem", p)
	}
	return open(t, cfg).Client("localhost")
}

// Whom a server lets in, of all the certificates that a client might show.
func TestServer_ClientCertificates(t *testing.T) {
	k := newKit(t)
	k.cfg.CheckCRL = true
	revoked, good := k.ca.Issue(t, "revoked", nil), k.ca.Issue(t, "good", nil)
	soon := time.Now().Add(time.Hour)
	k.cfg.CRLs = certs.Write(t, k.dir+"/crl.pem", k.ca.Revoke(t, soon, revoked))
	stranger := certs.Authority(t, "stranger")
	elsewhere := k.ca.Issue(t, "elsewhere", func(c *x509.Certificate) { c.IPAddresses = []net.IP{{192, 0, 2, 1}} })
	for name, x := range map[string]struct {
		cert *certs.Pair
		want string // "": let in
	}{
		"good":               {good, ""},
		"revoked":            {revoked, "revoked"},
		"self-signed":        {stranger, "unknown authority"},
		"another authority":  {stranger.Issue(t, "good", nil), "unknown authority"},
		"the authority":      {k.ca, ""},
		"none":               {nil, "didn't provide a certificate"},
		"another address":    {elsewhere, "192.0.2.1, not 127.0.0.1"},
		"for servers only":   {k.ca.Issue(t, "s", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), "key usage"},
		"expired":            {k.ca.Issue(t, "e", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "expired"},
		"not yet valid":      {k.ca.Issue(t, "n", func(c *x509.Certificate) { c.NotBefore = soon }), "not yet valid"},
		"signed by a client": {good.Issue(t, "child", nil), "unknown authority"},
	} {
		cfg := k.cfg
		cfg.CheckClientHost = x.cert != k.ca // whose certificate has no names
		server := open(t, cfg).Server(tls.RequireAndVerifyClientCert)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			client := k.as(t, x.cert)
			client.MinVersion, client.MaxVersion = version, version
			if x.cert != nil { // also one that the server does not ask for
				pair := client.Certificates[0]
				client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
			at, atClient := handshake(t, server, client)
			if (at == nil) != (x.want == "") || at != nil && !strings.Contains(at.Error(), x.want) ||
				(atClient == nil) != (x.want == "") {
				t.Errorf("%s: the server: %v; the client: %v; want %q", name, at, atClient, x.want)
			}
		}
	}
}

// A list that is not in force admits no one: without it no one knows that a certificate is not
// revoked.
func TestServer_ListOfRevoked_TooOld(t *testing.T) {
	k := newKit(t)
	k.cfg.CheckCRL = true
	if _, err := Open(k.cfg); err == nil || !strings.Contains(err.Error(), "ssl.crl: neither") {
		t.Errorf("without a list: %v", err)
	}
	k.cfg.CRLs = certs.Write(t, k.dir+"/crl.pem", k.ca.Revoke(t, time.Now().Add(-time.Minute)))
	server := open(t, k.cfg).Server(tls.RequireAndVerifyClientCert)
	at, _ := handshake(t, server, k.as(t, k.ca.Issue(t, "good", nil)))
	if at == nil || !strings.Contains(at.Error(), "is in force") {
		t.Errorf("an old list: %v", at)
	}
	other := certs.Authority(t, "other")
	certs.Write(t, k.dir+"/crl.pem", other.Revoke(t, time.Now().Add(time.Hour)))
	server = open(t, k.cfg).Server(tls.RequireAndVerifyClientCert)
	if at, _ := handshake(t, server, k.as(t, k.ca.Issue(t, "good", nil))); at == nil {
		t.Error("another authority's list was taken")
	}
}

// The names by which a client accepts the server.
func TestClient_ServersCertificates(t *testing.T) {
	k := newKit(t)
	for name, x := range map[string]struct {
		host    string
		anyHost bool
		trust   *certs.Pair
		version uint16
		good    bool
	}{
		"its name":               {"localhost", false, k.ca, tls.VersionTLS13, true},
		"its address":            {"127.0.0.1", false, k.ca, tls.VersionTLS12, true},
		"another name":           {"example.org", false, k.ca, tls.VersionTLS13, false},
		"any name":               {"example.org", true, k.ca, tls.VersionTLS13, true},
		"another authority":      {"localhost", false, certs.Authority(t, "x"), tls.VersionTLS13, false},
		"another, with any name": {"localhost", true, certs.Authority(t, "x"), tls.VersionTLS13, false},
		"an old version":         {"localhost", false, k.ca, tls.VersionTLS11, false},
	} {
		client := open(t, Config{AnyHost: x.anyHost,
			Trust: Store{Location: certs.Write(t, k.dir+"/trust.pem", x.trust.CertPEM())}}).Client(x.host)
		client.MinVersion, client.MaxVersion = x.version, x.version
		_, at := handshake(t, open(t, k.cfg).Server(tls.NoClientCert), client)
		if (at == nil) != x.good {
			t.Errorf("%s: the handshake ended with %v, want success: %t", name, at, x.good)
		}
	}
	cfg := k.cfg
	cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	client := k.as(t, nil)
	client.MaxVersion = tls.VersionTLS12
	if at, _ := handshake(t, open(t, cfg).Server(tls.NoClientCert), client); at == nil {
		t.Error("TLS 1.2 was spoken where 1.3 is asked for")
	}
}

// New files are used by the next handshake; bad ones change nothing and are counted once.
func TestReload(t *testing.T) {
	k := newKit(t)
	f := open(t, k.cfg)
	server, first := f.Server(tls.RequireAndVerifyClientCert), k.as(t, k.ca.Issue(t, "client", nil))
	check := func(what string, client *tls.Config, good bool) {
		t.Helper()
		if at, _ := handshake(t, server, client); (at == nil) != good {
			t.Errorf("%s: the handshake ended with %v, want success: %t", what, at, good)
		}
	}
	check("at first", first, true)
	if changed, err := f.Reload(); changed || err != nil {
		t.Errorf("nothing has changed: %v, %v", changed, err)
	}
	next := certs.Authority(t, "next")
	certs.Write(t, k.cfg.Key.Location, next.Issue(t, "server", nil).KeyPEM(t))
	certs.Write(t, k.cfg.Trust.Location, next.CertPEM())
	if changed, err := f.Reload(); !changed || err != nil {
		t.Fatalf("new files: %v, %v", changed, err)
	}
	check("a client of the old authority", first, false)
	k.ca = next
	second := k.as(t, next.Issue(t, "client", nil))
	check("one of the new", second, true)

	late := next.Issue(t, "late", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	for name, bad := range map[string][]byte{
		"half a file":     next.Issue(t, "server", nil).KeyPEM(t)[:100],
		"another's key":   append(next.Issue(t, "a", nil).KeyPEM(t)[:241], next.CertPEM()...),
		"one that is old": late.KeyPEM(t),
	} {
		_, before := f.Reloads()
		certs.Write(t, k.cfg.Key.Location, bad)
		if changed, err := f.Reload(); !changed || err == nil || f.Err() == nil {
			t.Errorf("%s: changed is %t (%v), want a change and an error, which Err keeps", name, changed, err)
		}
		if changed, err := f.Reload(); changed || err == nil {
			t.Errorf("%s, unchanged: %v, %v", name, changed, err)
		}
		if _, after := f.Reloads(); after != before+1 {
			t.Errorf("%s was counted %d times", name, after-before)
		}
		check("after "+name, second, true)
	}
	if err := os.Remove(k.cfg.Key.Location); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	certs.Write(t, k.cfg.Key.Location, next.Issue(t, "server", nil).KeyPEM(t))
	if _, err := f.Reload(); err != nil || f.Err() != nil {
		t.Errorf("a good file again: %v", err)
	}
	if good, bad := f.Reloads(); good != 2 || bad != 4 {
		t.Errorf("%d reloads, %d failures", good, bad)
	}
}

// A client whose authority was removed is not admitted by a session ticket of its last connection.
func TestReload_NoResumptionAfterwards(t *testing.T) {
	k := newKit(t)
	f := open(t, k.cfg)
	server, client := f.Server(tls.RequireAndVerifyClientCert), k.as(t, k.ca.Issue(t, "client", nil))
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if at, _ := handshake(t, server, client); at != nil {
		t.Fatalf("the handshake failed at the server: %v", at)
	}
	certs.Write(t, k.cfg.Trust.Location, certs.Authority(t, "next").CertPEM())
	if _, err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if at, _ := handshake(t, server, client); at == nil {
		t.Error("it got in")
	}
}

func TestExpires_IsTheFirstOfTheChain(t *testing.T) {
	k := newKit(t)
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	middle := k.ca.Issue(t, "middle", func(c *x509.Certificate) {
		c.NotAfter, c.IsCA, c.BasicConstraintsValid, c.KeyUsage = soon, true, true, x509.KeyUsageCertSign
	})
	certs.Write(t, k.cfg.Key.Location, middle.Issue(t, "server", nil).KeyPEM(t), middle.CertPEM())
	if at := open(t, k.cfg).Expires(); !at.Equal(soon) {
		t.Errorf("%v, want %v", at, soon)
	}
	if at := open(t, Config{}).Expires(); !at.IsZero() {
		t.Errorf("without a certificate: %v", at)
	}
}

func TestVerifyOwn(t *testing.T) {
	dir := t.TempDir()
	ca, other := certs.Authority(t, "ca"), certs.Authority(t, "other")
	server := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	good, lost := ca.Issue(t, "good", nil), ca.Issue(t, "lost", nil)
	list := certs.Write(t, filepath.Join(dir, "crl.pem"), ca.Revoke(t, time.Now().Add(time.Hour), lost))
	for name, x := range map[string]struct {
		pair *certs.Pair
		host string
		any  bool
		want string
	}{
		"good": {good, "localhost", false, ""}, "another host": {good, "a.example", false, "a.example"},
		"any host": {good, "a.example", true, ""}, "servers only": {ca.Issue(t, "s", server), "localhost", false, "usage"},
		"another authority": {other.Issue(t, "o", nil), "localhost", false, "unknown authority"},
		"revoked":           {lost, "localhost", false, "was revoked"},
	} {
		f, err := Open(Config{
			Key:   Store{Location: certs.Write(t, filepath.Join(dir, "key.pem"), x.pair.KeyPEM(t))},
			Trust: Store{Location: certs.Write(t, filepath.Join(dir, "ca.pem"), ca.CertPEM())},
			CRLs:  list, CheckCRL: true, AnyHost: x.any,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.VerifyOwn(x.host); (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// Clients with protocols of their own are admitted without one.
func TestServer_Protocols(t *testing.T) {
	k := newKit(t)
	server := open(t, k.cfg).Server(tls.NoClientCert)
	for _, x := range []struct {
		offered []string
		want    string
	}{{nil, ""}, {[]string{"h2", "http/1.1"}, ""}, {[]string{"h2", Batches}, Batches}} {
		client := k.as(t, nil)
		client.NextProtos = x.offered
		var got string
		client.VerifyConnection = func(s tls.ConnectionState) error { got = s.NegotiatedProtocol; return nil }
		if at, atClient := handshake(t, server, client); at != nil || atClient != nil || got != x.want {
			t.Errorf("%q offered: %q, the server: %v; the client: %v; want %q", x.offered, got, at, atClient, x.want)
		}
	}
}
