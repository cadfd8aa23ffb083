package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

// A server forwards what its client has proved, and no claim that the client makes by itself. It reports a server that
// does not answer.
func TestPeers_OfWhatIsPassedOn(t *testing.T) {
	e := fresh(t, 3)
	c := newClient(t, e.urls[0])
	c.post("/v1/znodes/private?acl=ip:127.0.0.1:cdrwa,world:anyone:w", "").want(201)
	s := c.post("/v1/sessions", `{"timeout":"60s"}`).want(201)
	own := c.with("Zk-Session: " + s.text("id") + "." + s.text("secret"))
	own.post("/v1/znodes/private/me?mode=ephemeral", "").want(201)
	c.at(e.urls[1]).get("/v1/znodes/private/me?consistency=linearizable").want(200)
	c.get("/v1/sessions/"+s.text("id")).want(200).has("paths.0", "/private/me")
	c.get("/v1/sessions/"+s.text("id")+"?server=2").want(200).has("paths.0", "/private/me")
	forged := c.with(`Zk-Client: {"address":"127.0.0.1","local":true}`)
	forged.get("/v1/slow/requests").problem(401, "NOAUTH")
	forged.get("/v1/slow/requests?server=2").problem(401, "NOAUTH")

	super := c.with(basic("super:secret"))
	super.post("/v1/cluster/drain?server=2", "").want(200).has("server", 2)
	super.get("/v1/cluster").want(200).has("server.draining", false)
	c.at(e.urls[1]).get("/readyz").want(503)
	c.get("/readyz?server=2&verbose").want(503).has("status", "draining").has("server", 2)
	c.get("/readyz?server=3&verbose").want(200).has("server", 3)
	super.delete("/v1/cluster/drain?server=2").want(204)
	e.stop(1)
	for _, path := range []string{
		"/v1/sessions/" + s.text("id"), "/v1/watchers/private", "/metrics", "/readyz", "/v1/history",
		"/v1/expired-sessions", "/v1/sessions", "/v1/slow/requests", "/v1/slow/entries", "/v1/top",
		"/v1/subtrees/private",
	} {
		super.get(path + "?server=2").want(502)
		super.get(path+"?server=9").want(404).has("parameter", "server")
	}
	// In short words first, in full beside them.
	const short = `connection refused \(127\.0\.0\.1:\d+\)$`
	for member, text := range map[string]string{
		"detail": "^server: server 2 does not answer: " + short, "reason": "^down: " + short, "cause": `dial tcp .*` + "connection refused$",
	} {
		if got := super.get("/metrics?server=2").want(502).text(member); !regexp.MustCompile(text).MatchString(got) {
			t.Errorf("%s is %q, want a match of %s", member, got, text)
		}
	}
	for server, status := range map[string]int{"2": 502, "9": 404} {
		super.post("/v1/cluster/drain?server="+server, "").want(status)
		super.delete("/v1/cluster/drain?server=" + server).want(status)
	}
	c.get("/metrics?server=3").want(200).contains("raft_term")
	c.get("/v1/history?server=3&since=1").want(200).has("interval", "10s").has("names.0", "packets_received")
}

// An administrator of one server, by its token, is one of the others, through that server only.
func TestPeers_TheLocalAdministrator(t *testing.T) {
	e := fresh(t, 2, func(s *config.Settings) { s.Auth.SuperDigest = "" })
	file, err := os.ReadFile(filepath.Join(e.settings[0].DataDir, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(file), "\n")
	c := newClient(t, e.urls[0]).with("Authorization: Bearer " + token)
	for _, path := range []string{"/v1/slow/requests", "/v1/sessions/0x1"} {
		status := c.get(path).status
		c.get(path + "?server=2").want(status)
		c.at(e.urls[1]).get(path + "?server=2").want(401)
		c.at(e.urls[1]).get(path + "?server=1").want(401)
	}
	for _, path := range []string{"/v1/mirror", "/v1/takeover"} { // which the leader answers
		c.get(path).want(200)
		for _, url := range e.urls {
			newClient(t, url).get(path).want(401).contains("admin.token")
		}
	}
	c.get("/v1/slow/requests?server=2").want(200).has("server", 2)
	c.with("Via: 1.1 proxy").get("/v1/slow/requests?server=2").want(403)
}

// A certificate proves the same at the other server as at the one that is asked, whatever authority has signed theirs.
func TestPeers_Certificates(t *testing.T) {
	ca, dir := certs.Authority(t, "ca"), t.TempDir()
	e := fresh(t, 2, func(s *config.Settings) {
		s.TLS.Key.Location = certs.Write(t, filepath.Join(dir, "server.pem"), ca.Issue(t, "server", nil).KeyPEM(t))
		s.TLS.Trust.Location = certs.Write(t, filepath.Join(dir, "ca.pem"), ca.CertPEM())
		s.AdminPortUnification, s.Auth.SuperDigest, s.Auth.SuperName = true, "", "CN=admin"
	})
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	for name, want := range map[string]int{"admin": 200, "guest": 403} {
		pair := ca.Issue(t, name, nil)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost",
			Certificates: []tls.Certificate{{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}}}
		defer transport.CloseIdleConnections()
		for _, query := range []string{"", "?server=2"} {
			url := strings.Replace(e.urls[0], "http:", "https:", 1) + "/v1/slow/requests" + query
			resp, err := (&http.Client{Transport: transport}).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != want {
				t.Errorf("%s%s: %s, want %d", name, query, resp.Status, want)
			}
		}
	}
}
