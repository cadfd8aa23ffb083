package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zk-lite/zk-lite/lab/page"
	"github.com/zk-lite/zk-lite/lab/play"
)

const bully = "election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --initiator 6"

// fragment is the link of a line at a time.
func fragment(line string, time float64) string {
	return "c=" + url.QueryEscape(line) + "&t=" + fmt.Sprint(time)
}

// counted is how many messages the command line counts.
func counted(t *testing.T, line string) int {
	t.Helper()
	tr, err := play.Run(strings.Fields(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var result struct {
		Messages struct{ Total int }
	}
	if err := json.Unmarshal(tr.Result, &result); err != nil {
		t.Fatal(err)
	}
	return result.Messages.Total
}

func (p *tab) wantLine(want string) {
	p.t.Helper()
	if got := eval[string](p, `document.querySelector("#line").value`); got != want {
		p.t.Errorf("the command is %q, want %q", got, want)
	}
}

// wantCount goes to the end and compares the page's count with the command line's.
func (p *tab) wantCount(line string) {
	p.t.Helper()
	p.click("#last")
	want := counted(p.t, line)
	if got := eval[string](p, `document.querySelector("#total").dataset.total`); got != fmt.Sprint(want) {
		p.t.Errorf("%s: the page counts %s messages, the command line %d", line, got, want)
	}
}

// TestPage_Algorithms_CountsEqual chooses every algorithm in the list and plays it to the end.
func TestPage_Algorithms_CountsEqual(t *testing.T) {
	p := open(t, 1280, "")
	values := eval[[]string](p, `[...document.querySelectorAll("#algorithm option")].map((o) => o.value)`)
	if len(values) < 20 {
		t.Fatalf("%d algorithms in the list: %v", len(values), values)
	}
	for _, v := range values {
		command, algorithm, has := strings.Cut(v, " ")
		line := command
		if has {
			line += " --algorithm " + algorithm
		}
		p.do(chromedp.Evaluate(fmt.Sprintf(`{ const s = document.querySelector("#algorithm"); s.value = %s;
			s.dispatchEvent(new Event("change")); }`, quote(v)), nil))
		p.until(fmt.Sprintf(`document.querySelector("#line").value === %s && !document.body.hasAttribute("aria-busy")`, quote(line)))
		if message := p.text("#error"); message != "" {
			t.Errorf("%s: the page shows the error %q, want none", line, message)
			continue
		}
		p.wantCount(line)
	}
}

// TestPage_Process_CrashAndRecover clicks a process in the picture, and then on its card.
func TestPage_Process_CrashAndRecover(t *testing.T) {
	p := open(t, 1280, fragment(bully, 2))
	p.click(`#topology .node:nth-of-type(6)`) // N32: the dots follow it
	name := p.text("#inspector h2")
	if !strings.HasPrefix(name, "N") {
		t.Fatalf("the menu says %q", name)
	}
	id := strings.TrimSuffix(strings.TrimPrefix(name, "N"), "up")
	p.click(`#inspector [data-act=crash]`)
	p.settled()
	line := bully + " --crash " + id + "@2.5"
	p.wantLine(line)
	if fresh := p.text("#fresh"); !strings.Contains(fresh, "--crash "+id+"@2.5") {
		t.Errorf("the page says %q of the option", fresh)
	}
	if state := p.text(fmt.Sprintf(`[data-process="%s"] + .state`, id)); state != "down" {
		t.Errorf("N%s is %q after its crash", id, state)
	}
	p.click("#next")
	p.click(fmt.Sprintf(`[data-process="%s"]`, id))
	p.click(`#inspector [data-act=recover]`)
	p.settled()
	got := eval[string](p, `document.querySelector("#line").value`)
	if !strings.HasPrefix(got, line+" --recover "+id+"@") {
		t.Fatalf("the command is %q", got)
	}
	p.wantCount(got)
	p.click("#undo")
	p.until(fmt.Sprintf(`document.querySelector("#line").value === %s`, quote(line)))
}

// TestPage_Message_LoseRepeatDelay does each to a message that is under way.
func TestPage_Message_LoseRepeatDelay(t *testing.T) {
	p := open(t, 1280, "")
	for _, c := range []struct{ where, act, want string }{
		{`#underway [data-message="3"]`, "drop", " --drop answer@1"},
		{`#underway [data-message="4"]`, "duplicate", " --duplicate answer@2"},
		{`#underway [data-message="3"]`, "late", " --late answer@1=3"},
		{`#topology .message .target`, "drop", " --drop answer@1"},
		{`#chart .arrow`, "drop", " --drop election@1"},
		{`#underway [data-message="3"]`, "slow", " --slow 12-6@3"},
	} {
		p.goTo(fragment(bully, 1.5))
		p.click(c.where)
		p.click(fmt.Sprintf(`#inspector [data-act=%s]`, c.act))
		p.settled()
		p.wantLine(bully + c.want)
		p.wantCount(bully + c.want)
	}
}

// TestPage_Process_CutOffAndSlowLink cuts off a process, alone and with another, from the rest, and slows one of its
// links. Both happen in the run.
func TestPage_Process_CutOffAndSlowLink(t *testing.T) {
	p := open(t, 1280, "")
	const central = "mutex --algorithm central --n 3"
	for _, c := range []struct {
		line, process, field, value, act, want string
		lost                                   bool
	}{
		{bully, "12", "inspector-length", "7", "partition", " --partition '3,5,6,32,80|12@1.5-8.5'", true},
		{bully, "12", "inspector-side", "12, N32", "partition", " --partition '3,5,6,80|12,32@1.5-21.5'", true},
		{bully, "32", "inspector-to", "6", "slow", " --slow 32-6@5", false},
		{central, "1", "inspector-slow", "4", "slow", " --slow 1-S@4", false},
		{central, "1", "inspector-length", "7", "partition", " --partition '2,3|1@1.5-8.5'", true},
	} {
		p.goTo(fragment(c.line, 1.5))
		p.click(fmt.Sprintf(`[data-process="%s"]`, c.process))
		p.do(chromedp.SetValue("#"+c.field, c.value, chromedp.ByID))
		p.click(fmt.Sprintf(`#inspector [data-act=%s]`, c.act))
		p.settled()
		p.wantLine(c.line + c.want)
		p.wantCount(strings.ReplaceAll(c.line+c.want, "'", ""))
		title := p.text("#chart")
		if got := strings.Contains(title, ": partition"); got != c.lost {
			t.Errorf("%s%s: that a message is lost to the partition is said: %t, want %t", c.line, c.want, got, c.lost)
		}
	}
	p.goTo(fragment("race", 0))
	p.click(`[data-process="1"]`)
	if said := p.text("#inspector"); !strings.Contains(said, "Nothing can be done") {
		t.Errorf("a thread of a race: the menu says %q", said)
	}
}

func TestPage_Player_ForwardBackPlayAndPause(t *testing.T) {
	p := open(t, 1280, fragment(bully, 0)+"&k=0")
	place := func() string { return p.text("#place") }
	tr, err := play.Run(strings.Fields(bully))
	if err != nil {
		t.Fatal(err)
	}
	at := func(k int) string { return fmt.Sprintf("step %d of %d", k, len(tr.Steps)) }
	for _, c := range []struct {
		button string
		k      int
	}{{"#first", 0}, {"#next", 1}, {"#next", 2}, {"#next", 3}, {"#back", 2}, {"#last", len(tr.Steps)}, {"#back", len(tr.Steps) - 1}} {
		if p.click(c.button); place() != at(c.k) {
			t.Errorf("after %s: %q, want %q", c.button, place(), at(c.k))
		}
	}
	if said := p.text("#happened"); !strings.Contains(said, tr.Steps[len(tr.Steps)-2].Text) {
		t.Errorf("the step is told as %q", said)
	}
	p.click("#first")
	p.click("#play")
	p.until(`parseFloat(document.querySelector("#time").textContent.slice(4)) > 0.3`)
	p.click("#play")
	if label := eval[string](p, `document.querySelector("#play").getAttribute("aria-label")`); label != "play" {
		t.Errorf("after pause the button is for %q", label)
	}
	p.click("#play")
	p.until(fmt.Sprintf(`document.querySelector("#place").textContent === %s`, quote(at(len(tr.Steps)))))
	if lamps := p.text("#lamps"); !strings.Contains(lamps, "safe") || !strings.Contains(lamps, "live") || strings.Contains(lamps, "NOT") {
		t.Errorf("the lamps say %q", lamps)
	}
	p.do(chromedp.Evaluate(`{ const s = document.querySelector("#slider"); s.value = 5; s.dispatchEvent(new Event("input")); }`, nil))
	if place() != at(5) {
		t.Errorf("the slider leads to %q", place())
	}
}

// TestPage_Lamps_TellTheBrokenPromise at its moment, and not before.
func TestPage_Lamps_TellTheBrokenPromise(t *testing.T) {
	const broken = "election --algorithm bully --ids 3,5,6,12,32,80 --initiator 32 --slow 80-32@9"
	tr, err := play.Run(strings.Fields(broken))
	if err != nil || len(tr.Broken) == 0 {
		t.Fatalf("%v, %v, want a broken promise", tr.Broken, err)
	}
	first := tr.Broken[0]
	p := open(t, 1280, fragment(broken, first.At-0.01))
	if lamps := p.text("#lamps"); strings.Contains(lamps, "NOT SAFE") {
		t.Errorf("before it is broken: %q", lamps)
	}
	p.goTo(fragment(broken, first.At))
	if lamps := p.text("#lamps"); !strings.Contains(lamps, "NOT SAFE") || !strings.Contains(lamps, first.Sentence) {
		t.Errorf("the lamps say %q, want %q", lamps, first.Sentence)
	}
}

func TestPage_Compare_LaysTwoRunsOver(t *testing.T) {
	p := open(t, 1280, fragment(bully, 5))
	p.click("#compare")
	p.settled()
	line := bully + " --announce once --crash 32@2.5"
	p.run(line)
	p.click("#last")
	if n := eval[int](p, `document.querySelectorAll("#chart .arrow.other").length`); n < 10 {
		t.Errorf("%d messages of the other run are drawn", n)
	}
	if counters := p.text("#counters"); !strings.Contains(counters, "other 4") {
		t.Errorf("the counters of both: %q", counters)
	}
	link := eval[string](p, "location.hash")
	again := openAt(t, p.base, 1280, strings.TrimPrefix(link, "#"))
	for _, part := range []string{"#total", "#place", "#time", "#compared", "#processes", "#counters"} {
		if one, two := p.text(part), again.text(part); one != two {
			t.Errorf("the link %s shows %s as %q, want %q", link, part, two, one)
		}
	}
	again.wantLine(line)
	p.click("#compare")
	p.settled()
	if n := eval[int](p, `document.querySelectorAll("#chart .arrow.other").length`); n != 0 {
		t.Errorf("%d messages of a run that is not compared any more", n)
	}
}

// TestPage_Error_KeepsTheRun: the page shows the simulator's error for a wrong line, and keeps the run before it.
func TestPage_Error_KeepsTheRun(t *testing.T) {
	p := open(t, 1280, fragment(bully, 2))
	before := p.text("#processes")
	p.run("election --tempo 3")
	if said := p.text("#error"); !strings.Contains(said, `"--tempo" is no option`) {
		t.Errorf("the page says %q", said)
	}
	if p.text("#processes") != before {
		t.Error("the run before the error is gone")
	}
	p.run(fmt.Sprintf("election --n %d", page.MaxProcesses+1))
	if said := p.text("#error"); !strings.Contains(said, "64 at most") {
		t.Errorf("the page says %q", said)
	}
	p.run("election --n 4")
	if said := p.text("#error"); said != "" {
		t.Errorf("after a right line: %q", said)
	}
}

// TestPage_Options_MakeTheCommand: a field of the form is an option of the command line.
func TestPage_Options_MakeTheCommand(t *testing.T) {
	p := open(t, 1280, fragment(bully, 0))
	p.do(chromedp.Evaluate(`document.querySelector("details").open = true`, nil))
	for _, c := range []struct{ id, value, want string }{
		{"option-announce", "once", bully + " --announce once"},
		{"option-initiator", "3,32", "election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --announce once --initiator 3,32"},
		{"option-initiator", "", "election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --announce once"},
	} {
		p.do(chromedp.Evaluate(fmt.Sprintf(`{ const f = document.getElementById(%s); f.value = %s; f.dispatchEvent(new Event("change")); }`,
			quote(c.id), quote(c.value)), nil))
		p.settled()
		p.wantLine(c.want)
	}
}

// TestPage_Keyboard_Alone reaches everything with Tab, crashes a process, loses a message
// and plays, without a mouse.
func TestPage_Keyboard_Alone(t *testing.T) {
	p := open(t, 1280, fragment(bully, 1.5))
	reach := func(selector string) {
		t.Helper()
		for range 400 {
			p.do(chromedp.KeyEvent(kb.Tab))
			if eval[bool](p, fmt.Sprintf("document.activeElement?.matches(%s) ?? false", quote(selector))) {
				if !eval[bool](p, `document.activeElement.matches(":focus-visible")`) {
					t.Errorf("the focus on %s cannot be seen", selector)
				}
				return
			}
		}
		t.Fatalf("Tab does not reach %s", selector)
	}
	for _, s := range []string{".skip", "#stories", "#algorithm", "#line", "#compare", "#link", "#speed", "#upkeep", "summary", "#first", "#play", "#slider",
		"#chart-box", "#underway button", "[data-process]", "#output summary"} {
		reach(s)
	}
	reach(`[data-process="12"]`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.activeElement?.dataset.act === "crash"`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`document.activeElement?.dataset.process === "12"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.activeElement?.dataset.act === "crash"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.settled()
	p.wantLine(bully + " --crash 12@1.5")
	reach("#underway button")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.activeElement?.dataset.act === "drop"`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.settled()
	p.wantLine(bully + " --crash 12@1.5 --drop answer@1")
	p.do(chromedp.KeyEvent(kb.Home))
	p.until(`document.querySelector("#place").textContent.startsWith("step 0 ")`)
	p.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	p.until(`document.querySelector("#place").textContent.startsWith("step 2 ")`)
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.until(`document.querySelector("#place").textContent.startsWith("step 1 ")`)
	p.do(chromedp.KeyEvent(kb.End))
	p.until(`document.querySelector("#lamps").textContent.includes("safe")`)
	reach("#line")
	p.do(chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent("race"), chromedp.KeyEvent(kb.Enter))
	p.until(`document.title.startsWith("counter")`)
}

// TestPage_Narrow_Fits: at 360 px nothing sticks out, and everything is there.
func TestPage_Narrow_Fits(t *testing.T) {
	p := open(t, 360, fragment(bully, 2))
	for _, line := range []string{bully, "mutex --algorithm lamport --n 5", "election --algorithm zookeeper --n 4", "race"} {
		p.goTo(fragment(line, 2))
		if w := eval[float64](p, "document.documentElement.scrollWidth"); w > 360 {
			t.Errorf("%s: the page is %g px wide", line, w)
		}
		out := eval[[]string](p, `[...document.querySelectorAll("button, input, select, .card, .lamp, #happened")]
			.filter((e) => e.offsetParent && !e.closest("#chart-box") && (e.getBoundingClientRect().right > 361 || e.getBoundingClientRect().left < -1)
				&& !e.matches(".skip")).map((e) => e.id || e.className || e.textContent)`)
		if len(out) > 0 {
			t.Errorf("%s: these stick out: %v", line, out)
		}
	}
	p.goTo(fragment(bully, 1.5))
	p.click(`#underway button`)
	box := eval[[]float64](p, `(() => { const b = document.querySelector("#inspector").getBoundingClientRect(); return [b.left, b.right]; })()`)
	if box[0] < 0 || math.Ceil(box[1]) > 360 {
		t.Errorf("the menu lies from %g to %g", box[0], box[1])
	}
}
