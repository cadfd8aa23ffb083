package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/server/auth"
)

// wrong is a request with several faults at once. Each fault names the problem that reports it, and how to repair it.
type wrong struct {
	method, target string
	host           string
	headers        []string
	faults         []fault
}

// fault is a fault of a request; a problem has the status, and the parameter or else the title.
type fault struct {
	status           int
	parameter, title string
	repair           func(w *wrong)
}

// without returns a repair that leaves a header out; set, one that changes the target.
func without(header string) func(*wrong) {
	return func(w *wrong) {
		var kept []string
		for _, h := range w.headers {
			if !strings.HasPrefix(h, header) {
				kept = append(kept, h)
			}
		}
		w.headers = kept
	}
}

func set(target string) func(*wrong) { return func(w *wrong) { w.target = target } }

var (
	foreignHost   = fault{403, "Host", "", func(w *wrong) { w.host = "" }}
	foreignOrigin = fault{403, "Origin", "", without("Origin")}
	foreignSite   = fault{403, "Sec-Fetch-Site", "", without("Sec-Fetch-Site")}
	noCredentials = fault{401, "Authorization", "", without("Authorization")}
	keyTwice      = fault{400, "Idempotency-Key", "", without("Idempotency-Key")}
	notASession   = fault{400, "Zk-Session", "", without("Zk-Session")}
)

// Checks happen in one order, on which security depends: of several faults the first one in this order is reported, and
// nothing that comes after it is looked at.
func TestOrder_OfSeveralFaultsTheFirstIsReported(t *testing.T) {
	everything := []string{
		"Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Authorization: Bearer unknown",
		"Idempotency-Key: a", "Idempotency-Key: b", "Zk-Session: x",
	}
	local, err := auth.NewLocal(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		auth auth.Config
		wrong
		last int // the status of a request without a fault
	}{
		"an operation for administrators": {auth.Config{SuperDigest: superDigest}, wrong{
			"PATCH", "/v1/snapshot?misspelt=1&consistency=none", "evil.example", everything, []fault{
				foreignHost, foreignOrigin, foreignSite,
				{405, "", "method not allowed", func(w *wrong) { w.method = "POST" }},
				{400, "misspelt", "", set("/v1/snapshot?consistency=none&replace=perhaps")},
				noCredentials, keyTwice,
				{400, "consistency", "", set("/v1/snapshot?replace=perhaps")},
				notASession,
				{401, "", "for administrators only", func(w *wrong) { w.headers = []string{basic("super:secret")} }},
			},
		}, 400},
		"another server's": {auth.Config{SuperDigest: superDigest}, wrong{
			"GET", "/v1/slow/requests?server=none&before=x&y", "evil.example", everything, []fault{
				foreignHost, foreignOrigin, foreignSite,
				{400, "y", "", set("/v1/slow/requests?server=none&before=x")},
				noCredentials,
				{400, "server", "", set("/v1/slow/requests?server=200&before=x")},
				{404, "server", "", set("/v1/slow/requests?server=1&before=x")},
				keyTwice,
				{401, "", "for administrators only", func(w *wrong) { w.headers = []string{basic("super:secret")} }},
			},
		}, 400},
		"a znode": {auth.Config{Schemes: []string{"digest"}}, wrong{
			"PUT", "/v1/znodes/a/?version=x&consistency=none&y", "evil.example", everything, []fault{
				foreignHost, foreignOrigin, foreignSite,
				{400, "y", "", set("/v1/znodes/a/?version=x&consistency=none")},
				noCredentials,
				{401, "", "an identity is needed", func(w *wrong) { w.headers = append(w.headers, basic("u:p")) }},
				keyTwice,
				{400, "consistency", "", set("/v1/znodes/a/?version=x")},
				notASession,
				{400, "path", "", set("/v1/znodes/a?version=x")},
			},
		}, 400},
		"a path that is too short": {auth.Config{}, wrong{
			"DELETE", "/v1/locks?y", "evil.example", everything, []fault{
				foreignHost, foreignOrigin, foreignSite,
				{400, "y", "", set("/v1/locks")},
			},
		}, 404},
		"no resource": {auth.Config{}, wrong{
			"PATCH", "/v1/nothing?y", "evil.example", everything, []fault{foreignHost, foreignOrigin, foreignSite},
		}, 404},
		"open to all": {auth.Config{Schemes: []string{"digest"}}, wrong{
			"GET", "/livez?y", "evil.example", everything, []fault{
				foreignHost, foreignOrigin, foreignSite,
				{400, "y", "", set("/livez")},
				keyTwice, // Authorization may be meant for another server, and sessions are not asked for
			},
		}, 200},
		"a preflight question": {auth.Config{Local: local}, wrong{
			"OPTIONS", "/v1/cluster?y", "evil.example", everything, []fault{foreignHost, foreignOrigin, foreignSite},
		}, 204},
		"for who can read the server's files": {auth.Config{Local: local}, wrong{
			"GET", "/v1/cluster", "", []string{"X-Forwarded-For: 127.0.0.1", "Idempotency-Key: a", "Idempotency-Key: b"},
			[]fault{
				keyTwice,
				{403, "", "for administrators only", without("X-Forwarded-For")},
				{401, "", "for administrators only", func(w *wrong) { w.headers = []string{bearer(t, local)} }},
			},
		}, 200},
	} {
		t.Run(name, func(t *testing.T) { testOrder(t, serveAs(t, test.auth), test.wrong, test.last) })
	}
}

func testOrder(t *testing.T, c *client, w wrong, last int) {
	for _, f := range w.faults {
		a := send(c, &w)
		parameter, _ := a.json["parameter"].(string)
		if title, _ := a.json["title"].(string); a.status != f.status || parameter != f.parameter ||
			f.title != "" && title != f.title {
			t.Fatalf("%s with %q: %d %q %q, want %d %q %q", a.what, w.headers, a.status, parameter, title,
				f.status, f.parameter, f.title)
		}
		f.repair(&w)
	}
	if a := send(c, &w); a.status != last {
		t.Errorf("%s with %q: %d %s, want %d", a.what, w.headers, a.status, a.body, last)
	}
}

// A server without a majority reports faults of credentials and keys first, then that it does not serve, and then
// faults that need a look-up.
func TestOrder_WithoutMajority(t *testing.T) {
	_, url := serveReplaced(t, shared().nodes[0],
		faulty{Server: shared().nodes[0].Server(), serving: func() bool { return false }})
	c := newClient(t, url)
	w := wrong{"GET", "/v1/znodes/?min_zxid=x&raw=perhaps", "", []string{
		"Authorization: Bearer unknown", "Idempotency-Key: a", "Idempotency-Key: b", "Zk-Session: x",
	}, []fault{
		noCredentials, keyTwice,
		{400, "min_zxid", "", set("/v1/znodes/?raw=perhaps")},
		{503, "", "no quorum", set("/v1/znodes/?raw=perhaps&consistency=local")},
		notASession,
	}}
	testOrder(t, c, w, http.StatusBadRequest)
}

// send sends a request as it is.
func send(c *client, w *wrong) *answer {
	c.Helper()
	req := c.with(w.headers...).request(w.method, w.target, "")
	req.Host = w.host
	resp, err := direct.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answer{TB: c.TB, what: w.method + " " + w.target, status: resp.StatusCode}
	for _, name := range []string{"Zk-Zxid", "Zk-Consistency", "Zk-Server", "Zk-Leader"} {
		if resp.Header.Get(name) == "" {
			c.Errorf("%s: %d without the header %s", a.what, a.status, name)
		}
	}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		c.Fatal(err)
	}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(a.body, &a.json); err != nil {
			c.Fatalf("%s: %v in %q", a.what, err, a.body)
		}
	}
	return a
}

// bearer returns the header of a client that has read the file with the token.
func bearer(t *testing.T, local *auth.Local) string {
	t.Helper()
	text, err := os.ReadFile(local.Path())
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(text), "\n")
	return "Authorization: Bearer " + token
}
