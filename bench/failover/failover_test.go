package failover

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// parse is what the flags of this suite and of all suites become.
func parse(args string) ([]*config, error) {
	o, scenario := &system.Options{Rounds: 30}, &Scenario{}
	f := flag.NewFlagSet("failover", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.Flags(f)
	scenario.Flags(f)
	if err := f.Parse(strings.Fields(args)); err != nil {
		return nil, err
	}
	return configs(o, scenario)
}

func TestConfigs_WhatIsWrongIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		"-servers 3 -at-once 2":           "a majority must survive",
		"-systems etcd":                   "zk-lite, ZooKeeper",
		"-fault storm":                    "kill",
		"-plan none":                      "issue",
		"-systems ZooKeeper -fault drain": "does not have it",
		"-load -1":                        "nothing below 0",
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", args, err, want)
		}
	}
	all, err := parse("-sync 15ms/tail,1ms -servers 5 -at-once 2 -load 48 -busy -rounds 2")
	if err != nil || len(all) != 1 || len(all[0].Sync) != 2 || all[0].slowest() != 15*time.Millisecond ||
		all[0].String() != "zk-lite, 5 servers, sync +15ms/tail,1ms, 2 at once, 48 writers more, busy machine" {
		t.Errorf("%v, %v, want one of 5 servers with two kinds of disks", all, err)
	}
}

// TestPlans_AllPossible: no plan has a configuration that would be refused.
func TestPlans_AllPossible(t *testing.T) {
	for name := range plans() {
		all, err := parse("-plan " + name)
		if err != nil {
			t.Errorf("plan %s: %v", name, err)
		}
		seen := map[string]bool{}
		for _, c := range all {
			if seen[c.String()] {
				t.Errorf("plan %s: %s: twice", name, c)
			}
			seen[c.String()] = true
		}
	}
	if all, err := parse(""); err != nil || len(all) != 1 || len(all[0].Sync) != 1 || all[0].Sync[0] != (slowdisk.Profile{}) {
		t.Errorf("%v, %v, want one configuration whose syncs are counted: a plan has changed what others share", all, err)
	}
}

// TestCampaigns_RealElectionsOnly: pre-votes are none.
func TestCampaigns_RealElectionsOnly(t *testing.T) {
	const line = `time=x level=DEBUG msg="%s" subsystem=raft term=3 id=1` + "\n"
	got := campaigns([][]byte{[]byte(fmt.Sprintf(line+line, "voting for self", "voting for self")),
		[]byte(fmt.Sprintf(line, "pre-voting for self")), nil})
	if !slices.Equal(got, []int{2, 0, 0}) {
		t.Errorf("%v, want 2, 0, 0", got)
	}
}

// TestCatchUpRow_RatioOfEachReturn: the median of the ratios, not the ratio of medians.
func TestCatchUpRow_RatioOfEachReturn(t *testing.T) {
	c := &config{system: system.Ours, Scenario: Scenario{servers: 3, fault: faultReturn, atOnce: 1},
		Options: system.Options{Sync: []slowdisk.Profile{{}}}}
	var all []*catchUp
	for _, p99 := range [][2]int64{{10, 12}, {20, 40}, {10, 15}} {
		one := &catchUp{}
		one.without.P99, one.back.P99 = load.Micros(p99[0]*1e6), load.Micros(p99[1]*1e6)
		all = append(all, one)
	}
	all[0].wrong = []string{"lost"}
	const want = "| zk-lite, 3 servers, sync +0s, return | 3 | 10.0 ms | 0 ns | 15.0 ms | 0 ns | 1.50, 2.00 | 2 of 3 | 1 |\n"
	if got := shown(catchUpTable(), catchUpRow(c, all)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := shown(catchUpTable(), catchUpRow(c, nil)); strings.Count(got, "|") != strings.Count(want, "|") {
		t.Errorf("nothing measured: %s, want as many cells", got)
	}
}

// shown is the row of a table.
func shown(t *report.Table, cells []any) string {
	t.Row(cells...)
	_, row, _ := strings.Cut(t.String(), "---|\n")
	return row
}

// after is an outage with a gap of so many milliseconds.
func after(n, ms int) *outage {
	from := time.Unix(1_000_000, 0)
	return &outage{n: n, servers: []int{0}, fault: from, syncs: []int{0, n}, delays: []time.Duration{0, 0},
		campaigns: []int{0, 1, 0}, logs: [][]byte{[]byte("one"), []byte("two")},
		gap: load.Gap{From: from, To: from.Add(time.Duration(ms) * time.Millisecond)}}
}

// TestKeeper_LongestGaps: ten of them, and all in which something was wrong.
func TestKeeper_LongestGaps(t *testing.T) {
	k, err := newKeeper(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &config{system: system.Ours, Scenario: Scenario{fault: faultKill, servers: 3}}
	wrong := after(1, 1)
	wrong.wrong = []string{"a write was lost"}
	if err := k.keep(c, wrong); err != nil {
		t.Fatal(err)
	}
	for n := range 25 {
		if err := k.keep(c, after(n, 100+(n*7)%25)); err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(k.dir, "*"))
	if err != nil || len(dirs) != keptGaps+1 {
		t.Fatalf("%v, %v, want %d directories", dirs, err, keptGaps+1)
	}
	for _, dir := range dirs {
		var ms int
		if _, err := fmt.Sscanf(filepath.Base(dir), "%dms", &ms); err != nil || ms != 1 && ms < 115 {
			t.Errorf("%s: %v, want a gap from 115 ms, or the one that was wrong", dir, err)
		}
		log, err := os.ReadFile(filepath.Join(dir, "server-2.log"))
		text, err2 := os.ReadFile(filepath.Join(dir, "outage.txt"))
		if string(log) != "two" || !strings.Contains(string(text), "kill of server 1") || err != nil || err2 != nil {
			t.Errorf("%q, %q, %v, %v, want the log and the kill of server 1", log, text, err, err2)
		}
	}
}

func TestRow_PercentilesAndDuels(t *testing.T) {
	c := &config{system: system.Ours, Scenario: Scenario{servers: 3, fault: faultKill, atOnce: 1},
		Options: system.Options{Sync: []slowdisk.Profile{{Delay: 5 * time.Millisecond}}}}
	var all []*outage
	for n := 1; n <= 10; n++ {
		all = append(all, after(n, 20*n))
	}
	all[3].campaigns = []int{0, 1, 2}
	all[9].dropped, all[9].wrong = 2, []string{"lost"}
	all[8].lost, all[8].unread, all[8].done = 3, 1, 2
	all[8].failed, all[8].why = [vias]int{0, 4, 5}, []string{"refused"}
	all[7].sentAway = 6
	got := shown(outageTable(), row(c, all))
	const want = "| zk-lite, 3 servers, sync +5ms | 10 | 100 ms | 180 ms | 200 ms | 200 ms | 1 | 6, 10 | 8 of 10 | 2 | 0 | 3, 1, 2 | 0, 4, 5; 6 | 1 |\n"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text := shown(outageTable(), row(c, nil)); strings.Count(text, "|") != strings.Count(want, "|") {
		t.Errorf("nothing measured: %s", text)
	}
	if text := all[3].line(c); !strings.Contains(text, "elections 2:1 3:2 (duel)") {
		t.Errorf("%s, want a duel of the servers 2 and 3", text)
	}
}
