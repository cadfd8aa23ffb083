//go:build soak

package soak_test

import (
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/integration/workload"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
)

// report is the result of a run.
type report struct {
	begin   time.Time
	seed    uint64
	servers int
	faults  map[string]int
	bands   []band
	seconds []second
	network network.Counts
	disks   disk.Counts

	windows, ops, unknown, judged, groups, undecided int
	events, changes, resumed, sessions, holds        int
	ended                                            map[check.End]int
	violations                                       []check.Violation
	latencies                                        []time.Duration
}

// band is a fault on the time axis; judged time is drawn as a band, too.
type band struct {
	name     string
	from, to time.Duration
}

// second is what clients were answered in one second.
type second struct {
	worked      bool // clients worked
	ok, unknown int
	latencies   []time.Duration
}

func (r *report) fault(name string, from, to time.Duration) {
	r.faults[name]++
	r.bands = append(r.bands, band{name, from, to})
}

func (r *report) at(d time.Duration) *second {
	for int(d/time.Second) >= len(r.seconds) {
		r.seconds = append(r.seconds, second{})
	}
	return &r.seconds[d/time.Second]
}

// window adds a window that began at an offset.
func (r *report) window(f *workload.Findings, offset time.Duration) {
	r.windows++
	h := f.History
	r.ops += len(h.Ops)
	r.judged += f.Linear.Ops
	r.groups += f.Linear.Groups
	r.undecided += f.Linear.Undecided
	r.events += len(h.Events)
	r.changes += len(h.Changes)
	r.resumed += f.Resumed
	r.sessions += len(h.Sessions)
	r.holds += len(h.Holds)
	r.violations = append(r.violations, f.Violations...)
	if r.ended == nil {
		r.ended = map[check.End]int{}
	}
	for _, s := range h.Sessions {
		r.ended[s.Ended]++
	}
	for _, a := range f.Answers {
		s := r.at(offset + a.At)
		if !a.OK {
			s.unknown++
			r.unknown++
			continue
		}
		s = r.at(offset + a.At + a.Took)
		s.ok++
		s.latencies = append(s.latencies, a.Took)
		r.latencies = append(r.latencies, a.Took)
	}
	// The last second is not a whole one.
	for d := offset; d < offset+windowLength; d += time.Second {
		r.at(d).worked = true
	}
}

func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(p*float64(len(all))))]
}

// rows are the figures of a run.
func (r *report) rows() [][2]string {
	worked, silent := 0, 0
	for i := range r.seconds {
		if r.seconds[i].worked {
			worked++
			if r.seconds[i].ok == 0 {
				silent++
			}
		}
	}
	injected := 0
	for _, n := range r.faults {
		injected += n
	}
	number := func(n int) string { return fmt.Sprint(n) }
	rows := [][2]string{
		{"seed", fmt.Sprint(r.seed)}, {"servers", number(r.servers)}, {"time", time.Since(r.begin).Round(time.Second).String()},
		{"windows", number(r.windows)}, {"operations", number(r.ops)},
		{"of them without an answer", number(r.unknown)},
		{"operations judged by porcupine", number(r.judged)},
		{"in groups of znodes", number(r.groups)}, {"of them undecided in 20 s", number(r.undecided)},
		{"watch events", number(r.events)}, {"changes followed", number(r.changes)},
		{"streams resumed", number(r.resumed)}, {"sessions", number(r.sessions)},
		{"of them expired", number(r.ended[check.Expired])},
		{"of them closed", number(r.ended[check.Closed])}, {"locks held", number(r.holds)},
		{"latency, median", percentile(r.latencies, 0.5).String()},
		{"latency, 99 %", percentile(r.latencies, 0.99).String()},
		{"latency, 99.9 %", percentile(r.latencies, 0.999).String()},
		{"seconds of work", number(worked)}, {"of them without any answer", number(silent)},
		{"packets", fmt.Sprintf("%+v", r.network)},
		{"disks", fmt.Sprintf("%+v", r.disks)}, {"faults", number(injected)},
	}
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		rows = append(rows, [2]string{"fault: " + name, number(r.faults[name])})
	}
	return append(rows, [2]string{"guarantees broken", number(len(r.violations))})
}

func (r *report) log(t *testing.T) {
	for _, row := range r.rows() {
		t.Logf("%-34s %s", row[0], row[1])
	}
}

// The size of the charts, in pixels.
const (
	chartHeight = 160
	perSecond   = 4
)

// write draws the report: one file, without anything from elsewhere.
func (r *report) write(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><meta charset="utf-8"><title>zk-lite soak, seed %d</title>
<style>body{font:14px sans-serif;margin:2em}td{padding:1px 1em 1px 0}svg{border:1px solid #ccc;display:block}
div{overflow-x:auto}.bad{color:#b00}</style><h1>zk-lite soak</h1>`, r.seed)
	for _, v := range r.violations {
		fmt.Fprintf(&b, `<p class="bad">%s</p>`, html.EscapeString(v.String()))
	}
	var ok, lost, median, high []float64
	for i := range r.seconds {
		s := &r.seconds[i]
		ok, lost = append(ok, float64(s.ok)), append(lost, float64(s.unknown))
		median = append(median, percentile(s.latencies, 0.5).Seconds()*1000)
		high = append(high, percentile(s.latencies, 0.99).Seconds()*1000)
	}
	r.chart(&b, "Answers a second (blue) and requests without an answer (red); faults are shaded, "+
		"point at them", []line{{"#06c", ok}, {"#c00", lost}})
	r.chart(&b, "Latency in ms by second: median (green), 99 % (orange)",
		[]line{{"#080", median}, {"#f80", high}})
	b.WriteString("<h2>Figures</h2><table>")
	for _, row := range r.rows() {
		fmt.Fprintf(&b, "<tr><td>%s<td>%s", html.EscapeString(row[0]), html.EscapeString(row[1]))
	}
	b.WriteString("</table>")
	path := filepath.Join(reportDir(t), fmt.Sprintf("soak-%d.html", r.seed))
	if err := os.WriteFile(path, []byte(b.String()), 0o640); err != nil {
		t.Error(err)
	}
	t.Logf("the report is %s", path)
}

// line is one curve, a value a second.
type line struct {
	colour string
	values []float64
}

func (r *report) chart(b *strings.Builder, title string, lines []line) {
	top := 1.0
	for _, l := range lines {
		for _, v := range l.values {
			top = max(top, v)
		}
	}
	width := len(r.seconds) * perSecond
	fmt.Fprintf(b, `<h2>%s</h2><p>top: %.0f; a second is %d pixels</p><div><svg width="%d" height="%d">`,
		html.EscapeString(title), top, perSecond, width, chartHeight)
	for _, x := range r.bands {
		fmt.Fprintf(b, `<rect x="%.1f" width="%.1f" y="0" height="%d" fill="#ddd"><title>%s, %v to %v</title></rect>`,
			x.from.Seconds()*perSecond, max(1, (x.to-x.from).Seconds()*perSecond), chartHeight,
			html.EscapeString(x.name), x.from.Round(time.Millisecond), x.to.Round(time.Millisecond))
	}
	for _, l := range lines {
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" points="`, l.colour)
		for i, v := range l.values {
			fmt.Fprintf(b, "%d,%.1f ", i*perSecond, chartHeight-v/top*(chartHeight-4))
		}
		b.WriteString(`"/>`)
	}
	b.WriteString("</svg></div>")
}
