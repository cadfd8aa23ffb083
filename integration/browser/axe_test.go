package browser

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// violation is what axe-core reports.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// axe runs axe-core's rules of WCAG 2.1 A and AA on the visible page.
func (p *tab) axe() []violation {
	p.t.Helper()
	source, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		p.t.Fatal(err)
	}
	var result string
	await := func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }
	p.do(chromedp.Evaluate(string(source)+";0", nil), chromedp.Evaluate(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
		.then((r) => JSON.stringify(r.violations))`, &result, await))
	var found []violation
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		p.t.Fatal(err)
	}
	return found
}

func (p *tab) wantNoViolation(what string) {
	p.t.Helper()
	for _, v := range p.axe() {
		for _, n := range v.Nodes {
			p.t.Errorf("%s: axe reports %s (%s): %s\n%s", what, v.Help, v.ID, n.HTML, n.Summary)
		}
	}
}

// TestPage_Axe_FindsNothing in light and dark, wide and narrow, with menus and errors open.
func TestPage_Axe_FindsNothing(t *testing.T) {
	for _, width := range []int{1280, 360} {
		p := open(t, width, fragment(bully, 1.5))
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			for _, line := range []string{
				bully, "election --algorithm bully --ids 3,5,6,12,32,80 --initiator 32 --slow 80-32@9 --crash 3@1",
				"mutex --algorithm ricart-agrawala --n 3 --requester 2,3 --clock 2=14,3=6", "election --algorithm hs --n 6",
				"election --algorithm zookeeper --n 4", "problem --algorithm deadlock",
			} {
				p.goTo(fragment(line, 2.2) + "&o=" + "election+--n+6")
				p.wantNoViolation(theme + " " + line)
			}
			p.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil))
			p.wantNoViolation(theme + " all options")
			p.click(`[data-process="2"]`)
			p.wantNoViolation(theme + " menu of a process")
			p.run("election --tempo 3")
			p.wantNoViolation(theme + " error")
		}
	}
}

// TestAxe_Notices that a label is missing: a check that cannot fail is none.
func TestAxe_Notices(t *testing.T) {
	p := open(t, 1280, fragment(bully, 1.5))
	p.do(chromedp.Evaluate(`document.querySelector("#slider").removeAttribute("aria-label")`, nil))
	if len(p.axe()) == 0 {
		t.Error("axe-core finds nothing wrong with a slider without a name")
	}
}
