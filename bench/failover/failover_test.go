package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

func TestParse_WhatIsWrongIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		"-servers 3 -at-once 2":               "a majority must survive",
		"-system etcd":                        "zk-lite and zookeeper",
		"-fault storm":                        "kill",
		"-sync 5":                             "5ms",
		"-plan none":                          "issue",
		"-system zookeeper -fault drain":      "does not have it",
		"-kills 0":                            "from 1",
		"-extra-setting raft.electionTimeout": "KEY=VALUE",
		"kill":                                "only flags",
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", args, err, want)
		}
	}
	o, err := parse(strings.Fields("-sync 15ms/tail,1ms -servers 5 -at-once 2 -load 48 -busy -kills 2"), io.Discard)
	if err != nil || len(o.sync) != 2 || o.slowest() != 15*time.Millisecond ||
		o.String() != "zk-lite, 5 servers, sync +15ms/tail,1ms, 2 at once, 48 writers more, busy machine" {
		t.Errorf("%v, %v", o, err)
	}
}

// TestPlans_AllPossible: no plan has a configuration that parse would refuse.
func TestPlans_AllPossible(t *testing.T) {
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for name, plan := range plans() {
		seen := map[string]bool{}
		for _, change := range plan {
			c := o.config
			change(&c)
			if err := c.check(); err != nil || seen[c.String()] {
				t.Errorf("plan %s: %s: twice, or %v", name, &c, err)
			}
			seen[c.String()] = true
		}
	}
	if len(o.sync) != 1 || o.sync[0] != (slowdisk.Profile{}) {
		t.Errorf("a plan has changed what others share: %v", o.sync)
	}
}

// TestCampaigns_RealElectionsOnly: pre-votes are none.
func TestCampaigns_RealElectionsOnly(t *testing.T) {
	const line = `time=x level=DEBUG msg="%s" subsystem=raft term=3 id=1` + "\n"
	got := campaigns([][]byte{[]byte(fmt.Sprintf(line+line, "voting for self", "voting for self")),
		[]byte(fmt.Sprintf(line, "pre-voting for self")), nil})
	if !slices.Equal(got, []int{2, 0, 0}) {
		t.Errorf("%v", got)
	}
}

func TestZxid(t *testing.T) {
	if n, err := zxid("Mode: follower\nZxid: 0x20000000a\nNode count: 5\n"); n != 0x20000000a || err != nil {
		t.Errorf("%#x, %v", n, err)
	}
	for _, wrong := range []string{"", "Zxid: none"} {
		if n, err := zxid(wrong); err == nil {
			t.Errorf("%q: %#x", wrong, n)
		}
	}
}

// TestCatchUpRow_RatioOfEachReturn: the median of the ratios, not the ratio of medians.
func TestCatchUpRow_RatioOfEachReturn(t *testing.T) {
	c := &config{system: zkLite, servers: 3, fault: faultReturn, atOnce: 1, sync: []slowdisk.Profile{{}}}
	var all []*catchUp
	for _, p99 := range [][2]int64{{10, 12}, {20, 40}, {10, 15}} {
		one := &catchUp{}
		one.without.P99, one.back.P99 = load.Micros(p99[0]*1e6), load.Micros(p99[1]*1e6)
		all = append(all, one)
	}
	all[0].wrong = []string{"lost"}
	const want = "| zk-lite, 3 servers, sync +0s, return | 3 | 10.0 ms | 0 ns | 15.0 ms | 0 ns | 1.50, 2.00 | 2 of 3 | 1 |\n"
	if got := catchUpRow(c, all); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := catchUpRow(c, nil); strings.Count(got, "|") != strings.Count(want, "|") {
		t.Error(got)
	}
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
	c := &config{system: zkLite, fault: faultKill, servers: 3}
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
		t.Fatalf("%v, %v", dirs, err)
	}
	for _, dir := range dirs {
		var ms int
		if _, err := fmt.Sscanf(filepath.Base(dir), "%dms", &ms); err != nil || ms != 1 && ms < 115 {
			t.Errorf("%s: %v", dir, err)
		}
		log, err := os.ReadFile(filepath.Join(dir, "server-2.log"))
		text, err2 := os.ReadFile(filepath.Join(dir, "outage.txt"))
		if string(log) != "two" || !strings.Contains(string(text), "kill of server 1") || err != nil || err2 != nil {
			t.Errorf("%q, %q, %v, %v", log, text, err, err2)
		}
	}
}

func TestRow_PercentilesAndDuels(t *testing.T) {
	c := &config{system: zkLite, servers: 3, fault: faultKill, atOnce: 1, sync: []slowdisk.Profile{{Delay: 5 * time.Millisecond}}}
	var all []*outage
	for n := 1; n <= 10; n++ {
		all = append(all, after(n, 20*n))
	}
	all[3].campaigns = []int{0, 1, 2}
	all[9].dropped, all[9].wrong = 2, []string{"lost"}
	all[8].lost, all[8].unread, all[8].done = 3, 1, 2
	all[8].failed, all[8].why = [vias]int{0, 4, 5}, []string{"refused"}
	all[7].sentAway = 6
	got := row(c, all)
	const want = "| zk-lite, 3 servers, sync +5ms | 10 | 100 ms | 180 ms | 200 ms | 200 ms | 1 | 6, 10 | 8 of 10 | 2 | 0 | 3, 1, 2 | 0, 4, 5; 6 | 1 |\n"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text := row(c, nil); strings.Count(text, "|") != strings.Count(want, "|") {
		t.Errorf("nothing measured: %s", text)
	}
	if text := all[3].line(c); !strings.Contains(text, "elections 2:1 3:2 (duel)") {
		t.Error(text)
	}
}
