package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/zk-lite/zk-lite/lab/ensemble"
	"github.com/zk-lite/zk-lite/lab/serve"
	"github.com/zk-lite/zk-lite/lab/trace"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// TestPage_RealServers repeats a story of the simulator on three servers with one button, and faults of the leader with
// the form.
func TestPage_RealServers(t *testing.T) {
	servers := strings.Join(zklitetest.Start(t, zklitetest.WithServers(3)).Addrs(), ",")
	p := openAt(t, serverOf(t, serve.New(serve.Options{
		Ensemble: func(ctx context.Context, words []string) (trace.Trace, error) {
			e, err := ensemble.ParseExperiment(words)
			if err != nil {
				return trace.Trace{}, err
			}
			return ensemble.Runner{Servers: servers}.Trace(ctx, e)
		},
	})), 1280, "s=18-zookeeper:0&"+fragment("election --algorithm zookeeper-herd --n 4 --crash 1@8", 0))
	p.click("#real")
	p.settled()
	p.wantLine("ensemble --fault kill --n 4 --herd")
	if at := p.text("#time"); !strings.HasSuffix(at, " ms") {
		t.Errorf("the time of real servers is shown as %q, want milliseconds", at)
	}
	if !eval[bool](p, `document.querySelector("#story").hidden`) {
		t.Error("a story of the simulator still stands above a run of real servers")
	}
	p.click("#last")
	if said := p.text("#counters"); !strings.Contains(said, "watch events3 of 3") {
		t.Errorf("three of four watch the leader that is killed; the counters say %q", said)
	}
	if n := p.text("#lamps"); !strings.Contains(n, "safe") || strings.Contains(n, "NOT") {
		t.Errorf("the lamps say %q", n)
	}
	p.do(chromedp.Evaluate(`{ document.querySelector("#option-fault").closest("details").open = true;
		const f = document.getElementById("option-fault"); f.value = "cut"; f.dispatchEvent(new Event("change")); }`, nil))
	p.settled()
	p.wantLine("ensemble --n 4 --herd --fault cut")
	p.click("#last")
	if cards := p.text("#processes"); strings.Count(cards, "LEADS") != 1 {
		t.Errorf("the processes at the end: %q", cards)
	}
	p.wantNoViolation("a run of real servers")
	p.run("ensemble --crash 1@2")
	if said := p.text("#error"); !strings.Contains(said, "the simulator's") {
		t.Errorf("the page says %q", said)
	}
}
