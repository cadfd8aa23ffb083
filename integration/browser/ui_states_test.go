package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/zklitetest"
)

const (
	picturesVariable = "PICTURES"           // the directory of the pictures
	picturesDefault  = "../../bin/pictures" // without it
	highest          = 2400                 // of a picture, in pixels
	quiet            = 300 * time.Millisecond
)

// stateViews are the views in the order in which TestUI_States takes their pictures: the load comes last, because its
// first rows come late.
var stateViews = []string{
	"overview", "tree/shop/orders", "search?any=order", "ensemble", "locks", "events/shop", "sessions", "load",
}

// TestUI_States takes pictures of each view as an administrator sees it when all is well, with a dead server and without
// a majority, on a desktop and a telephone, light and dark. Each has to show something, and none is wider than the window.
func TestUI_States(t *testing.T) {
	dir := os.Getenv(picturesVariable)
	if dir == "" {
		dir = picturesDefault
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e := zklitetest.Start(t, zklitetest.WithServers(3),
		zklitetest.WithSetting("DigestAuthenticationProvider.superDigest", superDigest),
		zklitetest.WithSetting("logger.slowRequests", "1"))
	furnish(t, e)
	p := ui(t, e.HTTPAddrs()[0], widths[0], stateViews[0])
	p.login("super:secret")
	states := []struct {
		name  string
		enter func()
	}{
		{"well", func() {
			p.show("load")
			p.until(`document.querySelectorAll("figure polyline").length > 3 && [...document.querySelectorAll("figure polyline")].every((l) => l.points.length > 1)`)
		}},
		{"dead", func() {
			e.Stop(1)
			p.show("ensemble")
			p.says(".silent summary", "down")
		}},
		{"no-majority", func() {
			e.Stop(2)
			p.until(`document.querySelector("#majority")`)
		}},
	}
	for _, s := range states {
		s.enter()
		for _, view := range stateViews {
			p.show(view)
			p.until(`document.querySelector("main section")`)
			p.quiet()
			name := regexp.MustCompile("^[a-z]+").FindString(view)
			for _, width := range widths {
				p.width(width)
				for _, theme := range []string{"light", "dark"} {
					p.theme(theme)
					file := fmt.Sprintf("%s-%s-%d-%s.png", s.name, name, width, theme)
					p.wantPicture(filepath.Join(dir, file))
				}
			}
			p.width(widths[0])
		}
	}
}

// quiet waits until nothing has been asked or answered for a moment.
func (p *tab) quiet() {
	p.t.Helper()
	wait.Until(p.t, "the page is quiet", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Since(p.traffic) > quiet
	})
}

// wantPicture takes a picture of the whole page.
func (p *tab) wantPicture(file string) {
	p.t.Helper()
	size := eval[[2]float64](p, `[document.documentElement.scrollWidth, document.documentElement.scrollHeight]`)
	if inner := eval[float64](p, "innerWidth"); size[0] > inner {
		p.t.Errorf("%s: the page is %v wide in a window of %v", file, size[0], inner)
	}
	var data []byte
	p.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		data, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).
			WithClip(&page.Viewport{Width: size[0], Height: min(size[1], highest), Scale: 1}).Do(ctx)
		return err
	}))
	wantColours(p.t, file, data)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// wantColours: the picture shows something.
func wantColours(t *testing.T, file string, data []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if n := coloursOf(picture); n < 50 {
		t.Errorf("%s has %d colours: it shows nothing", file, n)
	}
}

func coloursOf(picture image.Image) int {
	colours := map[any]bool{}
	for x := range picture.Bounds().Dx() {
		for y := 0; y < picture.Bounds().Dy(); y += 7 {
			colours[picture.At(x, y)] = true
		}
	}
	return len(colours)
}

// furnish makes something of everything that the views show.
func furnish(t *testing.T, e *zklitetest.Ensemble) {
	t.Helper()
	ctx := t.Context()
	connect := func(server int, timeout time.Duration) *client.Client {
		c, err := client.Connect(ctx, e.Addrs()[server], client.WithSessionTimeout(timeout))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // its server may have been stopped
		return c
	}
	create := func(c *client.Client, path, data string, mode client.Mode) {
		t.Helper()
		if _, _, err := c.Create(ctx, path, []byte(data), mode); err != nil {
			t.Fatal(err)
		}
	}
	first := connect(0, 30*time.Second)
	for _, dir := range []string{"/shop", "/shop/locks", "/shop/locks/checkout", "/shop/locks/stock", "/shop/workers"} {
		create(first, dir, "", client.Persistent)
	}
	create(first, "/shop/orders", `{"total": 9007199254740993, "currency": "EUR", "open": ["17", "18"]}`, client.Persistent)
	for i := range 12 {
		create(first, "/shop/orders/order-", fmt.Sprint("order ", i), client.PersistentSequential)
	}
	for i := range 5 {
		c := connect(i%3, 30*time.Second)
		who := fmt.Sprintf("worker-%d@host-%d", i, i%3)
		create(c, "/shop/workers/"+who, who, client.Ephemeral)
		create(c, fmt.Sprintf("/shop/locks/checkout/_c_%032x-lock-", i), who, client.EphemeralSequential)
		if i < 2 {
			create(c, fmt.Sprintf("/shop/locks/stock/_c_%032x-lock-", i), who, client.EphemeralSequential)
		}
	}
	forsake(t, e, "/shop/workers/worker-9@host-9")
	wait.Until(t, "its session to expire", func() bool {
		there, _, err := first.Exists(ctx, "/shop/workers/worker-9@host-9")
		return err == nil && !there
	})
}

// forsake creates an ephemeral znode of a session that is not kept alive.
func forsake(t *testing.T, e *zklitetest.Ensemble, path string) {
	t.Helper()
	post := func(target, body, session string) (status int, answer []byte) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+e.HTTPAddrs()[0]+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if session != "" {
			req.Header.Set("Zk-Session", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if answer, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, answer
	}
	wait.Until(t, path+" is there before its session expires", func() bool {
		var s struct{ ID, Secret string }
		if status, answer := post("/v1/sessions", `{"timeout":"2s"}`, ""); status >= 300 || json.Unmarshal(answer, &s) != nil {
			return false // as while there is no leader
		}
		status, _ := post("/v1/znodes"+path+"?mode=ephemeral", "", s.ID+"."+s.Secret)
		return status < 300
	})
}
