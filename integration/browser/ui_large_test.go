package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/zklitetest"
)

const million = 1_000_000

// createMany creates children n-0000000 and so on of a znode, by transactions.
func createMany(t *testing.T, server, path string, n int) {
	t.Helper()
	const each = 10_000
	for from := 0; from < n; from += each {
		var body strings.Builder
		body.WriteString(`{"ops":[`)
		for i := range each {
			if i > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"op":"create","path":"%s/n-%07d"}`, path, from+i)
		}
		body.WriteString("]}")
		resp, err := http.Post("http://"+server+"/v1/multi", "application/json", strings.NewReader(body.String()))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, want 200: %.200s", resp.StatusCode, answer)
		}
	}
}

// TestUI_Tree_AMillionChildren scrolls through them: only visible ones exist as rows and come over the network, and no
// answer exceeds a page.
func TestUI_Tree_AMillionChildren(t *testing.T) {
	server := zklitetest.Start(t).HTTPAddrs()[0]
	if resp, err := http.Post("http://"+server+"/v1/znodes/many", "", nil); err != nil || resp.Body.Close() != nil {
		t.Fatalf("creating: error %v, want none, and none from closing the body", err)
	}
	createMany(t, server, "/many", million)
	p := ui(t, server, 1280, "tree/")
	received := 0.0
	chromedp.ListenTarget(p.ctx, func(event any) {
		if e, ok := event.(*network.EventLoadingFinished); ok {
			p.mu.Lock()
			received += e.EncodedDataLength
			p.mu.Unlock()
		}
	})
	start := time.Now()
	p.show("tree/many")
	p.until(`document.querySelector(".column:last-child .row")?.textContent.includes("n-0000000")`)
	first := time.Since(start)
	for _, c := range []struct{ share, want string }{{"0.5", "n-0500"}, {"1", "n-0999999"}, {"0", "n-0000000"}} {
		p.do(chromedp.Evaluate(`{ const l = document.querySelector(".column:last-child .list"); l.scrollTop = (l.scrollHeight - l.clientHeight) * `+c.share+`; }`, nil))
		p.until(fmt.Sprintf(`[...document.querySelectorAll(".row")].some((r) => r.textContent.startsWith(%s))`, quote(c.want)))
	}
	rows := eval[int](p, `document.querySelectorAll(".row").length`)
	p.mu.Lock()
	bytes := received
	p.mu.Unlock()
	t.Logf("first rows after %v; %d rows exist; %.0f bytes received for four places", first, rows, bytes)
	if rows > 100 || bytes > 1<<20 {
		t.Errorf("%d rows, %.0f bytes", rows, bytes)
	}
	p.fill("Filter", "77777")
	p.until(`document.querySelector(".count").textContent.startsWith("19 of 1,000,000")`)

	resp, err := http.Get("http://" + server + "/v1/znodes/many?children&limit=10&after=n-0500000")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct{ Children []string }
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page.Children) != 10 || page.Children[0] != "n-0500001" {
		t.Errorf("by name: %v %v", page, err)
	}
}
