package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zk-lite/zk-lite/lab/story"
)

// wall measures the page at 1280 x 720: the share of the window that the picture has, how high and large the line of the
// story is, and what sticks out or must be scrolled.
const wall = `(() => {
	const box = (s) => document.querySelector(s).getBoundingClientRect();
	const shown = [...document.querySelectorAll("#story-text, #story-question, #story-answer p")].filter((e) => e.offsetParent
		&& e.getClientRects().length && e.checkVisibility({contentVisibilityAuto: true}));
	const stage = box("#stage");
	const out = [...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() && !e.closest("#chart, details:not([open]) > p")
		&& !(e.closest("#chart-heads") && e.closest("svg") !== e)).filter((e) => {
		const b = e.getBoundingClientRect();
		return b.width > 0 && (b.left < -1 || b.top < -1 || b.right > innerWidth + 1 || b.bottom > innerHeight + 1);
	}).map((e) => e.id || e.className?.baseVal || e.className || e.tagName);
	const wide = [...shown, ...document.querySelectorAll("#story-choices, #lamps strong")].filter((e) => e.scrollWidth > e.clientWidth + 1)
		.map((e) => e.textContent);
	return {share: stage.width * stage.height / (innerWidth * innerHeight), lines: shown.map((e) => e.textContent),
		size: Math.min(...shown.map((e) => parseFloat(getComputedStyle(e).fontSize))),
		high: Math.max(0, ...shown.map((e) => e.getBoundingClientRect().height)), out, wide,
		scrolls: document.documentElement.scrollHeight > innerHeight || document.documentElement.scrollWidth > innerWidth};
})()`

type measured struct {
	Share, Size, High float64
	Lines, Out, Wide  []string
	Scrolls           bool
}

// wantWall expects one line of the story, and a picture of three fifths of the window or more.
func (p *tab) wantWall(where, line string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`%s.lines.join("|") === %s`, wall, quote(line)))
	m := eval[measured](p, wall)
	if m.Share < 0.6 || len(m.Lines) > 0 && m.Size < 18 || m.High > 1.5*46 || len(m.Out) > 0 || len(m.Wide) > 0 || m.Scrolls {
		p.t.Errorf("%s: %+v, want a picture of 0.6 of the window, one line of 18 px or more, and nothing that sticks out",
			where, m)
	}
}

// onWall opens a link at the size of a projector.
func onWall(t *testing.T, link string) *tab {
	t.Helper()
	p := open(t, 1280, "")
	p.do(chromedp.EmulateViewport(1280, 720))
	p.goTo(link)
	return p
}

// TestPresent_AllStories_OneLineAndThePicture goes through every story with the keys of a presenter.
func TestPresent_AllStories_OneLineAndThePicture(t *testing.T) {
	stories, err := story.All()
	if err != nil {
		t.Fatal(err)
	}
	p := onWall(t, "")
	for _, s := range stories {
		p.goTo("s=" + s.Name + "&present")
		for i, step := range s.Steps {
			where := fmt.Sprintf("%s, step %d", s.Name, i+1)
			p.wantWall(where, step.Text)
			p.until(fmt.Sprintf(`!document.body.hasAttribute("aria-busy") && Number(document.querySelector("#time").textContent.slice(4).split(" ")[0]) === %g`, step.At))
			if step.Question != "" {
				p.do(chromedp.KeyEvent(kb.ArrowRight))
				p.wantWall(where+", question", "Predict first: "+step.Question)
				p.do(chromedp.KeyEvent("1"))
				p.wantWall(where+", answer", step.Answer)
				wrong := eval[int](p, `document.querySelectorAll("#story-choices .wrong").length`)
				if want := min(len(step.Choices), 1); step.Right == 0 && wrong != 0 || step.Right != 0 && wrong != want {
					t.Errorf("%s: %d choices are marked wrong after the first was chosen; the right one is %d", where, wrong, step.Right+1)
				}
			}
			p.do(chromedp.KeyEvent(kb.PageDown))
		}
	}
}

// TestPresent_Keys: P begins, Home and End are the story's, the arrows up and down are the run's, Esc leaves.
func TestPresent_Keys(t *testing.T) {
	p := onWall(t, "s=05-ring:0")
	first := p.text("#story-text")
	p.do(chromedp.KeyEvent("P"))
	p.wantWall("after P", first)
	if link := eval[string](p, "location.hash"); !strings.HasSuffix(link, "&present") {
		t.Errorf("the link is %q, want one that presents", link)
	}
	p.do(chromedp.KeyEvent(kb.ArrowDown))
	p.until(`document.querySelector("#place").textContent.startsWith("step 1 ")`)
	p.do(chromedp.KeyEvent(kb.ArrowUp))
	p.until(`document.querySelector("#place").textContent.startsWith("step 0 ")`)
	p.do(chromedp.KeyEvent(kb.End))
	p.until(`(([at, all]) => at === all)(document.querySelector("#story-place").textContent.split(" of "))`)
	p.do(chromedp.KeyEvent(kb.Home))
	p.wantWall("after Home", first)
	p.do(chromedp.KeyEvent(" "))
	p.until(`document.querySelector("#story").dataset.part === "1"`)
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.wantWall("after one back", first)
	p.theme("dark")
	p.wantNoViolation("a story on a wall")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.body.classList.contains("present") && !location.hash.includes("present")`)
}

// TestPresent_FreePlay has the picture alone, and the keys of the player; ?present begins it as well.
func TestPresent_FreePlay(t *testing.T) {
	p := onWall(t, fragment(bully, 0)+"&present")
	p.wantWall("free play", "")
	p.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	p.until(`document.querySelector("#place").textContent.startsWith("step 2 ")`)
	if shown := p.text("#happened"); shown == "" {
		t.Error("what has happened is not said")
	}
	p.do(chromedp.Navigate(p.base + "?present#s=05-ring"))
	p.until(`document.body?.dataset.ready === "true" && document.body.classList.contains("present")`)
}

// TestPage_NoFuture: what has not happened yet is not drawn, in a story or without.
func TestPage_NoFuture(t *testing.T) {
	p := open(t, 1280, fragment(bully, 0)+"&k=0")
	const drawn = `document.querySelectorAll("#chart .arrow, #chart .moment, #chart .span, #chart .down").length`
	if n := eval[int](p, drawn); n > 1 { // N80 is down from the beginning
		t.Errorf("%d things are drawn before anything has happened", n)
	}
	p.click("#last")
	if n := eval[int](p, drawn); n < 13 {
		t.Errorf("%d things are drawn at the end", n)
	}
}
