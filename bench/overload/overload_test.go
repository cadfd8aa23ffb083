package overload

import (
	"flag"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// result is one with a p99, half of it as p50 and twice as p99.9.
func result(perSecond float64, p99 time.Duration) *load.Result {
	r := &load.Result{}
	r.Total.PerSecond = perSecond
	r.Total.Latency = load.Latency{P50: load.Micros(p99 / 2), P99: load.Micros(p99), P999: load.Micros(2 * p99),
		Max: load.Micros(3 * p99)}
	return r
}

// TestTable_RatiosAreThoseOfARound: medians of the rounds with the most in brackets, sums of what should not be, and
// no line for a system that was not measured.
func TestTable_RatiosAreThoseOfARound(t *testing.T) {
	var all []*round
	for i, beside := range []time.Duration{20 * time.Millisecond, 90 * time.Millisecond, 30 * time.Millisecond} {
		r := &round{System: system.Ours, Capacity: 100, Alone: result(10, 10*time.Millisecond),
			Beside: result(9, beside), Flood: result(80, time.Second),
			Lives: liveness{Asked: 5, Late: i, Longest: load.Micros(time.Duration(i) * time.Second)}}
		r.Flood.Config.Rate, r.Flood.Dropped = 1000, 2
		r.Beside.Unanswered, r.Beside.Dropped, r.Beside.Expired = 4, 1, i
		r.Beside.Total.Errors = map[string]uint64{"connection loss": 1}
		r.Beside.Servers = []load.Process{{PeakRSS: int64(i) << 20}, {PeakRSS: 1 << 20}}
		all = append(all, r)
	}
	text := table([]string{system.Apache, system.Ours}, all).String()
	for _, want := range []string{"| zk-lite | 100/s | 1,000/s, 80.0/s, 6 |",
		"15.0 ms (45.0 ms), 30.0 ms (90.0 ms), 60.0 ms (180 ms), 90.0 ms (270 ms)",
		"| 3.00 (9.00), 3.00 (9.00), 3.00 (9.00) |", "| 12, 3 | 3, 3 | 0 B, 2.00 MiB | 2.00 s, 3 of 15 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, system.Apache) {
		t.Errorf("a line of a system that was not measured:\n%s", text)
	}
}

func TestRun_WithoutALoadThereIsNothing(t *testing.T) {
	s := &Scenario{}
	f := flag.NewFlagSet("", flag.ContinueOnError)
	s.Flags(f)
	if err := f.Parse([]string{"-flood", "0"}); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), nil, &system.Options{}, s); err == nil || !strings.Contains(err.Error(), "above 0") {
		t.Errorf("%v, want an error about -flood", err)
	}
}

// TestFlood_End_WhatItSaid: a flood that could not begin says why.
func TestFlood_End_WhatItSaid(t *testing.T) {
	f := &flood{cmd: exec.Command("sh", "-c", "echo no such server >&2; exit 1")}
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.words
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.end(); err == nil || !strings.Contains(err.Error(), "no such server") {
		t.Errorf("%v, want what the program said", err)
	}
}
