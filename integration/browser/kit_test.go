package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/lab/serve"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// These bound what would hang; machines are overloaded.
const (
	patience       = 4 * time.Minute // of a tab
	soon           = time.Minute     // for a condition
	browserStartup = time.Minute
)

var (
	browser context.Context
	shared  *zklitetest.Ensemble // for the tests of the dashboard that stop no server
)

// superDigest is that of super:secret.
const superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

func TestMain(m *testing.M) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("force-prefers-reduced-motion", true), chromedp.WSURLReadTimeout(browserStartup))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	if err := chromedp.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "starting chromium (Debian: apt-get install chromium):", err)
		os.Exit(1)
	}
	browser = ctx
	code := zklitetest.Main(m, func(e *zklitetest.Ensemble) { shared = e }, zklitetest.WithServers(3),
		zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest),
		zklitetest.WithSetting("logger.slowRequests", "1"))
	closeBrowser()
	cancel()
	os.Exit(code)
}

// tab is one page in the browser.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
	file string // a page on the disk that may lead to base; "": none
	// refusals declares that answers with an error's status are part of the test.
	refusals bool

	mu       sync.Mutex
	problems []string  // requests elsewhere, and what the page complained of
	traffic  time.Time // when something was last asked or answered
}

// serverOf serves a handler until the test ends, and returns its address.
func serverOf(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve.Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return "http://" + l.Addr().String() + "/"
}

// open opens the page in a new tab. When the test ends, nothing may have been asked of
// another origin, and no module may have failed.
func open(t *testing.T, width int, fragment string) *tab {
	t.Helper()
	return openAt(t, serverOf(t, serve.New(serve.Options{})), width, fragment)
}

func openAt(t *testing.T, base string, width int, fragment string) *tab {
	t.Helper()
	p := newTab(t, base, width)
	p.goTo(fragment)
	return p
}

// newTab is a tab that shows nothing yet.
func newTab(t *testing.T, base string, width int) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	ctx, stop := context.WithTimeout(ctx, patience)
	p := &tab{t: t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, p.observe)
	t.Cleanup(func() {
		stop()
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("the page: %s, want no problem", problem)
		}
	})
	p.do(network.Enable(), runtime.Enable(), cdplog.Enable(), chromedp.EmulateViewport(int64(width), 900))
	return p
}

func (p *tab) observe(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventLoadingFinished:
		p.traffic = time.Now()
	case *network.EventRequestWillBeSent:
		p.traffic = time.Now()
		if !strings.HasPrefix(e.Request.URL, p.base) && e.Request.URL != "about:blank" && e.Request.URL != p.file {
			p.problems = append(p.problems, "asked elsewhere: "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Error())
	case *cdplog.EventEntryAdded:
		// A run that is refused is answered with 400, which the tests of errors expect.
		expected := strings.Contains(e.Entry.Text, "400") || p.refusals && e.Entry.Source == cdplog.SourceNetwork
		if e.Entry.Level == cdplog.LevelError && !expected {
			p.problems = append(p.problems, "console: "+e.Entry.Text)
		}
	}
}

func (p *tab) do(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// goTo loads the page again with this fragment and waits for its first run.
func (p *tab) goTo(fragment string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.base+"#"+fragment))
	p.until(`document.body?.dataset.ready === "true"`)
}

// eval evaluates an expression.
func eval[T any](p *tab, expression string) (value T) {
	p.t.Helper()
	p.do(chromedp.Evaluate(expression, &value))
	return value
}

// until waits for a condition. A page that is just being left cannot be asked: it is asked
// again.
func (p *tab) until(condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var holds bool
		err := chromedp.Run(ctx, chromedp.Evaluate("Boolean("+condition+")", &holds))
		if err == nil && holds {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("waiting until %s: %v; the page says:\n%s", condition, err, p.text("main")+p.text("#said")+p.text("dialog"))
		}
	}
}

func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%s)?.textContent ?? ''", quote(selector)))
}

// click clicks with the mouse in the middle of what the selector finds.
func (p *tab) click(selector string) {
	p.t.Helper()
	// In the middle of the window nothing that stays in place covers it.
	at := eval[[2]float64](p, fmt.Sprintf(`(() => { const e = document.querySelector(%s);
		if (!e.closest("#player, #inspector")) e.scrollIntoView({block: "center"});
		const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()`, quote(selector)))
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// run types a line into the page and waits for its run.
func (p *tab) run(line string) {
	p.t.Helper()
	p.do(chromedp.Evaluate(`document.querySelector("#line").select()`, nil), chromedp.KeyEvent(line))
	p.click("#command button[type=submit]")
	p.settled()
}

// settled waits until no run is being computed.
func (p *tab) settled() {
	p.t.Helper()
	p.until(`!document.body.hasAttribute("aria-busy")`)
}

func (p *tab) theme(name string) {
	p.t.Helper()
	p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(data)
}
