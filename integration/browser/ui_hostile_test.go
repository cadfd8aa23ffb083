package browser

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// TestUI_Views_Hostile: each view that has names shows names that are markup, or reorder text, literally.
func TestUI_Views_Hostile(t *testing.T) {
	const name, shown = "<img src=x onerror=alert(1)>\u202e\u200b{x}", `<img src=x onerror=alert(1)>\u{202e}\u{200b}{x}`
	anew(t, "/strange", "")
	dir := "/strange/" + name
	must(t, "POST", "/v1/znodes"+escape(dir), "")
	c, err := client.Connect(t.Context(), shared.Addrs()[1], client.WithSessionTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // the result no longer depends on it
	lock := dir + "/_c_<b>-lock-"
	if _, _, err := c.Create(t.Context(), lock, nil, client.EphemeralSequential); err != nil {
		t.Fatal(err)
	}
	p := uiOf(t, "events/strange")
	p.until(`document.querySelector("#stream").textContent === "live"`)
	p.login("super:secret")
	has := func(selector, text string) {
		t.Helper()
		p.until(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))`, quote(selector), quote(text)))
		if eval[bool](p, `Boolean(document.querySelector("main :is(img, b, script)"))`) {
			t.Errorf("a name has become markup: %s", selector)
		}
	}
	p.until(`document.querySelector("#stream").textContent === "live"`)
	must(t, "PUT", "/v1/znodes"+escape(dir), strings.Repeat("<b>", 1<<17)) // slow, and an event
	if err := c.Sync(t.Context(), dir); err != nil {                       // or the watch would report that write
		t.Fatal(err)
	}
	if _, _, _, err := c.GetW(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	has("#events td", shown)
	p.show("search")
	p.heading("Search")
	p.fill("Name or data", "<img")
	p.press("Search")
	has("#found", shown)
	p.show("locks")
	p.fill("Path contains", "/strange") // unfolds what is there
	has("section.queue td", shown)
	p.show("load")
	has("#slow td", shown)
	p.show(fmt.Sprintf("sessions/0x%x", uint64(c.SessionID())))
	has(`[aria-label="Session"] li`, shown+"/_c_<b>-lock-")
	p.fill("Path", dir)
	p.press("Ask all servers")
	p.until(`document.querySelector('[aria-label="Watches"]').textContent.includes("1 session")`)
	p.fill("Path", "no path <b>")
	p.press("Ask all servers")
	has(`[aria-label="Watches"] .error`, "<b>")
}

// TestUI_NoAdministrator: the page tells other users that they are no administrators, and has
// no button for what administrators do.
func TestUI_NoAdministrator(t *testing.T) {
	p := uiOf(t, "ensemble")
	for _, credentials := range []string{"", "mallory:x"} {
		if credentials != "" {
			p.login(credentials)
		}
		for view, note := range map[string]string{
			"ensemble": "Ensemble", "load": "Slow requests", "sessions": "Expired sessions",
		} {
			p.show(view)
			p.until(fmt.Sprintf(`document.querySelector('section[aria-label="%s"] .note')?.textContent.startsWith("Log in as an administrator")`, note))
		}
		p.show("ensemble")
		p.until(`document.querySelector("[role=status]")?.textContent.includes("survive")`)
		if found := eval[string](p, `[...document.querySelectorAll("main button")].map((b) => b.textContent).join()`); found != "" {
			t.Errorf("%q has the buttons %s", credentials, found)
		}
	}
	before := must(t, "GET", "/v1/cluster", "", "super:secret")
	for _, x := range []struct{ method, path string }{
		{"POST", "/v1/cluster/transfer"}, {"POST", "/v1/cluster/drain?server=2"}, {"DELETE", "/v1/cluster/members/3"},
	} {
		status := 0
		p.do(chromedp.Evaluate(fmt.Sprintf(`fetch(%s, {method: %s, headers: {Authorization: "Basic " + btoa("mallory:x")}}).then((r) => r.status)`,
			quote(x.path), quote(x.method)), &status, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
		if status != http.StatusForbidden {
			t.Errorf("%s %s: status %d, want 403", x.method, x.path, status)
		}
	}
	if after := must(t, "GET", "/v1/cluster", "", "super:secret"); strings.Contains(after, `"draining":true`) {
		t.Errorf("a server is draining, want none; before:\n%s\nafter:\n%s", before, after)
	}
}

// TestUI_Login_ByCertificate: servers that speak TLS take the client's certificate for an identity, at the server
// of the page and at the others. The certificate is shown by a proxy on the browser's side, since a browser without
// a window cannot ask which one to show.
func TestUI_Login_ByCertificate(t *testing.T) {
	ca, dir := certs.Authority(t, "ca"), t.TempDir()
	e := zklitetest.Start(t, zklitetest.WithServers(2),
		zklitetest.WithSetting("ssl.keyStore.location", certs.Write(t, filepath.Join(dir, "server.pem"), ca.Issue(t, "server", nil).KeyPEM(t))),
		zklitetest.WithSetting("ssl.trustStore.location", certs.Write(t, filepath.Join(dir, "ca.pem"), ca.CertPEM())),
		zklitetest.WithSetting("admin.forceHttps", "true"),
		zklitetest.WithSetting("X509AuthenticationProvider.superUser", "CN=admin"))
	pair := ca.Issue(t, "admin", nil)
	to := &atomic.Value{}
	to.Store(&url.URL{Scheme: "https", Host: e.HTTPAddrs()[0]})
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, // the server's certificate is not under test
		Certificates: []tls.Certificate{{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}}}
	t.Cleanup(transport.CloseIdleConnections)
	p := ui(t, front(t, to, transport), 1280, "load")
	p.until(`document.querySelector("#identity")?.textContent === "CN=admin, administrator"`)
	p.until(`document.querySelector('[aria-label="Slow requests"] [role=status]')?.textContent.startsWith("0 requests")`)
	if found := p.text(".error"); found != "" {
		t.Errorf("the page shows the error %q, want none", found)
	}
	p.show("ensemble")
	p.pressNamed("Drain server 2")
	p.until(`document.querySelector("dialog .curl pre")?.textContent.includes("--cert client.pem")`)
}
