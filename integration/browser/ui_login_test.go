package browser

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// TestUI_Handover: the file that `zk-lite ui` opens leads to a page that is logged in, and the token stays neither in the
// address nor in the history; a token that is not known is refused, and the page goes on without. The dialog asks for a
// token first, and says where it is.
func TestUI_Handover(t *testing.T) {
	e := zklitetest.Start(t) // without an administrator
	server := e.HTTPAddrs()[0]
	resp, err := http.Get("http://" + server + "/v1/identity")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	tokenFile := resp.Header.Get("Zk-Token-File")
	secret, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(secret), "\n")

	p := newTab(t, "http://"+server+"/", 1280)
	p.refusals = true
	handOver := func(token string) {
		t.Helper()
		p.file = "file://" + filepath.Join(t.TempDir(), "login.html")
		if err := os.WriteFile(strings.TrimPrefix(p.file, "file://"), (&httpapi.Login{URL: "http://" + server, Token: token}).Page(), 0o600); err != nil {
			t.Fatal(err)
		}
		p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.file))
	}
	handOver(token)
	p.until(`document.querySelector("#identity")?.textContent === "administrator"`)
	if at := eval[string](p, "location.href"); at != p.base+"ui/" {
		t.Errorf("the page is at %s, want %sui/", at, p.base)
	}
	p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, entries, err := page.GetNavigationHistory().Do(ctx)
		for _, entry := range entries {
			if strings.Contains(entry.URL, token) {
				t.Errorf("the history has %s", entry.URL)
			}
		}
		return err
	}))

	handOver("unknown-" + token)
	p.says("#said", "The token is not known")
	p.press("Log in to change something")
	p.until(`document.querySelector("dialog small")?.textContent.includes(` + quote(tokenFile) + `)`)
	p.fill("Token", token)
	p.press("Log in")
	p.until(`document.querySelector("#identity")?.textContent === "administrator"`)
}

// TestUI_IsWhereTheAddressLeads: a browser that is given the bare address shows the dashboard, which has a link to the
// description of the API, which has one back.
func TestUI_IsWhereTheAddressLeads(t *testing.T) {
	p := newTab(t, "http://"+shared.HTTPAddrs()[0]+"/", 1280)
	p.do(chromedp.Navigate(p.base))
	p.until(`document.querySelector("#login")`)
	p.click(`header a[href="/docs"]`)
	p.until(`location.pathname === "/docs"`)
	p.click(`a[href="/ui/"]`)
	p.until(`document.querySelector("#login")`)
}
