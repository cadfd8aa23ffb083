package browser

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// uiViews are the views of the dashboard, how it is seen that one is there, and the section that a picture shows, if that
// is not the first.
var uiViews = []struct{ name, view, there, top string }{
	{"overview", "overview", `document.querySelectorAll(".card dl").length === 3 && document.querySelectorAll("polyline[data-server]").length >= 6`, ""},
	{"tree", "tree/shop/orders", `document.querySelector(".znode h1")?.textContent === "orders" && document.querySelectorAll(".row").length > 5`, ""},
	{"search", "search", `document.querySelector("h1")?.textContent === "Search"`, ""},
	{"sessions", "sessions", `document.querySelector('[aria-label="Sessions"] tbody tr') && document.querySelector("#expired")?.textContent.includes("/shop/worker")`, ""},
	{"load", "load", `document.querySelectorAll("polyline[data-server]").length >= 36`, ""},
	{"slow", "load", `document.querySelector("#slow tbody tr")`, "Slow requests"},
	{"locks", "locks", `document.querySelector("section.queue tbody tr")`, ""},
	{"events", "events/shop", `document.querySelector("#stream")?.textContent === "live"`, ""},
	{"ensemble", "ensemble", `document.querySelectorAll("#members tbody tr").length === 3 && document.querySelector('[aria-label="Ensemble"]').textContent.includes("survive")`, ""},
}

var holder string // a session of shop

// shop makes something to look at.
func shop(t *testing.T) {
	t.Helper()
	if status, _ := ask(t, "GET", "/v1/znodes/shop", ""); status == 200 {
		return
	}
	must(t, "POST", "/v1/znodes/shop", "")
	must(t, "POST", "/v1/znodes/shop/orders", `{"total": 9007199254740993, "currency": "EUR", "open": ["17", "18"]}`)
	for i := range 12 {
		must(t, "POST", "/v1/znodes/shop/orders/order-?mode=persistent_sequential", fmt.Sprint("order ", i))
	}
	for range 2 {
		// They hold as long as the process lives, whichever tests look at them.
		c, err := client.Connect(context.Background(), shared.ConnectString(), client.WithSessionTimeout(30*time.Second))
		if err == nil {
			_, _, err = c.Create(t.Context(), "/shop/orders/_c_x-lock-", nil, client.EphemeralSequential)
		}
		if err != nil {
			t.Fatal(err)
		}
		holder = fmt.Sprintf("0x%x", uint64(c.SessionID()))
	}
	wait.Until(t, "the worker is there before its session expires", func() bool {
		_, header := session(t, "2s")
		status, answer := send(t, "POST", "/v1/znodes/shop/worker?mode=ephemeral", "",
			func(r *http.Request) { r.Header.Set("Zk-Session", header) })
		if status >= 300 && status != http.StatusGone {
			t.Fatalf("status %d, want a success, or 410 for a session that has expired: %s", status, answer)
		}
		return status < 300
	})
	wait.Until(t, "the worker's session to expire", func() bool {
		status, _ := ask(t, "GET", "/v1/znodes/shop/worker", "")
		return status == 404
	})
	must(t, "POST", "/v1/znodes/shop/prices?acl=world:anyone:r,auth::cdrwa", "", "alice:x")
	must(t, "PUT", "/v1/znodes/shop/prices", strings.Repeat("x", 1<<19), "alice:x")
}

// TestUI_Views_Axe finds nothing in any view, light and dark, wide and narrow, with a dialog open; takes their
// pictures; and no view is wider than the window.
func TestUI_Views_Axe(t *testing.T) {
	awaitHistory(t)
	shop(t)
	for _, width := range []int{1280, 360} {
		p := ui(t, shared.HTTPAddrs()[0], width, "tree")
		p.login("super:secret")
		p.silent()
		for _, v := range uiViews {
			p.show(v.view)
			p.until(v.there)
			if v.top != "" {
				p.do(chromedp.Evaluate(`document.querySelector('section[aria-label="`+v.top+`"]').scrollIntoView()`, nil))
			}
			for _, theme := range []string{"light", "dark"} {
				p.theme(theme)
				p.wantNoViolation(fmt.Sprintf("%s, %s, %d", v.name, theme, width))
				if *update && (width > 360 || theme == "light") {
					p.picture(fmt.Sprintf("dashboard-%s-%s-%d.png", v.name, theme, width))
				}
			}
			if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s is %d wide in a window of %d", v.name, wide, width)
			}
		}
		p.show("tree/shop/orders")
		p.heading("orders")
		p.theme(map[int]string{1280: "light", 360: "dark"}[width])
		p.wantNoViolationInDialogs()
	}
}

// wantNoViolationInDialogs opens each dialog.
func (p *tab) wantNoViolationInDialogs() {
	p.t.Helper()
	for _, d := range []struct {
		view, there string
		named, text []string // buttons
	}{
		{"tree/shop/orders", `document.querySelector(".znode h1")?.textContent === "orders"`, nil,
			[]string{"Edit", "Create below", "Permissions", "Delete", "Import", "Compare"}},
		{"ensemble", `document.querySelectorAll("#members tbody tr").length === 3`,
			[]string{"Make server", "Drain server", "Remove server"},
			[]string{"Add a server", "Restore a backup"}},
		{"sessions/" + holder, `document.querySelector('[aria-label="Session"] dl')`, nil, []string{"End this session"}},
	} {
		p.show(d.view)
		p.until(d.there)
		check := func(dialog string) {
			p.t.Helper()
			p.until(`document.querySelector("dialog[open]")`)
			p.wantNoViolation("dialog " + dialog)
			p.cancel()
		}
		for _, label := range d.named {
			p.pressNamed(label)
			check(label)
		}
		for _, text := range d.text {
			p.press(text)
			check(text)
		}
	}
}

// awaitHistory waits until there is something to plot; for a picture, until it shows some load.
func awaitHistory(t *testing.T) {
	t.Helper()
	rows := 2
	if *update {
		rows = 8
	}
	c, err := client.Connect(t.Context(), shared.Addrs()[0], client.WithSessionTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // the result no longer depends on it
	busy := 0
	wait.Succeeds(t, "the history is long enough", func() error {
		busy++
		for range 1 + busy/40%5*7 { // some load, and less
			if _, err := c.Set(t.Context(), "/", nil, -1); err != nil {
				return err
			}
		}
		if n := strings.Count(must(t, "GET", "/v1/history", ""), `"time"`); n < rows {
			return fmt.Errorf("%d rows of %d", n, rows)
		}
		return nil
	})
}

func (p *tab) picture(file string) {
	p.t.Helper()
	var data []byte
	p.do(chromedp.CaptureScreenshot(&data))
	if err := os.WriteFile(filepath.Join("../../docs/images", file), data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// TestUI_Keyboard logs in, walks to a znode and changes it without a mouse.
func TestUI_Keyboard(t *testing.T) {
	anew(t, "/keyboard", "before")
	must(t, "POST", "/v1/znodes/keyboard/aa", "before")
	must(t, "POST", "/v1/znodes/keyboard/bb", "before")
	p := uiOf(t, "tree/keyboard")
	p.heading("keyboard")
	p.until(`document.querySelectorAll(".column:last-child .row").length === 2`)
	tabTo := func(what string) {
		t.Helper()
		for range 60 {
			p.do(chromedp.KeyEvent(kb.Tab))
			if eval[bool](p, fmt.Sprintf(`document.activeElement.matches("a, button, input, textarea, [tabindex]") &&
				(document.activeElement.getAttribute("aria-label") ?? document.activeElement.closest("label")?.querySelector("span").textContent ?? document.activeElement.textContent).trim() === %s`, quote(what))) {
				return
			}
		}
		t.Fatalf("the key Tab does not lead to %q", what)
	}
	for _, view := range []string{"Overview", "Tree", "Search", "Ensemble", "Locks", "Events", "Load", "Sessions"} {
		tabTo(view)
		p.do(chromedp.KeyEvent(kb.Enter))
		p.until(fmt.Sprintf(`document.title === %s`, quote(view+" – zk-lite")))
	}
	p.show("tree/keyboard")
	p.heading("keyboard")
	p.until(`document.querySelectorAll(".column:last-child .row").length === 2`)
	tabTo("Log in to change something")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector("dialog[open]")`)
	p.wantNoViolation("dialog Log in")
	tabTo("Name")
	p.do(chromedp.KeyEvent("alice"))
	tabTo("Password")
	p.do(chromedp.KeyEvent("secret" + kb.Enter))
	p.until(`document.querySelector("#logout") && !document.querySelector("dialog")`)
	tabTo("Children of /keyboard")
	p.do(chromedp.KeyEvent(kb.ArrowDown + kb.Enter))
	p.heading("bb")
	p.until(`document.activeElement.getAttribute("aria-label") === "Children of /keyboard"`)
	tabTo("Edit")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector("dialog[open]")`)
	tabTo("Data")
	p.do(chromedp.KeyEvent(" after"))
	tabTo("Review")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector(".diff .plus")`)
	tabTo("Write")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.said("/keyboard/bb is at version 1 now.")
	p.do(chromedp.KeyEvent(kb.Escape))
	tabTo("Children of /keyboard")
	p.do(chromedp.KeyEvent(kb.Backspace))
	p.heading("keyboard")
	p.do(chromedp.KeyEvent(kb.Escape))
	if wrong := eval[bool](p, `Boolean(document.querySelector("dialog[open]"))`); wrong {
		t.Error("a dialog is open")
	}
}

// TestUI_Login by token and logging out; what proves nothing is refused.
func TestUI_Login(t *testing.T) {
	p := uiOf(t, "tree")
	p.press("Log in to change something")
	p.choose("By", "token")
	p.fill("Token", "0123456789abcdef")
	p.press("Log in")
	p.until(`document.querySelector("dialog .error")?.textContent.includes("The token is not known")`)
	p.choose("By", "certificate")
	p.press("Log in")
	p.until(`document.querySelector("dialog .error")?.textContent.includes("no certificate")`)
	p.choose("By", "password")
	p.fill("Name", "super")
	p.fill("Password", "secret")
	p.press("Log in")
	p.until(`document.querySelector("#identity")?.textContent.includes("administrator")`)
	p.press("Log out")
	p.until(`document.querySelector("#login")`)
	if !p.disabled("Edit") {
		t.Error("who has logged out can press Edit")
	}
}
