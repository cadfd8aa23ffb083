package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// downloads has the browser save files, and returns where.
func (p *tab) downloads() string {
	p.t.Helper()
	dir := p.t.TempDir()
	p.do(cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir).
		WithBrowserContextID(chromedp.FromContext(p.ctx).BrowserContextID))
	return dir
}

// TestUI_Sessions shows at server 1 a session whose client is connected to server 3, and ends it.
func TestUI_Sessions(t *testing.T) {
	c, err := client.Connect(t.Context(), shared.Addrs()[2], client.WithSessionTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // its session will have been ended
	if _, _, err := c.Create(t.Context(), "/ui-session", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.GetW(t.Context(), "/ui-session"); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("0x%x", uint64(c.SessionID()))
	p := uiOf(t, "sessions/"+id)
	p.until(`document.querySelector('[aria-label="Session"] dl')?.textContent.includes("127.0.0.1:")`)
	p.until(`document.querySelectorAll('[aria-label="Session"] li').length === 2`)
	p.until(fmt.Sprintf(`document.querySelector('[aria-label="Sessions"] table').textContent.includes(%s)`, quote(id)))
	p.fill("Path", "/ui-session")
	p.press("Ask all servers")
	p.until(fmt.Sprintf(`document.querySelector('[aria-label="Watches"]').textContent.includes(%s)`, quote(id)))

	p.do(chromedp.Evaluate(`document.querySelector('input[placeholder="id, client or server"]').focus()`, nil), chromedp.KeyEvent(id))
	p.until(`document.querySelectorAll('[aria-label="Sessions"] tbody tr').length === 1`)

	p.login("mallory:x")
	p.press("End this session")
	p.press("End it")
	p.until(`document.querySelector("dialog .error")`)
	p.press("Cancel")
	p.press("Log out")
	p.login("super:secret")
	p.until(`/127.0.0.1:\d+.* s ago/.test(document.querySelector('[aria-label="Sessions"] tbody tr').textContent)`) // from server 3
	p.press("End this session")
	p.press("End it")
	p.said("is ended.")
	wantGone(t, "/ui-session")
}

// session opens a session over HTTP and returns its header.
func session(t *testing.T, timeout string) (id, header string) {
	t.Helper()
	var s struct{ ID, Secret string }
	if err := json.Unmarshal([]byte(must(t, "POST", "/v1/sessions", fmt.Sprintf(`{"timeout":%q}`, timeout))), &s); err != nil {
		t.Fatal(err)
	}
	return s.ID, s.ID + "." + s.Secret
}

// as sends a request of a session.
func as(t *testing.T, header, method, target string) {
	t.Helper()
	if status, answer := send(t, method, target, "", func(r *http.Request) { r.Header.Set("Zk-Session", header) }); status >= 300 {
		t.Fatalf("%s %s: status %d, want a success: %s", method, target, status, answer)
	}
}

// TestUI_Locks shows holders and waiters, and a deadlock until it is resolved.
func TestUI_Locks(t *testing.T) {
	a, ofA := session(t, "60s")
	b, ofB := session(t, "60s")
	anew(t, "/locks", "")
	for _, dir := range []string{"locks/one", "locks/two", "locks/rw", "locks/lead", "locks/work", "locks/group"} {
		must(t, "POST", "/v1/znodes/"+dir, "")
	}
	for _, c := range []struct{ header, name string }{
		{ofA, "one/_c_a-lock-"}, {ofB, "one/b__lock__"}, {ofB, "two/_c_b-lock-"}, {ofA, "two/_c_a-lock-"},
		{ofA, "rw/_c_a-__READ__"}, {ofB, "rw/_c_b-__READ__"}, {ofA, "lead/_c_a-latch-"}, {ofB, "lead/_c_b-latch-"},
	} {
		as(t, c.header, "POST", "/v1/znodes/locks/"+c.name+"?mode=ephemeral_sequential")
	}
	as(t, ofB, "POST", "/v1/znodes/locks/group/w1?mode=ephemeral")
	must(t, "POST", "/v1/znodes/locks/work/queue-?mode=persistent_sequential", "")
	must(t, "POST", "/v1/znodes/locks/free", "")
	as(t, ofA, "POST", "/v1/znodes/locks/free/_c_a-lock-?mode=ephemeral_sequential")
	p := uiOf(t, "locks")
	p.until(`document.querySelector("[role=alert]")?.textContent.includes("Deadlock")`)
	said := p.text("[role=alert]")
	for _, want := range []string{a + " waits for " + b + " at /locks/two", b + " waits for " + a + " at /locks/one"} {
		if !strings.Contains(said, want) {
			t.Errorf("the page reports %q, want %q", said, want)
		}
	}
	rows := func(section string) string {
		t.Helper()
		return eval[string](p, fmt.Sprintf(`(() => { const s = document.querySelector('section[aria-label="%s"]');
			return [s.querySelector("h2").parentElement.querySelector("small").textContent, ...[...s.querySelectorAll("tbody tr")].map((r) =>
				(r.className ? r.className + " " : "") + [1, 3, 4, 5].map((i) => r.cells[i].textContent.trim()).filter(Boolean).join(" "))].join("|"); })()`, section))
	}
	for path, want := range map[string]string{
		"/locks/one":  "lock, 2 participants, 1 waits|caught holds " + a + "|caught waits " + b + " " + a,
		"/locks/two":  "lock, 2 participants, 1 waits|caught holds " + b + "|caught waits " + a + " " + b,
		"/locks/lead": "election, 2 participants, 1 waits|leads " + a + "|waits " + b + " " + a,
	} {
		if got := rows(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// What no one waits for is folded by kind, until a filter asks for it.
	if eval[bool](p, `[...document.querySelectorAll("details")].some((d) => d.open)`) {
		t.Error("what no one waits for is unfolded")
	}
	p.fill("Path contains", "/locks/")
	for section, want := range map[string]string{
		"Locks": "1 place, 1 participant|holds " + a, "Read-write locks": "1 place, 2 participants|holds to read " + a + "|holds to read " + b,
		"Queues": "1 place, 1 item|item", "Groups": "1 place, 1 member|member " + b,
	} {
		p.until(fmt.Sprintf(`document.querySelector('section.queue[aria-label="%s"] tbody')`, section))
		if got := strings.Replace(rows(section+`"].queue[aria-label="`+section), "\n", "", 1); got != want {
			t.Errorf("%s: %s, want %s", section, got, want)
		}
	}
	p.choose("Kind", "election")
	p.until(`document.querySelector("[role=status]").textContent.startsWith("1 place;")`)
	p.choose("Kind", "")
	p.fill("Path contains", "nowhere")
	p.until(`document.querySelector("[role=status]").textContent === "0 places; no one waits"`)
	p.fill("Path contains", "")
	p.login("super:secret")
	as(t, ofA, "DELETE", "/v1/sessions/"+a)
	p.until(`!document.querySelector("[role=alert]")`) // by itself
}

// writeEvent creates a znode that the stream reports, no matter which server leads.
func writeEvent(t *testing.T, server string, number int) {
	t.Helper()
	wait.Until(t, "a write", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s/v1/znodes/event-%03d", server, number), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", fmt.Sprint("event ", number))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusCreated
	})
}

// TestUI_Events: a stream loses and repeats nothing when the leader dies, and when the page's own server does.
func TestUI_Events(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	leader := leads(t, e)
	page, writer := (leader+1)%3, (leader+2)%3
	count := 0
	write := func(n int) {
		t.Helper()
		for range n {
			writeEvent(t, e.HTTPAddrs()[writer], count)
			count++
		}
	}
	p := ui(t, e.HTTPAddrs()[page], 1280, "events/")
	p.until(`document.querySelector("#stream").textContent === "live"`)
	seen := func() {
		t.Helper()
		p.wantEvents(0, count)
	}
	write(10)
	seen()
	e.Stop(leader)
	write(10)
	seen()
	e.Restart(leader)
	e.Stop(page)
	p.until(`document.querySelector("#stream").textContent !== "live"`)
	at := count
	write(10)
	// The link to another server: its page continues where this one has stopped.
	p.until(`document.querySelectorAll("#elsewhere a").length === 2`)
	links := eval[[]string](p, `[...document.querySelectorAll("#elsewhere a")].map((a) => a.href)`)
	for _, link := range links {
		address, view, _ := strings.Cut(strings.TrimPrefix(link, "http://"), "/ui/#/")
		if !slices.Contains(e.HTTPAddrs(), address) || address == e.HTTPAddrs()[page] {
			t.Fatalf("%s is no other server of %q", link, e.HTTPAddrs())
		}
		other := ui(t, address, 1280, view)
		other.wantEvents(at, count)
	}
	e.Restart(page)
	p.until(`document.querySelector("#stream").textContent === "live"`)
	p.until(`!document.querySelector("#elsewhere")`)
	seen()
}

// wantEvents waits for the creations of these znodes, once each.
func (p *tab) wantEvents(from, to int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelectorAll("#events tbody tr").length >= %d`, to-from))
	got := eval[[]string](p, `[...document.querySelectorAll("#events tbody tr")].map((r) => r.cells[1].textContent + " " + r.cells[2].textContent)`)
	slices.Reverse(got)
	for i, g := range got {
		if want := fmt.Sprintf("created /event-%03d", from+i); g != want {
			p.t.Fatalf("event %d of %d is %q, want %q", i, len(got), g, want)
		}
	}
}

// TestUI_Events_BehindOneName: where one name leads to several servers, the page continues at once at another of them,
// and loses and repeats nothing.
func TestUI_Events_BehindOneName(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	const at, next = 1, 2
	urls := make([]*url.URL, 3)
	for i, address := range e.HTTPAddrs() {
		urls[i] = &url.URL{Scheme: "http", Host: address}
	}
	to := &atomic.Value{}
	to.Store(urls[at])
	p := ui(t, front(t, to, nil), 1280, "events/")
	p.until(`document.querySelector("#stream").textContent === "live"`)
	count := 0
	write := func(at int) {
		t.Helper()
		for range 10 {
			writeEvent(t, urls[at].Host, count)
			count++
		}
	}
	write(at)
	p.wantEvents(0, count)
	e.Stop(at)
	write(next) // while the page has no identity
	to.Store(urls[next])
	p.wantEvents(0, count)
	write(next)
	p.wantEvents(0, count)
}

// TestUI_Ensemble does what an administrator does.
func TestUI_Ensemble(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3), zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest))
	p := ui(t, e.HTTPAddrs()[0], 1280, "ensemble")
	p.until(`document.querySelectorAll("#members tbody tr").length === 3`)
	p.until(`document.querySelector(".note")?.textContent.includes("administrator")`)
	dir := p.downloads()
	p.login("super:secret")
	p.until(`document.querySelector("[role=status]")?.textContent.includes("and 1 failure now")`)
	to := (leads(t, e) + 1) % 3
	p.pressNamed(fmt.Sprintf("Make server %d lead", to+1))
	p.press("Hand over")
	p.said(fmt.Sprintf("Server %d leads", to+1))
	wait.Succeeds(t, fmt.Sprintf("server %d leads", to+1), func() error {
		if now := e.Leader(); now != to {
			return fmt.Errorf("server %d leads", now+1)
		}
		return nil
	})
	p.until(`/The last election ended at 2.* for at most [\d.]+ m?s nobody was served/.test(document.querySelector("[role=status]").textContent)`)

	for server := 1; server <= 3; server += 2 { // the page's own, and another
		p.pressNamed(fmt.Sprintf("Drain server %d", server))
		p.press("Drain")
		p.said(fmt.Sprintf("Server %d is drained", server))
		p.until(fmt.Sprintf(`document.querySelectorAll("#members tbody tr")[%d].cells[2].textContent.trim() === "drained"`, server-1))
		resp, err := http.Get("http://" + e.HTTPAddrs()[server-1] + "/readyz")
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("server %d: %v %v", server, resp, err)
		}
		p.pressNamed(fmt.Sprintf("Undrain server %d", server))
		p.press("Undrain")
		p.said(fmt.Sprintf("Server %d takes clients again.", server))
	}

	p.press("Add a server")
	p.fill("Number", "4")
	p.fill("Address", "127.0.0.1:1:2")
	p.choose("Role", "observer")
	p.press("Add")
	p.said("Server 4 is a member.")
	p.until(`document.querySelectorAll("#members tbody tr").length === 4`)
	p.pressNamed("Remove server 4")
	p.fill("Type 4 to confirm", "4")
	p.press("Remove")
	p.said("Server 4 is removed.")
	p.until(`document.querySelectorAll("#members tbody tr").length === 3`)

	p.press("Take a backup")
	p.said("The backup is in your downloads.")
	file := filepath.Join(dir, "backup.zks")
	wait.Until(t, "the backup is there", func() bool { i, err := os.Stat(file); return err == nil && i.Size() > 0 })
	resp, err := http.Post("http://"+e.HTTPAddrs()[0]+"/v1/znodes/late", "", http.NoBody)
	if err != nil || resp.StatusCode != http.StatusCreated || resp.Body.Close() != nil {
		t.Fatalf("%v, %v, want 201 Created", resp, err)
	}
	p.press("Restore a backup")
	p.until(`document.querySelector('dialog input[type="file"]')`)
	p.do(chromedp.SetUploadFiles(`dialog input[type="file"]`, []string{file}))
	p.press("Try it without changing anything")
	p.until(`document.querySelector("dialog .what").textContent.includes("1 deleted")`)
	p.press("Restore")
	p.said("Restored: 0 created, 0 changed, 1 deleted.")
}

// module evaluates an expression of what a module of the page exports, as m.
func (p *tab) module(name, expression string) (text string) {
	p.t.Helper()
	await := func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }
	p.do(chromedp.Evaluate(`import("./`+name+`").then((m) => `+expression+`)`, &text, await))
	return text
}

// TestUI_Merge: what several servers know of one session, or of one request, is one row.
func TestUI_Merge(t *testing.T) {
	p := uiOf(t, "tree")
	const at = `at: "2026-11-24T12:00:00Z", session: "0x1", server: 2`
	for _, lists := range []string{
		`[{` + at + `, cause: "elsewhere", heard: "h", heard_by: 2}], [{` + at + `, cause: "disconnected", watches: 3, address: "here"}]`,
		`[{` + at + `, cause: "disconnected", watches: 3, address: "here"}], [{` + at + `, cause: "elsewhere", heard: "h", heard_by: 2}], []`,
	} {
		got := p.module("expired.js", `m.merge([`+lists+`]).map((x) => [x.cause, x.watches, x.heard, x.heard_by, x.address].join()).join(";")`)
		if got != "disconnected,3,h,2,here" {
			t.Errorf("%s: merged to %s, want disconnected,3,h,2,here", lists, got)
		}
	}
	got := p.module("expired.js", `m.merge([[{`+at+`, cause: "server", heard: "h"}, {at: "2026-11-24T12:00:01Z", session: "0x2", cause: "silent"}],
		[{`+at+`, cause: "silent", watches: 1}]]).map((x) => [x.session, x.cause, x.watches].join()).join(";")`)
	if got != "0x2,silent,;0x1,server,1" {
		t.Errorf("merged: %s, want 0x2 before 0x1, which the server ended", got)
	}
	got = p.module("sessions.js", `m.merge([[{id: "0x1001", server: 2}, {id: "0xff", server: 1, last_heard: "h"}],
		[{id: "0x1001", server: 2, last_heard: "h"}, {id: "0xff", server: 1}], []]).map((x) => [x.id, x.last_heard].join()).join(";")`)
	if got != "0xff,h;0x1001,h" {
		t.Errorf("merged: %s, want each as its own server knows it", got)
	}
	got = p.module("locks.js", `JSON.stringify(m.edges([
		{path: "/one", first: [{path: "/one/a", session: "a", state: "holds"}, {path: "/one/b", session: "b", state: "waits", waits_for: ["a"]}]},
		{path: "/two", first: [{path: "/two/b", session: "b", state: "holds"}, {path: "/two/a", session: "a", state: "waits", waits_for: ["b"]}]},
		{path: "/other", first: [{path: "/other/c", session: "c", state: "holds"}, {path: "/other/a", session: "a", state: "waits", waits_for: ["c"]},
			{path: "/other/b", session: "b", state: "waits", waits_for: ["c", "a"]}]},
	], ["a", "b"]).map((e) => [e.at, e.ends]))`)
	if want := `[[["/two"],["/two/a","/two/b"]],[["/one"],["/one/b","/one/a"]]]`; got != want {
		t.Errorf("the edges of the circle are %s, want %s: not where both wait for another", got, want)
	}
	const request = `{index: 7, term: 2, cause: "leader", stages_ms: {queue: 1, leader: 10}}`
	for pages, want := range map[string]string{
		`[]`:                           `leader {"queue":1,"leader":10}`,
		`[{items: [], leads_term: 2}]`: `network {"queue":1,"network":10}`,
		`[{error: {}}, {items: [{index: 7, term: 2, stages_ms: {propose: 1, disk: 6, majority: 1}}]}]`: `disk {"queue":1,"propose":1,"disk":6,"majority":1,"network":2}`,
		`[{items: [{index: 7, term: 1, stages_ms: {propose: 1, disk: 6, majority: 1}}]}]`:              `leader {"queue":1,"leader":10}`,
	} {
		if got := p.module("slow.js", `((r) => r.cause + " " + JSON.stringify(r.stages_ms))(m.divide(`+request+`, `+pages+`))`); got != want {
			t.Errorf("%s: %s, want %s", pages, got, want)
		}
	}
}
