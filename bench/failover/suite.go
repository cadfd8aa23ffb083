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

	"github.com/zk-lite/zk-lite/bench/system"
)

// Section is the part of the results that Run writes.
const Section = "failover"

// Run measures all configurations that were asked for, and saves after each what there is. One that fails, as without
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
