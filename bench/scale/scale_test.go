package scale

import (
	"strings"
	"testing"
	"time"
)

const (
	us   = time.Microsecond
	long = 100 * time.Millisecond
)

// recorded is a load of bench/results/2026-11-23.md. The generator's time is what was left of two processors.
func recorded(w workload, perSecond float64, p50, servers, generator time.Duration, perEntry float64) *measured {
	return &measured{workload: w, outcome: outcome{perSecond, p50, perEntry}, Servers: servers, Generator: generator,
		Leader: 0.4}
}

func recordedCosts() costs {
	return calibrate([]*measured{
		recorded(calibration[0], 1766, 507*us, 576*us, 100*us, 1),
		recorded(calibration[1], 44_060, 5490*us, 25_600, 19_800, 88),
		recorded(calibration[2], 217_081, 3910*us, 5660, 3500, 375),
		recorded(calibration[3], 96_356, 153*us, 10_900, 9900, 0),
		recorded(calibration[4], 1_723_424, 511*us, 681, 480, 0),
	})
}

func TestCalibrate_EntriesAndCommands(t *testing.T) {
	c := recordedCosts()
	for name, x := range map[string]struct{ have, want time.Duration }{
		"an entry": {c.Entry, 556 * us}, "a write": {c.Single.Write, 19_300}, "one of many": {c.Piped.Write, 4200},
	} {
		if d := float64(x.have) / float64(x.want); d < 0.98 || d > 1.02 {
			t.Errorf("%s takes %v, want %v", name, x.have, x.want)
		}
	}
}

// The simulation foretells loads that are not among those that calibrated it, as they were measured on the same day.
func TestSimulate_LoadsThatWereMeasured(t *testing.T) {
	c := recordedCosts()
	for _, x := range []struct {
		w    workload
		want float64
	}{
		{workload{64, 1, 1}, 26_166}, {workload{64, 1, 0.1}, 64_202},
		{workload{256, 1, 1}, 44_060}, {workload{32, 32, 1}, 217_081}, {workload{32, 32, 0}, 1_723_424}, // these are
	} {
		o := c.simulate(x.w, 2, long)
		if ratio := o.PerSecond / x.want; ratio < 0.8 || ratio > 1.25 {
			t.Errorf("%s: %.0f/s simulated, %.0f/s measured", x.w.title(), o.PerSecond, x.want)
		}
		if o != c.simulate(x.w, 2, long) {
			t.Errorf("%s: another outcome the second time", x.w.title())
		}
	}
}

// An entry takes all that waits, and no more than it may.
func TestSimulate_Entries(t *testing.T) {
	c := recordedCosts()
	if o := c.simulate(workload{1, 1, 1}, 2, long); o.PerEntry != 1 {
		t.Errorf("%g commands in an entry of one client, want 1", o.PerEntry)
	}
	if o := c.simulate(workload{64, 256, 1}, 64, long); o.PerEntry > mostCommands || o.PerEntry < mostCommands/2 {
		t.Errorf("%g commands in an entry of 16,384 requests, want up to %d", o.PerEntry, mostCommands)
	}
}

func TestLimits_FirstBound(t *testing.T) {
	c := recordedCosts()
	slow := c
	slow.Piped.Write *= 10
	large := machine{1000, 1e6, 64 << 30}
	for _, x := range []struct {
		c   *costs
		m   machine
		rtt time.Duration
		by  string
	}{
		{&slow, machine{1, 1e6, 64 << 30}, 0, "the leader's processors"}, {&c, large, 0, "one goroutine applies"},
		{&c, machine{1000, 0.1, 64 << 30}, 0, "the leader's network"},
		{&c, large, 100 * time.Millisecond, "one entry at a time"},
	} {
		if b := x.c.writes(x.m, 3, x.rtt); b.by != x.by {
			t.Errorf("%+v: %.0f/s by %s, want by %s", x.m, b.most, b.by, x.by)
		}
	}
	if text := c.limits().String(); strings.Count(text, "\n") < 12 {
		t.Errorf("too few limits:\n%s", text)
	}
}
