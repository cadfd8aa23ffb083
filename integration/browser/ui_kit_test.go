package browser

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// ui opens the dashboard of a server at a view, such as tree/app.
func ui(t *testing.T, server string, width int, view string) *tab {
	t.Helper()
	p := newTab(t, "http://"+server+"/", width)
	p.refusals = true
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(keepSaid).Do(ctx)
		return err
	}))
	p.view(view)
	return p
}

// uiOf opens that of the first shared server.
func uiOf(t *testing.T, view string) *tab {
	t.Helper()
	return ui(t, shared.HTTPAddrs()[0], 1280, view)
}

// view loads the page again.
func (p *tab) view(name string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.base+"ui/#/"+name))
	p.until(`document.querySelector("#login, #logout")`)
}

// show goes to another view of the page as it is.
func (p *tab) show(name string) {
	p.t.Helper()
	p.do(chromedp.Evaluate("location.hash = "+quote("#/"+name), nil))
}

// heading waits for a first heading.
func (p *tab) heading(want string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector("h1")?.textContent === %s`, quote(want)))
}

// in is where the user can click: the dialog, if there is one.
const in = `(document.querySelector("dialog[open]") ?? document)`

// press clicks the button with this text with the mouse. What the page reads by itself may move the button between the
// look for its place and the click: a click that meets something else has no effect, and is repeated.
func (p *tab) press(text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...%s.querySelectorAll("button")].find((b) => b.textContent.trim() === %s && !b.disabled)`, in, quote(text))
	aim := fmt.Sprintf(`(() => { const find = () => %s, e = find();
		if (!e) return null;
		e.scrollIntoView({block: "center"});
		window.aim?.abort();
		window.hit = false;
		const aim = window.aim = new AbortController();
		addEventListener("click", (event) => {
			aim.abort();
			window.hit = find()?.contains(event.target) ?? false;
			if (!window.hit) { event.stopImmediatePropagation(); event.preventDefault(); }
		}, {capture: true, signal: aim.signal});
		const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()`, find)
	wait.Until(p.t, "a click on "+text, func() bool {
		p.until(find)
		at := eval[[]float64](p, aim)
		if at == nil {
			return false // it has gone, or cannot be pressed now
		}
		p.do(chromedp.MouseClickXY(at[0], at[1]))
		return eval[bool](p, "window.hit")
	})
}

// disabled waits for the button with this text, and reports whether it cannot be pressed.
func (p *tab) disabled(text string) bool {
	p.t.Helper()
	find := `[...document.querySelectorAll("button")].find((b) => b.textContent.trim() === ` + quote(text) + `)`
	p.until(find + ` !== undefined`)
	return eval[bool](p, find+`.disabled`)
}

// pressNamed clicks the first enabled button whose accessible name begins with name.
func (p *tab) pressNamed(label string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => { const b = document.querySelector('button[aria-label^=%s]:enabled');
		b?.click(); return Boolean(b); })()`, quote(label)))
}

// cancel closes the dialog.
func (p *tab) cancel() {
	p.t.Helper()
	p.press("Cancel")
	p.until(`!document.querySelector("dialog[open]")`)
}

// fill puts a text into the field with this label.
func (p *tab) fill(label, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => { const l = [...%s.querySelectorAll("label.field")].find((l) => l.querySelector("span").textContent === %s);
		if (!l) return false; const e = l.querySelector("input, textarea"); e.focus(); e.select(); return true; })()`, in, quote(label)))
	if text == "" {
		p.do(chromedp.KeyEvent("\b"))
		return
	}
	p.do(input.InsertText(text))
}

// choose takes an option of the field with this label.
func (p *tab) choose(label, value string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => { const l = [...%s.querySelectorAll("label.field")].find((l) => l.querySelector("span").textContent === %s);
		if (!l) return false; const e = l.querySelector("select"); e.value = %s; e.dispatchEvent(new Event("change", {bubbles: true})); return true; })()`,
		in, quote(label), quote(value)))
}

// keepSaid keeps in said what the page reports, for messages go by themselves.
const keepSaid = `window.said = [];
	new MutationObserver(() => {
		const text = document.querySelector("#said")?.textContent;
		if (text && text !== said.at(-1)) said.push(text);
	}).observe(document, {subtree: true, childList: true, characterData: true});`

// said waits until the page reports success or failure of an action, and forgets it and what it reported before.
func (p *tab) said(want string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => { const i = said.findIndex((text) => text.includes(%[1]s));
		if (i >= 0) said.splice(0, i + 1);
		return i >= 0 || [...document.querySelectorAll("dialog .error")].some((e) => e.textContent.includes(%[1]s)); })()`,
		quote(want)))
}

// silent waits until the page's message has gone.
func (p *tab) silent() {
	p.t.Helper()
	p.until(`document.querySelector("#said").textContent === ""`)
}

func (p *tab) login(credentials string) {
	p.t.Helper()
	name, password, _ := strings.Cut(credentials, ":")
	p.press("Log in to change something")
	p.fill("Name", name)
	p.fill("Password", password)
	p.press("Log in")
	p.until(`document.querySelector("#logout")`)
}

// leads waits for a leader, and returns its index.
func leads(t *testing.T, e *zklitetest.Ensemble) (leader int) {
	t.Helper()
	wait.Until(t, "a leader", func() bool { leader = e.Leader(); return leader >= 0 })
	return leader
}

// ask sends a request to the first shared server, as another client than the page.
func ask(t *testing.T, method, target, body string, credentials ...string) (status int, answer string) {
	t.Helper()
	return send(t, method, target, body, func(r *http.Request) {
		for _, c := range credentials {
			name, password, _ := strings.Cut(c, ":")
			r.SetBasicAuth(name, password)
		}
	})
}

// send sends a request to the first shared server, and again while there is no leader, as happens on an overloaded
// machine: then nothing was done.
func send(t *testing.T, method, target, body string, edit func(*http.Request)) (status int, answer string) {
	t.Helper()
	wait.Until(t, "a leader for "+method+" "+target, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+shared.HTTPAddrs()[0]+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		edit(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		status, answer = resp.StatusCode, string(data)
		return status != http.StatusServiceUnavailable
	})
	return status, answer
}

// must sends a request that has to succeed.
func must(t *testing.T, method, target, body string, credentials ...string) string {
	t.Helper()
	status, answer := ask(t, method, target, body, credentials...)
	if status >= 300 {
		t.Fatalf("%s %s: status %d, want a success: %s", method, target, status, answer)
	}
	return answer
}

// anew creates a znode in the place of one that an earlier run has left there.
func anew(t *testing.T, path, data string, credentials ...string) {
	t.Helper()
	place, _, _ := strings.Cut(path, "?")
	if status, answer := ask(t, "DELETE", "/v1/znodes"+place+"?recursive=true", "", "super:secret"); status >= 300 && status != 404 {
		t.Fatalf("DELETE %s: %d %s", place, status, answer)
	}
	must(t, "POST", "/v1/znodes"+path, data, credentials...)
}

// front serves what the server at *to serves, as a proxy in front of several does.
func front(t *testing.T, to *atomic.Value, transport http.RoundTripper) (address string) {
	t.Helper()
	return strings.Trim(strings.TrimPrefix(serverOf(t, &httputil.ReverseProxy{
		FlushInterval: -1, Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to.Load().(*url.URL))
			r.Out.Host = r.In.Host // or the page would be of another origin
		},
	}), "http:"), "/")
}

// wantData checks a znode's data.
func wantData(t *testing.T, path, want string) {
	t.Helper()
	if got := must(t, "GET", "/v1/znodes"+escape(path)+"?raw&consistency=linearizable", ""); got != want {
		t.Errorf("%s is %.100q, want %.100q", path, got, want)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if status, answer := ask(t, "GET", "/v1/znodes"+escape(path)+"?consistency=linearizable", ""); status != http.StatusNotFound {
		t.Errorf("%s: status %d, want 404: %s", path, status, answer)
	}
}

func escape(path string) string { return (&url.URL{Path: path}).EscapedPath() }
