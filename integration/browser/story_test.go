package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/lab/story"
)

// TestStories_ToTheirEnds plays every story on the page, step by step, and compares the
// counts of each of its runs with the command line's.
func TestStories_ToTheirEnds(t *testing.T) {
	stories, err := story.All()
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, 1280, "")
	for _, s := range stories {
		p.play(s)
	}
}

// play goes through a story.
func (p *tab) play(s story.Story) {
	p.t.Helper()
	p.do(chromedp.Evaluate(fmt.Sprintf(`{ const s = document.querySelector("#stories"); s.value = %s; s.dispatchEvent(new Event("change")); }`,
		quote(s.Name)), nil))
	for i, step := range s.Steps {
		if i > 0 {
			p.click("#story-next")
		}
		p.until(fmt.Sprintf(`document.querySelector("#story-place").textContent === "%d of %d" && !document.body.hasAttribute("aria-busy")`,
			i+1, len(s.Steps)))
		line := strings.ReplaceAll(eval[string](p, `document.querySelector("#line").value`), "'", "")
		if line != step.Command {
			p.t.Errorf("%s, step %d runs %q, want %q", s.Name, i+1, line, step.Command)
		}
		p.until(fmt.Sprintf(`Number(document.querySelector("#time").textContent.slice(4)) === %g`, step.At))
		if text := p.text("#story-text"); text != step.Text {
			p.t.Errorf("%s, step %d says %q", s.Name, i+1, text)
		}
		if step.Question != "" {
			if p.click("#story-answer summary"); p.text("#story-answer p") != step.Answer {
				p.t.Errorf("%s, step %d answers %q", s.Name, i+1, p.text("#story-answer p"))
			}
		}
		if i == len(s.Steps)-1 || s.Steps[i+1].Command != step.Command {
			p.wantCount(step.Command)
		}
	}
}

// TestStories_Link_OpensTheStep: the address of a step of a story is enough.
func TestStories_Link_OpensTheStep(t *testing.T) {
	p := open(t, 1280, "")
	p.do(chromedp.Evaluate(`{ const s = document.querySelector("#stories"); s.value = "05-ring"; s.dispatchEvent(new Event("change")); }`, nil))
	p.until(`document.querySelector("#story-place").textContent.startsWith("1 of")`)
	p.settled()
	p.click("#story-next")
	p.until(`document.querySelector("#time").textContent === "t = 3"`)
	again := openAt(t, p.base, 360, strings.TrimPrefix(eval[string](p, "location.hash"), "#"))
	for _, part := range []string{"#story-place", "#story-text", "#time", "#total"} {
		if one, two := p.text(part), again.text(part); one != two || one == "" {
			t.Errorf("%s is %q, want %q", part, two, one)
		}
	}
	again.theme("dark")
	again.wantNoViolation("a story at 360 px")
	again.click("#story-close")
	if !eval[bool](again, `document.querySelector("#story").hidden`) {
		t.Error("the story cannot be left")
	}
}
