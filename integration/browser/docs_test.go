package browser

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zk-lite/zk-lite/internal/site"
)

// documentation serves the site of all pages.
func documentation(t *testing.T) string {
	t.Helper()
	files, err := site.Build(site.Source{Files: os.DirFS("../.."), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	return serverOf(t, site.Handler(files))
}

// read opens a page of documentation.
func (p *tab) read(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base + path))
	p.until(`document.readyState === "complete"`)
}

// TestDocs_Axe_FindsNothing in light and dark, wide and narrow, with the results of a search open.
func TestDocs_Axe_FindsNothing(t *testing.T) {
	base := documentation(t)
	for _, width := range []int{1280, 360} {
		p := newTab(t, base, width)
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			for _, path := range []string{"", "docs/", "docs/cli.html", "docs/ARCHITECTURE.html", "lab/", "docs/adr/"} {
				p.read(path)
				p.wantNoViolation(theme + " " + path)
				if wide := eval[int](p, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%s is %d pixels wide, want %d at most", path, wide, width)
				}
			}
			p.do(chromedp.Focus("#site-search"), chromedp.KeyEvent("lock"))
			p.until(`document.querySelector("#site-results a")`)
			p.wantNoViolation(theme + " results")
		}
	}
}

// TestDocs_Search finds a section by the keyboard alone.
func TestDocs_Search(t *testing.T) {
	p := newTab(t, documentation(t), 1280)
	p.read("docs/cli.html")
	p.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("first formation believes"))
	p.until(`document.querySelector("#site-results a")?.textContent === "Security"`)
	p.do(chromedp.KeyEvent(kb.ArrowDown))
	p.until(`document.activeElement === document.querySelector("#site-results a")`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`document.activeElement.id === "site-search" && document.querySelector("#site-results").hidden`)
	p.do(chromedp.KeyEvent("zzz"))
	p.until(`document.querySelector("#site-found").textContent === "Nothing has all these words."`)
	p.do(chromedp.Evaluate(`document.querySelector("#site-search").value = ""`, nil), chromedp.KeyEvent("contexts are ens"))
	p.until(`document.querySelector("#site-results a")?.textContent === "The command line: Which servers"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`location.pathname === "/docs/cli.html" && location.hash === "#which-servers"`)
}
