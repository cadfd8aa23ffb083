package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/server/audit"
)

// secured are options with a certificate of this authority, and the authority's clients trusted.
func secured(t *testing.T, ca *certs.Pair) app.Options {
	dir := t.TempDir()
	o := options(t, t.TempDir())
	o.Settings.ZooKeeper.Words = []string{"*"}
	o.Settings.TLS.Key.Location = certs.Write(t, dir+"/server.pem", ca.Issue(t, "server", nil).KeyPEM(t))
	o.Settings.TLS.Trust.Location = certs.Write(t, dir+"/ca.pem", ca.CertPEM())
	return o
}

// identity is the configuration of a client of that authority; without a pair it shows no certificate.
func identity(ca, pair *certs.Pair) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	c := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if pair != nil {
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}
	}
	return c
}

func started(t *testing.T, o app.Options) *app.Server {
	t.Helper()
	n := open(t, o)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, "clients are served", n.Server().Serving)
	return n
}

// asks sends a word and returns the answer; with cfg it speaks TLS.
func asks(t *testing.T, addr net.Addr, cfg *tls.Config, word string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if cfg != nil {
		c = tls.Client(c, cfg)
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// The three steps from plain to TLS on one port, and a second port.
func TestServer_TLS_OnTheZooKeeperPorts(t *testing.T) {
	tier.Seconds(t)
	ca := certs.Authority(t, "ca")
	cfg, stranger := identity(ca, ca.Issue(t, "client", nil)), identity(ca, nil)

	o := secured(t, ca)
	o.Settings.PortUnification = true
	both := started(t, o)
	for _, c := range []*tls.Config{nil, cfg} {
		if got, err := asks(t, both.ClientAddr(), c, "ruok"); got != "imok" || err != nil {
			t.Errorf("client.portUnification: %q, %v", got, err)
		}
	}
	if got, err := asks(t, both.ClientAddr(), stranger, "ruok"); err == nil {
		t.Errorf("without a certificate: %q", got)
	}
	if got, err := asks(t, both.ClientAddr(), cfg, "mntr"); !strings.Contains(got, "\nzk_tls_handshakes_total\t2\n") ||
		!strings.Contains(got, "\nzk_tls_certificate_expiry_seconds\t") {
		t.Errorf("%s, %v", got, err)
	}

	o = secured(t, ca)
	o.Settings.SecureClientPort, o.Settings.SecureClientPortAddress = 0, "127.0.0.1"
	beside := started(t, o)
	if got, err := asks(t, beside.SecureClientAddr(), cfg, "conf"); err != nil || strings.Contains(got, "Port=-1") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := asks(t, beside.ClientAddr(), nil, "ruok"); got != "imok" || err != nil {
		t.Errorf("beside it: %q, %v", got, err)
	}
	if got, err := asks(t, beside.ClientAddr(), cfg, "ruok"); err == nil {
		t.Errorf("TLS on the port without: %q", got)
	}

	o = secured(t, ca)
	o.Settings.SecureClientPort, o.Settings.SecureClientPortAddress = 0, "127.0.0.1"
	o.Settings.ClientPort = config.NoPort
	o.Settings.TLS.ClientAuth = config.ClientAuthNone
	alone := started(t, o)
	if got, err := asks(t, alone.ClientAddr(), stranger, "ruok"); got != "imok" || err != nil {
		t.Errorf("ssl.clientAuth=none: %q, %v", got, err)
	}
	if got, err := asks(t, alone.ClientAddr(), nil, "ruok"); !strings.HasPrefix(got, "\x15\x03") {
		t.Errorf("plain: %q, %v", got, err)
	}
}

// HTTP with TLS: alone, beside plain HTTP, and for clients with certificates only.
func TestServer_TLS_OnTheHTTPPort(t *testing.T) {
	tier.Seconds(t)
	ca := certs.Authority(t, "ca")
	for name, x := range map[string]struct {
		change                   func(*config.Settings)
		plain, tls, certificated int // status; 0: an error
	}{
		"admin.forceHttps":      {func(s *config.Settings) { s.AdminForceHTTPS = true }, 400, 200, 200},
		"admin.portUnification": {func(s *config.Settings) { s.AdminPortUnification = true }, 200, 200, 200},
		"admin.needClientAuth":  {func(s *config.Settings) { s.AdminNeedClientAuth = true }, 400, 0, 200},
	} {
		o := secured(t, ca)
		x.change(&o.Settings)
		n := started(t, o)
		for scheme, want := range map[string]struct {
			cfg    *tls.Config
			status int
		}{
			"http": {nil, x.plain}, "https": {identity(ca, nil), x.tls}, "https ": {identity(ca, ca.Issue(t, "c", nil)), x.certificated},
		} {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: want.cfg, DisableKeepAlives: true}}
			resp, err := client.Get(strings.TrimSpace(scheme) + "://" + n.HTTPAddr().String() + "/readyz?verbose")
			if err != nil {
				if want.status != 0 {
					t.Errorf("%s, %s: got %v, want status %d", name, scheme, err, want.status)
				}
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != want.status ||
				want.status == 200 && !strings.Contains(string(body), "it expires in 30.0 days") {
				t.Errorf("%s, %s: got %d %s, %v, want %d", name, scheme, resp.StatusCode, body, err, want.status)
			}
		}
	}
}

// A certificate is exchanged under connections that stay; a bad one is reported.
func TestServer_TLS_FilesAreFollowed(t *testing.T) {
	tier.Seconds(t)
	ca, next := certs.Authority(t, "ca"), certs.Authority(t, "next")
	o := secured(t, ca)
	o.Settings.PortUnification = true
	n := started(t, o)
	client := ca.Issue(t, "client", nil)
	kept, err := tls.Dial("tcp", n.ClientAddr().String(), identity(ca, client))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	certs.Write(t, o.Settings.TLS.Trust.Location, ca.CertPEM(), next.CertPEM())
	certs.Write(t, o.Settings.TLS.Key.Location, next.Issue(t, "server", nil).KeyPEM(t))
	wait.Until(t, "the new certificate is shown", func() bool {
		_, err := asks(t, n.ClientAddr(), identity(next, client), "ruok")
		return err == nil
	})
	if _, err := io.WriteString(kept, "ruok"); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(kept); string(b) != "imok" || err != nil {
		t.Errorf("the connection from before: %q, %v", b, err)
	}
	certs.Write(t, o.Settings.TLS.Key.Location, []byte("nothing"))
	wait.Until(t, "the bad file is reported", func() bool {
		resp, err := http.Get("http://" + n.HTTPAddr().String() + "/readyz?verbose")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(body), "the newer files cannot be used: ssl.keyStore.location")
	})
	if got, err := asks(t, n.ClientAddr(), identity(next, client), "mntr"); err != nil ||
		!strings.Contains(got, "zk_tls_reload_failures_total\t1\n") || !strings.Contains(got, "zk_tls_reloads_total\t") {
		t.Errorf("%s, %v", got, err)
	}
}

// What the files lack stops the start before anything is touched, and --check says the same.
func TestServer_TLS_BadFilesStopTheStart(t *testing.T) {
	o := secured(t, certs.Authority(t, "ca"))
	o.Settings.PortUnification = true
	o.Settings.TLS.Key.Location += ".gone"
	for name, try := range map[string]func() error{
		"check": func() error { return app.Check(o) },
		"start": func() error { _, err := app.Open(o); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "ssl.keyStore.location: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The audit log has what clients of both ports change, fail to log in to, and are refused, and nothing secret.
func TestServer_Audit(t *testing.T) {
	tier.Seconds(t)
	o := options(t, t.TempDir())
	o.Settings.AuditEnabled = true
	o.Settings.Audit = audit.Config{File: o.Settings.DataDir + "/audit.log", MaxBytes: 1 << 20, Keep: 1}
	n := open(t, o)
	wait.Until(t, "clients are served", n.Server().Serving)
	url := "http://" + n.HTTPAddr().String()
	for _, x := range []struct{ method, target, auth string }{
		{"POST", "/v1/znodes/a?acl=auth::cdrwa", "ann:secret"}, {"GET", "/v1/znodes/a", ""}, {"GET", "/v1/cluster", ""},
		{"DELETE", "/v1/znodes/a", "ann:secret"},
	} {
		q, err := http.NewRequest(x.method, url+x.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if user, password, ok := strings.Cut(x.auth, ":"); ok {
			q.SetBasicAuth(user, password)
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.Settings.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"\toperation=serverStart\tresult=success\n",
		" user=127.0.0.1,ann\tip=127.0.0.1\toperation=create\tznode=/a\tznode_type=persistent\tresult=success\n",
		" user=127.0.0.1\tip=127.0.0.1\toperation=GET /v1/znodes/a\tresult=failure\treason=NOAUTH\n",
		" user=127.0.0.1\tip=127.0.0.1\toperation=GET /v1/cluster\tresult=failure\treason=NOAUTH\n",
		" user=127.0.0.1,ann\tip=127.0.0.1\toperation=delete\tznode=/a\tresult=success\n",
		"\toperation=serverStop\tresult=invoked\n",
	} {
		i := strings.Index(string(text[at:]), want)
		if i < 0 {
			t.Errorf("no %q in its place in\n%s", want, text)
			continue
		}
		at += i + len(want)
	}
	if strings.Contains(string(text), "secret") {
		t.Error("a password is in the audit log")
	}
}
