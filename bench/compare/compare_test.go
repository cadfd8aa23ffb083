package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

func TestParsePerf(t *testing.T) {
	const good = `Events disabled
123,,syscalls:sys_enter_fdatasync,100,100.00,,
<not counted>,,syscalls:sys_enter_fsync,0,100.00,,
4,,syscalls:sys_enter_msync,100,100.00,,
0,,syscalls:sys_enter_sync_file_range,100,100.00,,
`
	if n, err := parsePerf(good); n != 127 || err != nil {
		t.Errorf("%d, %v, want 127", n, err)
	}
	for _, bad := range []string{"", "Events disabled\n", strings.Replace(good, "123", "<not supported>", 1)} {
		if n, err := parsePerf(bad); err == nil {
			t.Errorf("%q: %d, want an error", bad, n)
		}
	}
}

func TestParseTrace_LastCollection(t *testing.T) {
	const log = `time=now level=INFO msg="gc 9 @x, 1->1->999 MB, 2 MB goal"
gc 1 @0.011s 4%: 0.02+1.4+0.02 ms clock, 0.1+1.0/1.2/0.4+0.1 ms cpu, 3->4->2 MB, 4 MB goal, 0 MB stacks, 2 P
gc 2 @0.2s 4%: 0.02+1.4+0.02 ms clock, 0.1+1.0/1.2/0.4+0.1 ms cpu, 110->112->56 MB, 113 MB goal, 2 P
another line
`
	if n, err := parseTrace(log); n != 56<<20 || err != nil {
		t.Errorf("%d, %v, want 56 MiB", n, err)
	}
	if _, err := parseTrace("nothing"); err == nil {
		t.Error("no error without a line of the collector")
	}
}

func TestParseHeapInfo(t *testing.T) {
	const g1 = "123:\n garbage-first heap   total 2097152K, used 49012K [0x0, 0x1)\n" +
		"  region size 1024K, 2 young (2048K), 0 survivors (0K)\n Metaspace       used 20000K, committed 1K\n"
	if n, err := parseHeapInfo(g1); n != 49012<<10 || err != nil {
		t.Errorf("%d, %v, want 49012 KiB", n, err)
	}
	const serial = " def new generation   total 100K, used 10K [0x0\n  eden space 80K,  12% used\n" +
		" tenured generation   total 300K, used 20K [0x1\n"
	if n, err := parseHeapInfo(serial); n != 30<<10 || err != nil {
		t.Errorf("%d, %v, want 30 KiB", n, err)
	}
	if _, err := parseHeapInfo("no such process"); err == nil {
		t.Error("no error without a heap")
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := middle(c.v); got != c.want {
			t.Errorf("%v: %g, want %g", c.v, got, c.want)
		}
	}
}

func measured(perSecond float64, p50 time.Duration) *measurement {
	r := &load.Result{Elapsed: time.Second}
	r.Total.PerSecond, r.Total.Latency.P50 = perSecond, load.Micros(p50)
	r.Failover = &load.Outage{Longest: load.Micros(p50)}
	return &measurement{result: r, syncs: 100}
}

// TestComparison_Verdict_BothSidesOfEachAim: more is better or less is.
func TestComparison_Verdict_BothSidesOfEachAim(t *testing.T) {
	all, err := selected("set-64,set-1,leader-killed,get-64")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row           int
		theirs, ours  *measurement
		other, met    string
		aim, quotient string
	}{
		{0, measured(100, 0), measured(300, 0), "ZooKeeper", "yes", "at least 3 x ZooKeeper", "3.00 x"},
		{0, measured(100, 0), measured(290, 0), "ZooKeeper", "**no**", "at least 3", "2.90 x"},
		{1, measured(0, 100), measured(0, 60), "ZooKeeper", "yes", "at most 0.6 x ZooKeeper", "0.60 x"},
		{1, measured(0, 100), measured(0, 61), "ZooKeeper", "**no**", "at most 0.6", "0.61 x"},
		{2, measured(0, time.Second), measured(0, 39*time.Millisecond), "ZooKeeper", "yes", "under 40.0 ms", "0.04 x"},
		{2, measured(0, time.Second), measured(0, 40*time.Millisecond), "ZooKeeper", "**no**", "under", "0.04 x"},
		{3, measured(100, 0), measured(85, 0), "ceiling", "yes", "at least 0.85 x ceiling", "0.85 x"},
		{3, measured(100, 0), measured(84, 0), "ceiling", "**no**", "at least 0.85", "0.84 x"},
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
	picked, err := selected("set-64")
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{o: &options{}, rows: picked, results: results{}}
	for _, v := range []float64{1000, 9_999_999, 1010} {
		c.results.add(&picked[0], "ZooKeeper", measured(v, time.Millisecond))
		c.results.add(&picked[0], "zk-lite", measured(4*v, time.Millisecond))
	}
	if s := c.summary(); !strings.Contains(s,
		"| set, 64 connections | 1,010/s |  |  | 4,040/s | at least 3 x ZooKeeper | 4.00 x ZooKeeper | yes |") {
		t.Error(s)
	}
	if s := c.details(); !strings.Contains(s, "| ZooKeeper | 1,010 | 1,000 to 9,999,999 | 1.00 ms |") ||
		!strings.Contains(s, "| 0.099 |") {
		t.Error(s)
	}
}

func TestReplace_KeepsWhatStandsAround(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + markBegin + "\nold\n" + markEnd + "\nafter\n")
	if err := replace(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "before\n"+markBegin+"\nnew\n"+markEnd+"\nafter\n" {
		t.Errorf("%q", got)
	}
	write("no marks")
	if err := replace(file, "new"); err == nil {
		t.Error("no error without marks")
	}
}

// TestDocument_HasMarks: the document that a run writes to is ready for it.
func TestDocument_HasMarks(t *testing.T) {
	text, err := os.ReadFile("../../docs/BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), markBegin) != 1 || strings.Count(string(text), markEnd) != 1 {
		t.Error("docs/BENCHMARKS.md has not one pair of marks")
	}
}

func TestSelected_UnknownRow(t *testing.T) {
	if _, err := selected("set-64,nothing"); err == nil || !strings.Contains(err.Error(), "set-1, set-64") {
		t.Errorf("%v", err)
	}
	if all, err := selected(""); err != nil || len(all) != len(rows()) {
		t.Errorf("%d rows, %v", len(all), err)
	}
	if len(rows()) != 13 {
		t.Errorf("%d rows", len(rows()))
	}
}

// TestSpawn_Stop: a process that ends by itself is no trouble, and its log is
// kept.
func TestSpawn_Stop(t *testing.T) {
	p, err := spawn(t.TempDir(), []string{"WORD=hello"}, "sh", "-c", "echo $WORD")
	if err != nil {
		t.Fatal(err)
	}
	<-p.ended
	p.stop()
	if p.tail() != "hello\n" {
		t.Errorf("log %q", p.tail())
	}
}

// TestUp_ServerThatEnds: told at once, with the end of its log.
func TestUp_ServerThatEnds(t *testing.T) {
	_, err := up(context.Background(), broken{&canned{}}, t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "server 1 has ended") ||
		!strings.Contains(err.Error(), "port in use") {
		t.Errorf("%v", err)
	}
}

// broken is a system whose server ends at once.
type broken struct{ *canned }

func (broken) start(dir string, _ []string) ([]*process, []string, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, nil, err
	}
	p, err := spawn(dir, nil, "sh", "-c", "echo port in use; exit 1")
	return []*process{p}, []string{fmt.Sprintf("127.0.0.1:%d", ports[0])}, err
}
