package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// Section is the part of the results that Run writes.
const Section = "failover"

// Run measures all requested configurations, and saves the results so far after each. One that fails, as without
// root where it needs that, costs only itself.
func Run(ctx context.Context, site *system.Site, o *system.Options, scenario *Scenario) error {
	all, err := configs(o, scenario)
	if err != nil {
		return err
	}
	logs, err := newKeeper(scenario.logs)
	if err != nil {
		return err
	}
	head := system.Head{Began: time.Now(), How: fmt.Sprintf("%d faults each, seed %d", o.Rounds, o.Seed),
		End: errors.New("still running")}
	outages, returns := outageTable(), catchUpTable()
	var lines []string // of all faults
	document := func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "## Suite %s\n%s", Section, site.Head(&head))
		if slices.ContainsFunc(all, func(c *config) bool { return c.fault != faultReturn }) {
			fmt.Fprintln(&b, outages)
		}
		if slices.ContainsFunc(all, func(c *config) bool { return c.fault == faultReturn }) {
			fmt.Fprintln(&b, returns)
		}
		fmt.Fprintf(&b, "The logs of the longest gaps are in %s.\n\n", logs.dir)
		return b.String()
	}
	failed := 0
	for _, c := range all {
		s, err := site.System(c.system, c.Builds)
		if err != nil {
			return err
		}
		if version, err := s.Version(); err != nil {
			return err
		} else if version = s.Name() + ": " + version; !slices.Contains(head.Versions, version) {
			head.Versions = append(head.Versions, version)
		}
		fmt.Fprintf(os.Stderr, "%s, seed %d\n", c, c.Seed)
		r := &runner{c: c, system: s, dir: site.Dir, logs: logs, rng: rand.New(rand.NewPCG(c.Seed, 3))}
		measured, err := r.run(ctx)
		lines = append(lines, measured.lines...)
		if c.fault == faultReturn {
			returns.Row(catchUpRow(c, measured.returns)...)
		} else {
			outages.Row(row(c, measured.outages)...)
		}
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
		}
		if ctx.Err() != nil {
			break
		}
		if err := site.Save(Section, head.Began, document(), lines, head.End); err != nil {
			return err
		}
	}
	head.End = context.Cause(ctx)
	if failed > 0 {
		head.End = errors.Join(head.End, fmt.Errorf("%d of %d configurations ended with an error", failed, len(all)))
	}
	return errors.Join(head.End, site.Save(Section, head.Began, document(), lines, context.Cause(ctx)))
}

// The aim of a quiet machine: a gap may last for this many of its syncs, and this time.
const (
	aimSyncs = 12
	aimRest  = 100 * time.Millisecond
)

// campaigned are the servers that have started real elections.
func (o *outage) campaigned() (servers int) {
	for _, n := range o.campaigns {
		if n > 0 {
			servers++
		}
	}
	return servers
}

// perServer lists numbers that are not 0, by server.
func perServer(counts []int) string {
	var parts []string
	for i, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", i+1, n))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, " ")
}

// line is printed for an outage.
func (o *outage) line(c *config) string {
	var servers []string
	for _, i := range o.servers {
		servers = append(servers, fmt.Sprint(i+1))
	}
	text := fmt.Sprintf("%3d  %s of server %s: gap %s, syncs in it %s, elections %s", o.n, c.fault,
		strings.Join(servers, " and "), report.Time(o.gap.Length()), perServer(o.syncs), perServer(o.campaigns))
	if o.campaigned() > 1 {
		text += " (duel)"
	}
	if later := o.gap.From.Sub(o.fault); later > 0 {
		text += fmt.Sprintf("; it began %s after the fault", report.Time(later))
	}
	text += fmt.Sprintf("; all back after %s", report.Time(o.back))
	if o.dropped > 0 || o.expired > 0 {
		text += fmt.Sprintf("; %d connections of survivors dropped, %d sessions expired", o.dropped, o.expired)
	}
	if o.lost > 0 {
		text += fmt.Sprintf("; %d requests of foreign clients without an answer, %d of them thrown away by the "+
			"kernel, %d done all the same", o.lost, o.unread, o.done)
	}
	if o.failed != [vias]int{} {
		text += fmt.Sprintf("; operations failed: %d foreign, %d Go, %d HTTP, as %s", o.failed[viaWire],
			o.failed[viaGo], o.failed[viaHTTP], o.why[0])
	}
	if o.sentAway > 0 {
		text += fmt.Sprintf("; %d answers of 503", o.sentAway)
	}
	for _, wrong := range o.wrong {
		text += "\n     WRONG: " + wrong
	}
	return text
}

// text is kept beside the logs.
func (o *outage) text(c *config) string {
	const clock = "15:04:05.000000"
	text := fmt.Sprintf("%s, seed %d\n%s\nfault at %s, done after %v\nlast acknowledgement before the gap at %s, "+
		"first one after it at %s\n", c, c.Seed, o.line(c), o.fault.Format(clock), o.took,
		o.gap.From.Format(clock), o.gap.To.Format(clock))
	for i, d := range o.delays {
		text += fmt.Sprintf("server %d: %d syncs within the gap, %v added to them\n", i+1, o.syncs[i], d)
	}
	return text
}

// slowest is the delay of the slowest disk.
func (c *config) slowest() (slowest time.Duration) {
	for _, p := range c.Sync {
		slowest = max(slowest, p.Delay)
	}
	return slowest
}

// percentile is that of a sorted list that is not empty.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// outageTable has a row for each configuration whose fault interrupts service.
func outageTable() *report.Table {
	return report.NewTable("configuration", "faults", "p50", "p90", "p99", "max", "duels",
		"syncs in the gap, all servers: median, most", "gap - 12 syncs at most 100 ms",
		"survivors' connections dropped", "sessions expired",
		"foreign requests without an answer: all, thrown away by the kernel, done all the same",
		"operations failed: foreign, Go, HTTP; 503", "writes lost or done twice")
}

// row has the cells of a configuration.
func row(c *config, all []*outage) []any {
	var gaps []time.Duration
	var syncs []int
	duels, met, dropped, expired, wrong, lost, unread, done, away := 0, 0, 0, 0, 0, 0, 0, 0, 0
	var failed [vias]int
	for _, o := range all {
		gaps = append(gaps, o.gap.Length())
		sum := 0
		for _, n := range o.syncs {
			sum += n
		}
		syncs = append(syncs, sum)
		if o.campaigned() > 1 {
			duels++
		}
		if o.gap.Length()-aimSyncs*c.slowest() <= aimRest {
			met++
		}
		dropped, expired, wrong = dropped+o.dropped, expired+o.expired, wrong+len(o.wrong)
		lost, unread, done, away = lost+o.lost, unread+o.unread, done+o.done, away+o.sentAway
		for via, n := range o.failed {
			failed[via] += n
		}
	}
	if len(all) == 0 {
		return []any{c, 0}
	}
	slices.Sort(gaps)
	slices.Sort(syncs)
	duel := fmt.Sprint(duels)
	if c.system == system.Apache {
		duel = "not known"
	}
	return []any{c, len(all),
		report.Time(percentile(gaps, 50)), report.Time(percentile(gaps, 90)), report.Time(percentile(gaps, 99)),
		report.Time(gaps[len(gaps)-1]), duel, fmt.Sprintf("%d, %d", syncs[len(syncs)/2], syncs[len(syncs)-1]),
		fmt.Sprintf("%d of %d", met, len(all)), dropped, expired, fmt.Sprintf("%d, %d, %d", lost, unread, done),
		fmt.Sprintf("%d, %d, %d; %d", failed[viaWire], failed[viaGo], failed[viaHTTP], away), wrong}
}
