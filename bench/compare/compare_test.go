package compare

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

func measured(perSecond float64, p50 time.Duration) *measurement {
	r := &load.Result{Elapsed: time.Second}
	r.Total.PerSecond, r.Total.Latency.P50 = perSecond, load.Micros(p50)
	r.Total.Latency.P99, r.Total.Latency.P999 = load.Micros(2*p50), load.Micros(4*p50)
	r.Failover = &load.Outage{Longest: load.Micros(p50)}
	return &measurement{result: r, syncs: 100}
}

// TestComparison_Verdict_BothSidesOfEachAim: more is better or less is.
func TestComparison_Verdict_BothSidesOfEachAim(t *testing.T) {
	all := selected(serverRows(), []string{"set-64", "set-1", "leader-killed", "get-64", "set-rate"})
	for _, c := range []struct {
		row           int
		theirs, ours  *measurement
		other, met    string
		aim, quotient string
	}{
		{1, measured(100, 0), measured(300, 0), "ZooKeeper", "yes", "at least 3 x ZooKeeper", "3.00 x"},
		{1, measured(100, 0), measured(290, 0), "ZooKeeper", "**no**", "at least 3", "2.90 x"},
		{0, measured(0, 100), measured(0, 60), "ZooKeeper", "yes", "at most 0.6 x ZooKeeper", "0.60 x"},
		{0, measured(0, 100), measured(0, 61), "ZooKeeper", "**no**", "at most 0.6", "0.61 x"},
		{3, measured(0, 100), measured(0, 100), "ZooKeeper", "yes", "at most 1 x ZooKeeper", "1.00 x"},
		{3, measured(0, 100), measured(0, 101), "ZooKeeper", "**no**", "at most 1", "1.01 x"},
		{4, measured(0, time.Second), measured(0, 39*time.Millisecond), "ZooKeeper", "yes", "under 40.0 ms", "0.04 x"},
		{4, measured(0, time.Second), measured(0, 40*time.Millisecond), "ZooKeeper", "**no**", "under", "0.04 x"},
		{2, measured(100, 0), measured(85, 0), "noop", "yes", "at least 0.85 x noop", "0.85 x"},
		{2, measured(100, 0), measured(84, 0), "noop", "**no**", "at least 0.85", "0.84 x"},
	} {
		r := &all[c.row]
		cmp := &comparison{results: results{}}
		if aim, ratio, met := cmp.verdict(r); ratio != "" || met != "" || aim == "" {
			t.Errorf("%s, nothing measured: %q %q %q", r.id, aim, ratio, met)
		}
		cmp.results.add(r, c.other, c.theirs)
		cmp.results.add(r, "zk-lite", c.ours)
		aim, ratio, met := cmp.verdict(r)
		if met != c.met || !strings.HasPrefix(aim, c.aim) || !strings.HasPrefix(ratio, c.quotient) {
			t.Errorf("%s: %q %q %q, want %q %q %q", r.id, aim, ratio, met, c.aim, c.quotient, c.met)
		}
	}
}

// TestComparison_Tables_MediansOfRounds: a wild round does not move the table.
func TestComparison_Tables_MediansOfRounds(t *testing.T) {
	picked := selected(serverRows(), []string{"set-64"})
	c := &comparison{o: &system.Options{}, rows: picked, names: system.Known(), results: results{}}
	for _, v := range []float64{1000, 9_999_999, 1010} {
		c.results.add(&picked[0], "ZooKeeper", measured(v, time.Millisecond))
		c.results.add(&picked[0], "zk-lite", measured(4*v, time.Millisecond))
	}
	if s := c.summary(); !strings.Contains(s,
		"| set, 64 connections | **1,010/s**<br>p99 2.00 ms, p99.9 4.00 ms<br>0.099 syncs an answer |  |  | **4,040/s**<br>"+
			"p99 2.00 ms, p99.9 4.00 ms<br>0.025 syncs an answer | at least 3 x ZooKeeper | 4.00 x ZooKeeper | yes | "+
			"1.00 x, 1.00 x: not worse |") {
		t.Errorf("%s, want the medians 1,010/s and 4,040/s", s)
	}
	if s := c.details(); !strings.Contains(s, "| ZooKeeper | 1,010 | 1,000 to 9,999,999 | 1.00 ms |") ||
		!strings.Contains(s, "| 0.099 |") {
		t.Errorf("%s, want the median 1,010 and 0.099 syncs an answer", s)
	}
}

// TestComparison_Summary_AtARate: the figure is the tail, beside the rate that was kept.
func TestComparison_Summary_AtARate(t *testing.T) {
	picked := selected(serverRows(), []string{"set-rate"})
	c := &comparison{o: &system.Options{}, rows: picked, names: system.Known(), results: results{}}
	cfg, err := c.config(&picked[0], &system.Ensemble{})
	if err != nil || cfg.Rate != 2000 || cfg.InFlight != load.OpenInFlight {
		t.Errorf("%+v, %v, want 2,000 a second in an open loop", cfg, err)
	}
	c.results.add(&picked[0], "zk-lite", measured(2000, time.Millisecond))
	if s := c.summary(); !strings.Contains(s,
		"| set, 2,000 a second on 64 connections, p99 |  |  |  | **2.00 ms**<br>2,000/s<br>p99 2.00 ms, p99.9 4.00 ms<br>") {
		t.Errorf("%s, want the tail beside the rate", s)
	}
}

// TestComparison_Pairs_RoundByRound: a ratio is that of one round, a round that one side
// lacks counts for neither, and the verdict is by the other build's spread.
func TestComparison_Pairs_RoundByRound(t *testing.T) {
	picked := selected(serverRows(), []string{"set-64", "set-1"})
	c := &comparison{o: &system.Options{Builds: []system.Build{{Name: "base"}, {Name: "older"}}}, rows: picked,
		results: results{}}
	add := func(row int, name string, round int, perSecond float64, p50 time.Duration) {
		m := measured(perSecond, p50)
		m.round = round
		c.results.add(&picked[row], name, m)
	}
	for round, rates := range [][2]float64{{100, 110}, {200, 200}, {400, 440}} {
		add(1, "base", round+1, rates[0], time.Millisecond)
		add(1, "zk-lite", round+1, rates[1], time.Millisecond)
		add(0, "base", round+1, 1, time.Millisecond)
		add(0, "zk-lite", round+1, 1, 2*time.Millisecond)
	}
	add(1, "zk-lite", 4, 1_000_000, time.Millisecond)
	text := c.pairs()
	for _, want := range []string{
		"| set, 64 connections | 200/s (100/s to 400/s) | 200/s (110/s to 440/s) | **1.10** (1.00 to 1.10) |  | same |",
		"| set, 1 connection, p50 | 1.00 ms (1.00 ms to 1.00 ms) | 2.00 ms (2.00 ms to 2.00 ms) | **2.00** (2.00 to 2.00) |  | **worse** |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestSelected_InTheirOwnOrder(t *testing.T) {
	if two := selected(serverRows(), []string{"leader-killed", "set-1"}); len(two) != 2 || two[0].id != "set-1" {
		t.Errorf("not in their own order: %v", two)
	}
	if len(serverRows()) != 17 || len(httpRows()) != 8 || len(clientRows()) != 16 {
		t.Errorf("%d, %d, %d rows", len(serverRows()), len(httpRows()), len(clientRows()))
	}
}

// TestComparison_Try_StalledPeer: a run in which connections ended is begun again
// and told of, one that never succeeds is given up, and neither ends the comparison.
func TestComparison_Try_StalledPeer(t *testing.T) {
	picked := selected(serverRows(), []string{"set-1", "set-64"})
	peer := system.NewNoop(&system.ZKLite{})
	c := &comparison{o: &system.Options{}, rows: picked, names: system.Known(), results: results{}}
	runs := 0
	err := c.try(t.Context(), peer, &picked[1], 2, func() (*measurement, error) {
		runs++
		m := measured(100, 1)
		if runs < 3 {
			m.result.Dropped = 1
		}
		return m, nil
	})
	if err != nil || runs != 3 || len(c.results["set-64"]["noop"]) != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}
	err = c.try(t.Context(), peer, &picked[0], 2, func() (*measurement, error) {
		return nil, errors.New("no connection has lasted: i/o timeout\nand more")
	})
	if err != nil || len(c.results["set-1"]["noop"]) != 0 {
		t.Errorf("%v, %v, want no error and no result of a row that is given up", err, c.results["set-1"])
	}
	text := c.again()
	if strings.Count(text, "begun again on fresh servers") != 4 || !strings.Contains(text,
		"- set-1, noop, round 2: given up for this round (`no connection has lasted: i/o timeout`)\n") {
		t.Errorf("%s, want four rows begun again and one given up", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.try(ctx, peer, &picked[0], 1, func() (*measurement, error) { return nil, ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

// TestClientTable_RatioOfMedians: both sides of the aim, and what is missing left empty.
func TestClientTable_RatioOfMedians(t *testing.T) {
	c := &comparison{suite: Clients, o: &system.Options{}, rows: clientRows(), names: []string{"zk-lite"}, results: results{}}
	add := func(id string, rates ...float64) {
		for _, v := range rates {
			c.results.add(&row{id: id}, "zk-lite", measured(v, time.Millisecond))
		}
	}
	add("get-64-go-zookeeper", 100, 9_999_999, 101)
	add("get-64-zk-lite", 202, 1, 203)
	add("set-1-go-zookeeper", 100)
	add("set-1-zk-lite", 100)
	text := c.clientTable()
	for _, want := range []string{"| 2.00 x | yes |", "| 1.00 x | **no** |", "| zk-lite | get, 1024 in flight |  |  |  |  |  |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestSummary_HTTP_BesideEtcd: there is no aim, and the ratio is that of medians.
func TestSummary_HTTP_BesideEtcd(t *testing.T) {
	c := &comparison{suite: HTTP, o: &system.Options{}, rows: httpRows(), names: []string{"etcd", "zk-lite"}, results: results{}}
	for _, v := range []float64{100, 9_999_999, 101} {
		c.results.add(&row{id: "get-64"}, "etcd", measured(v, time.Millisecond))
		c.results.add(&row{id: "get-64"}, "zk-lite", measured(3*v, time.Millisecond))
	}
	if text := c.summary(); !strings.Contains(text, "| 3.00 x etcd |\n") ||
		!strings.Contains(text, "| PUT, 1 connection |  |  |  |\n") {
		t.Errorf("%s, want a ratio of 3.00 to etcd, and an empty row of PUT", text)
	}
}

// TestYCSB_Rates_ShareOfTheYardstick: ZooKeeper's throughput, or the slowest system's.
func TestYCSB_Rates_ShareOfTheYardstick(t *testing.T) {
	of := map[string][]*measurement{"ZooKeeper": {measured(1000, 1), measured(3000, 1)}, "etcd": {measured(500, 1)},
		"zk-lite": {measured(9000, 1)}}
	for _, c := range []struct {
		slowest bool
		without string
		name    string
		most    float64
	}{{false, "", "ZooKeeper", 2000}, {true, "", "etcd", 500}, {false, "ZooKeeper", "etcd", 500}} {
		all := maps.Clone(of)
		delete(all, c.without)
		cmp := &comparison{o: &system.Options{OfSlowest: c.slowest}, names: system.Known()}
		if name, most := cmp.yardstick(all); name != c.name || most != c.most {
			t.Errorf("slowest %t, without %q: %s with %g, want %s with %g", c.slowest, c.without, name, most, c.name, c.most)
		}
	}
}

// TestYCSB_Operations_MostOfAnyRound: each operation has its medians and the most of any round.
func TestYCSB_Operations_MostOfAnyRound(t *testing.T) {
	picked := selected(ycsbRows(), []string{"ycsb-c", "ycsb-c-most"})
	c := &comparison{o: &system.Options{}, rows: picked, names: system.Known(), results: results{}}
	for _, d := range []time.Duration{time.Millisecond, 9 * time.Millisecond, 2 * time.Millisecond} {
		m := measured(100, d)
		get := m.result.Total
		get.Name, get.Errors = "get", map[string]uint64{"no node": 2}
		m.result.Ops = []load.OpResult{get}
		c.results.add(&picked[1], "etcd", m)
	}
	if text := c.operations(); !strings.Contains(text, "| YCSB C (get) at a rate | etcd | get | 100 | 2.00 ms (9.00 ms) | "+
		"4.00 ms (18.0 ms) | 8.00 ms (36.0 ms) | 0 ns (0 ns) | 6 |") {
		t.Errorf("%s, want medians, the most in brackets, and 6 errors", text)
	}
}
