package browser

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// widths are those of a desktop and of a telephone.
var widths = []int{1280, 400}

// outage opens the Ensemble view of server 1 of three as the administrator, while all are well.
func outage(t *testing.T) (*zklitetest.Ensemble, *tab) {
	t.Helper()
	e := zklitetest.Start(t, zklitetest.WithServers(3), zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest))
	p := ui(t, e.HTTPAddrs()[0], 1280, "ensemble")
	p.login("super:secret")
	p.silent()
	p.answering(3)
	p.until(`document.querySelector("#members button:enabled[aria-label$=lead]")`)
	return e, p
}

func (p *tab) width(width int) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(int64(width), 900))
	p.until(fmt.Sprintf("innerWidth === %d", width))
}

// answering waits until the view shows the state of that many servers.
func (p *tab) answering(n int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll("#members tbody tr")].filter((r) => r.cells.length === 9).length === %d`, n))
}

// says waits for an element with this text, wherever its lines break.
func (p *tab) says(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.textContent.trim().replace(/\s+/g, " ").includes(%s))`,
		quote(selector), quote(text)))
}

// members are the boxes of the table's rows.
func (p *tab) members() (heights, widths []float64) {
	p.t.Helper()
	boxes := eval[[][2]float64](p, `[...document.querySelectorAll("#members tbody tr")].map((r) => r.getBoundingClientRect()).map((b) => [b.height, b.width])`)
	for _, b := range boxes {
		heights, widths = append(heights, b[0]), append(widths, b[1])
	}
	return heights, widths
}

// wantFits: no button of the view is beside the window, or covered there, and nothing makes the page wider than it.
func (p *tab) wantFits(what string) {
	p.t.Helper()
	lost := eval[[]string](p, `[...document.querySelectorAll("main button")].filter((b) => {
		b.scrollIntoView({block: "center", inline: "nearest"});
		const r = b.getBoundingClientRect(), at = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
		return r.left < 0 || r.right > innerWidth || !b.contains(at); }).map((b) => b.ariaLabel ?? b.textContent)`)
	if len(lost) > 0 {
		p.t.Errorf("%s: out of reach: %q", what, lost)
	}
	if inner, outer := eval[int](p, "document.documentElement.scrollWidth"), eval[int](p, "innerWidth"); inner > outer {
		p.t.Errorf("%s is %d wide in a window of %d", what, inner, outer)
	}
}

// wantGood: the view is within reach and accessible, in light and dark.
func (p *tab) wantGood(what string) {
	p.t.Helper()
	for _, width := range widths {
		p.width(width)
		p.wantFits(fmt.Sprint(what, " at ", width))
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			p.wantNoViolation(fmt.Sprint(what, ", ", theme, " at ", width))
		}
	}
	p.theme("light")
	p.width(widths[0])
}

// TestRegression_UI_DeadServer: the text about it pushed the buttons out of sight and the rows apart; now it is one line,
// the whole error is there on request, and the server can be removed.
func TestRegression_UI_DeadServer(t *testing.T) {
	e, p := outage(t)
	before := map[int][]float64{}
	wide := map[int][]float64{}
	for _, width := range widths {
		p.width(width)
		before[width], wide[width] = p.members()
	}
	p.width(widths[0])
	dead := 1
	if leads(t, e) == dead {
		dead = 2
	}
	e.Stop(dead)
	p.says("#members .silent summary", "down: connection refused (127.0.0.1:")
	if got := p.text("#members .silent summary"); len(got) > 60 {
		t.Errorf("the row says %q", got)
	}
	for _, width := range widths {
		p.width(width)
		heights, now := p.members()
		for i := range heights {
			if heights[i] > before[width][i]+1 || width > 900 && heights[i] < before[width][i]-1 || now[i] != wide[width][i] {
				t.Errorf("at %d the rows are %v × %v, and were %v × %v", width, heights, now, before[width], wide[width])
				break
			}
		}
	}
	p.wantGood("ensemble")
	heights, _ := p.members()
	p.do(chromedp.Evaluate(`document.querySelector("#members .silent bdi").textContent = "a long reason, ".repeat(100)`, nil))
	p.wantFits("a long reason")
	if long, _ := p.members(); !slices.Equal(long, heights) {
		t.Errorf("with a long reason the rows are %v high, and were %v", long, heights)
	}
	if whole := p.text("#members .silent code"); !strings.Contains(whole, "dial tcp") {
		t.Errorf("the whole error is %q", whole)
	}
	if eval[bool](p, `document.querySelector("#members .silent").open`) {
		t.Error("the whole error is shown at once")
	}
	p.do(chromedp.Evaluate(`document.querySelector("#members .silent summary").click()`, nil))
	p.wantGood("ensemble with the whole error")
	for _, view := range []struct{ name, section string }{
		{"load", "Load"}, {"load", "Slow requests"}, {"sessions", "Expired sessions"},
	} {
		p.show(view.name)
		p.says(fmt.Sprintf(`section[aria-label="%s"] .silent summary`, view.section),
			fmt.Sprintf("Server %d down: connection refused (127.0.0.1:", dead+1))
		p.wantGood(view.name)
	}
	p.press("Ask all servers")
	p.says(`section[aria-label="Watches"] .silent summary`, fmt.Sprintf("Server %d down: connection refused", dead+1))
	p.show("ensemble")
	p.pressNamed(fmt.Sprintf("Remove server %d", dead+1))
	p.fill(fmt.Sprintf("Type %d to confirm", dead+1), strconv.Itoa(dead+1))
	p.press("Remove")
	p.said(fmt.Sprintf("Server %d is removed.", dead+1))
}

// TestRegression_UI_SilentServer: the view repeated all its requests before the answer about a server that accepts
// connections and stays silent could arrive, and so showed nothing of any.
func TestRegression_UI_SilentServer(t *testing.T) {
	e, p := outage(t)
	dead := 1
	if leads(t, e) == dead {
		dead = 2
	}
	e.Stop(dead)
	p.says("#members .silent summary", "down: connection refused (127.0.0.1:")
	_, address, _ := strings.Cut(p.text("#members .silent summary"), "(")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", strings.TrimSuffix(address, ")"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.says("#members .silent summary", "no answer in time (127.0.0.1:")
	p.show("load")
	p.show("ensemble") // from nothing
	p.answering(2)
	p.says("#members .silent summary", "no answer in time (127.0.0.1:")
	p.wantGood("ensemble")
}

// TestRegression_UI_NoMajority: the page told the administrator to log in, and showed an empty tree. It shows which
// servers do not answer and what to do, shows the state of its server on request, and continues by itself.
func TestRegression_UI_NoMajority(t *testing.T) {
	e, p := outage(t)
	p.show("tree/")
	p.heading("/")
	p.press("Create below")
	p.fill("Name", "kept")
	p.fill("Data", "what was written")
	p.press("Create")
	p.said("/kept")
	e.Stop(1)
	e.Stop(2)
	const alert = "No majority: servers 2 and 3 do not answer. Start them; if they are lost for good: zk-lite recover."

	p.show("ensemble")
	p.says(`#majority [role="alert"]`, alert)
	p.says(".note", "The leader cannot be asked")
	if text := p.text("main"); strings.Contains(text, "Log in") {
		t.Errorf("who is logged in reads %q", text)
	}
	if link := eval[string](p, `document.querySelector("#majority a").href`); !strings.HasSuffix(link, "/docs#no-majority") {
		t.Errorf("the link is %s, want one to /docs#no-majority", link)
	}
	for _, text := range []string{"Drain", "Remove", "Add a server", "Restore a backup"} {
		if !p.disabled(text) {
			t.Errorf("%s can be pressed", text)
		}
	}
	p.wantGood("ensemble")
	if *update {
		p.picture("dashboard-no-majority-light-1280.png")
	}
	p.press("Log out")
	p.says(".note", "Log in as an administrator")
	p.login("super:secret")
	p.silent()
	p.says(".note", "The leader cannot be asked")

	p.show("tree/kept")
	p.says(`section[aria-label="No majority"]`, "so nothing is shown")
	p.wantGood("unread tree")
	p.press("Show what this server has")
	p.heading("kept")
	p.says(".data pre", "what was written")
	p.says("#stale", "What you see may be stale")
	p.says(`#majority [role="alert"]`, alert)
	for _, text := range []string{"Edit", "Create below", "Permissions", "Delete", "Import"} {
		if !p.disabled(text) {
			t.Errorf("%s can be pressed", text)
		}
	}
	p.wantGood("local tree")
	p.show("search")
	p.fill("Name or data", "kept")
	p.press("Search")
	p.says("#found", "/kept")
	p.show("locks")
	p.says("h1 ~ p[role=status]", "0 places")

	p.show("tree/kept")
	p.heading("kept")
	e.Restart(1)
	p.until(`!document.querySelector("#majority")`)
	p.until(`[...document.querySelectorAll("button")].some((b) => b.textContent === "Edit" && !b.disabled)`)
	p.says(".data pre", "what was written")
}

// TestRegression_UI_Removed: the page of a server that was removed while it runs does not ask to start other servers.
func TestRegression_UI_Removed(t *testing.T) {
	e, p := outage(t)
	wait.Until(t, "a leader", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete,
			"http://"+e.HTTPAddrs()[1]+"/v1/cluster/members/1", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("super", "secret")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.Body.Close() != nil {
			t.Fatalf("%v, %v, want an answer", resp, err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			return false
		}
		if resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%v, want 204 No Content", resp)
		}
		return true
	})
	p.says(`#majority [role="alert"]`, "No majority: server 1 has halted (removed), servers 2 and 3 do not answer. zk-lite doctor says what to do.")
	p.says("#members td", "halted: removed")
	p.wantGood("ensemble of a removed server")
}
