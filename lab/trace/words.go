package trace

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Upkeep names the timers that only keep something alive.
func Upkeep(timer string) bool {
	return timer == "ping" || timer == "beat" || timer == "lease" || timer == "retry" ||
		len(timer) > 3 && timer[:3] == "fd/"
}

// Describe puts a fact in words and returns the new status of the process: "-" for none, or
// empty if it is unchanged.
func Describe(p sim.ID, f sim.Fact) (text, status string) {
	term := ""
	if f.Number > 0 {
		term = fmt.Sprintf(" in term %d", f.Number)
	}
	switch f.Name {
	case "leader":
		switch f.About {
		case sim.None:
			return fmt.Sprintf("%v holds no leader%s", p, term), "-"
		case p, sim.Service:
			return fmt.Sprintf("%v LEADS%s", p, term), "LEADS"
		}
		return fmt.Sprintf("%v takes %v as leader%s", p, f.About, term), f.About.String()
	case "winner":
		return fmt.Sprintf("%v wins phase %d", p, f.Number), ""
	case "request":
		return fmt.Sprintf("%v asks", p), "asks"
	case "enter":
		return fmt.Sprintf("%v ENTERS", p), "INSIDE"
	case "exit":
		return fmt.Sprintf("%v leaves", p), "-"
	case "suspect":
		return fmt.Sprintf("%v suspects %v", p, f.About), ""
	case "trust":
		return fmt.Sprintf("%v trusts %v again", p, f.About), ""
	}
	if f.About == sim.None {
		return fmt.Sprintf("%v %s", p, f.Name), ""
	}
	return fmt.Sprintf("%v: %s %v", p, f.Name, f.About), ""
}

// The kinds of a Span.
const (
	Down   = "down"
	Leads  = "leads"
	Asks   = "asks"
	Inside = "inside"
)

// Spans returns the times in which processes were down, led by their own account, asked
// for the critical section, or were inside, in the order in which they began.
func Spans(records []sim.Record, end time.Duration) []Span {
	spans := []Span{}
	open := map[sim.ID]map[string]int{} // places in spans
	begin := func(r sim.Record, what string) {
		if _, already := open[r.Process][what]; already {
			return
		}
		if open[r.Process] == nil {
			open[r.Process] = map[string]int{}
		}
		open[r.Process][what] = len(spans)
		spans = append(spans, Span{Process: r.Process, What: what, From: sim.Units(r.At),
			Until: sim.Units(end), Open: true})
	}
	over := func(r sim.Record, whats ...string) {
		for _, what := range whats {
			if at, ok := open[r.Process][what]; ok {
				spans[at].Until, spans[at].Open = sim.Units(r.At), false
				delete(open[r.Process], what)
			}
		}
	}
	for _, r := range records {
		switch r.Kind {
		case sim.Crashed:
			over(r, Leads, Asks, Inside)
			begin(r, Down)
		case sim.Recovered:
			over(r, Down)
		case sim.Noted:
			switch r.Fact.Name {
			case "leader":
				if r.Fact.About == r.Process || r.Fact.About == sim.Service {
					begin(r, Leads)
				} else {
					over(r, Leads)
				}
			case "request":
				begin(r, Asks)
			case "enter":
				over(r, Asks)
				begin(r, Inside)
			case "exit":
				over(r, Inside)
			}
		}
	}
	return spans
}
