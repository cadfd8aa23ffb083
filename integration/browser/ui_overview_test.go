package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zk-lite/zk-lite/zklitetest"
)

// stands waits until the page says in the header, in colour and word, how the ensemble stands, and in the title why.
func (p *tab) stands(level, word, why string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => { const s = document.querySelector("#state");
		return s.className === %s && s.textContent.trim() === %s && s.title.includes(%s); })()`, quote(level), quote(word), quote(why)))
}

// TestUI_Overview: the first view says to a stranger in one sentence and one colour how the ensemble stands, what to do,
// and by which command; the header of all views says so, too. Nothing else is asked for that than what all may ask.
func TestUI_Overview(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3), zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest))
	p := ui(t, e.HTTPAddrs()[0], 1280, "")
	p.heading("Overview")
	p.says("#health.good", "Serving: all 3 servers are up, and 1 may fail.")
	p.stands("good", "Healthy", "all 3 servers are up")
	p.says(".facts", fmt.Sprintf("Leaderserver %d", leads(t, e)+1))
	p.says(".note", "Log in as an administrator to see")
	p.until(`document.querySelectorAll(".card .good").length === 3`)
	p.wantGood("overview")

	e.Stop(1)
	p.says("#health.warn", "Serving, but server 2 does not answer. Now no other server may fail.")
	p.says("#needs li", "Server 2 does not answer. Start it. If it is lost for good: zk-lite member remove 2.")
	p.says(".card .error", "down: connection refused")
	p.wantGood("overview of a dead server")
	p.show("events/")
	p.stands("warn", "Degraded", "server 2 does not answer")

	e.Stop(2)
	p.stands("bad", "Not serving", "No majority: servers 2 and 3 do not answer. Start them; if they are lost for good: zk-lite recover.")
	p.show("overview")
	p.says(`#majority [role="alert"]`, "No majority: servers 2 and 3 do not answer.")
	if p.text("#health") != "" {
		t.Error("what the banner says is said twice")
	}
	if needs := p.text("#needs"); strings.Contains(needs, "member remove") || strings.Contains(needs, "knows no leader") {
		t.Errorf("without a majority the page advises %s", needs)
	}
	p.says(".card h2", "not serving")
	p.wantGood("overview without a majority")

	e.Restart(1)
	e.Restart(2)
	p.says("#health.good", "Serving: all 3 servers are up, and 1 may fail.")
	p.login("super:secret")
	p.says(".card code", "127.0.0.1:")
}

// TestUI_Overview_Drained: what a server says of itself is shown with what to do about it.
func TestUI_Overview_Drained(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3), zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest))
	p := ui(t, e.HTTPAddrs()[0], 1280, "ensemble")
	p.login("super:secret")
	p.pressNamed("Drain server 3")
	p.press("Drain")
	p.said("Server 3 is drained")
	p.show("overview")
	p.says("#health.warn", "Serving, but server 3 is drained: it takes no clients.")
	p.says("#needs li", "Stop it, or let it serve again: zk-lite drain 3 --undo.")
	p.says(".card h2", "drained")
	e.Stop(0)
	p.says("#health.bad, #state.bad", "No answer")
}

// TestUI_Header: in a narrow window the views are in a menu, and the header takes two lines at most.
func TestUI_Header(t *testing.T) {
	p := uiOf(t, "tree")
	p.login("super:secret")
	p.width(widths[1])
	p.until(`document.querySelector("header").getBoundingClientRect().height < 100`)
	if eval[bool](p, `document.querySelector("nav").checkVisibility()`) {
		t.Error("the views are shown before the menu is opened")
	}
	p.do(chromedp.Click("#menu"))
	p.until(`document.querySelector("#menu").ariaExpanded === "true"`)
	p.wantNoViolation("menu")
	p.do(chromedp.Click(`nav a[href="#/load"]`))
	p.heading("Load")
	p.until(`!document.querySelector("nav").checkVisibility()`)
}

// TestUI_Load: a chart is read by keyboard and by pointer; one row is a point; elections and starts are marked.
func TestUI_Load(t *testing.T) {
	awaitHistory(t)
	p := uiOf(t, "load")
	p.until(`document.querySelectorAll("polyline[data-server]").length >= 36`)
	p.says("figure", "min ago")
	p.says("#marks", "server 1 started")
	chart := `document.querySelector("figure [role=slider]")`
	p.do(chromedp.Evaluate(chart+".focus()", nil), chromedp.KeyEvent(kb.ArrowLeft))
	p.until(`[...document.querySelectorAll("figcaption")].every((c) => /\d\d:\d\d:\d\d: server 1/.test(c.textContent))`)
	p.until(`/^\d\d:\d\d:\d\d: server 1 [\d–]/.test(` + chart + `.getAttribute("aria-valuetext"))`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.querySelector("svg .at")`)
	at := eval[[2]float64](p, `(() => { const b = `+chart+`.getBoundingClientRect(); return [b.right - 5, b.top + 40]; })()`)
	p.do(chromedp.MouseEvent("mouseMoved", at[0], at[1]))
	p.until(`document.querySelectorAll("svg .at").length === document.querySelectorAll("figure").length`)

	const rows = `[{time: 1000, raft_term: 1, raft_leader: 1, n: 5, process_cpu_seconds_total: 9},
		{time: 11000, raft_term: 2, raft_leader: -1, n: 15, process_cpu_seconds_total: 10},
		{time: 21000, raft_term: 2, raft_leader: 2, n: 35, process_cpu_seconds_total: 11},
		{time: 99000, raft_term: 2, raft_leader: 2, n: 1, process_cpu_seconds_total: 1}]`
	for expression, want := range map[string]string{
		`m.points(` + rows + `, m.rate("n"))`:              `[[[11000,1],[21000,2]]]`, // not over a gap
		`m.points(` + rows + `, m.gauge("n"))`:             `[[[1000,5],[11000,15],[21000,35]],[[99000,1]]]`,
		`m.points(` + rows + `.slice(0, 1), m.gauge("n"))`: `[[[1000,5]]]`,
		`m.marks([[7, {rows: ` + rows + `}]])`:             `[{"time":1000,"text":"server 7 started"},{"time":21000,"text":"server 2 was elected"},{"time":99000,"text":"server 7 started"}]`,
	} {
		if got := p.module("history.js", `JSON.stringify(`+expression+`)`); got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}

// TestUI_Search_Fields: hits are in order, a path may lack its slash, and errors are sentences about fields.
func TestUI_Search_Fields(t *testing.T) {
	anew(t, "/find", "")
	for _, z := range [][2]string{{"b-needle", ""}, {"a", "a needle"}, {"c", ""}} {
		must(t, "POST", "/v1/znodes/find/"+z[0], z[1])
	}
	p := uiOf(t, "search")
	p.heading("Search")
	p.fill("Name or data", "needle")
	p.fill("Below", "find/")
	p.press("Search")
	p.until(`[...document.querySelectorAll("#found a")].map((a) => a.textContent).join() === "/find/a,/find/b-needle"`)
	p.fill("Session", "me")
	p.press("Search")
	p.says(".error", `Session: "me" is neither the id of a session, such as 0x1001, nor any`)
	p.fill("Session", "")
	p.fill("Below", "nowhere")
	p.press("Search")
	p.says("[role=status]", "0 znodes found")
}

// TestUI_Errors: problems are in words for people: none of the server's, for clients of HTTP, about methods,
// parameters and resources.
func TestUI_Errors(t *testing.T) {
	p := uiOf(t, "tree/none")
	p.says(".error", "There is no znode: /none It was never created, or it has been deleted.")
	for document, want := range map[string]string{
		`{error: "NOAUTH", path: "/x", detail: "/x: d", hint: "curl -u"}`:    "You are not permitted to do this: /x|Its permissions say who has. Log in as one of them.",
		`{error: "NOAUTH", detail: "administrators only", hint: "curl -u"}`:  "Administrators only|Log in as an administrator.",
		`{parameter: "id", detail: "id: 300 is none", hint: "GET /v1"}`:      "Number: 300 is none|undefined",
		`{title: "no quorum", error: "CONNECTIONLOSS", detail: "no leader"}`: "No leader|The page goes on by itself when there is a majority.",
		`{title: "new", detail: "something", hint: "POST it"}`:               "Something|undefined",
	} {
		if got := p.module("errors.js", `m.sentence(`+document+`) + "|" + m.advice(`+document+`)`); got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
}

// TestUI_Messages: a message goes by itself; one of what can be undone stays until the next view.
func TestUI_Messages(t *testing.T) {
	anew(t, "/message", "")
	p := uiOf(t, "tree/message")
	p.login("alice:x")
	p.said("Logged in as alice")
	p.silent()
	p.press("Edit")
	p.fill("Data", "new")
	p.press("Review")
	p.press("Write")
	p.said("/message is at version 1 now.")
	p.until(`document.querySelector("#said button").textContent === "Undo"`)
	p.show("locks")
	p.silent()
}
