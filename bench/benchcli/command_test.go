package benchcli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// quick are the flags of a run of a fraction of a second.
func quick(args ...string) []string {
	return append(args, "--duration", "150ms", "--warm-up", "20ms", "--interval", "40ms",
		"--connections", "8", "-o", "json")
}

// run is bench with JSON, checked for what every good run has. On a machine with other things to
// do nothing may be measured in a moment: then it takes longer, and again.
func run(t *testing.T, hosts []string, args ...string) *load.Result {
	t.Helper()
	r := measure(t, hosts, args...)
	for d := time.Second; nothingOf(r) && d < time.Minute; d *= 4 {
		r = measure(t, hosts, append(args, "--duration", d.String())...)
	}
	for _, o := range r.Ops {
		if len(o.Errors) != 0 {
			t.Errorf("%v: %s: errors %v", args, o.Name, o.Errors)
		}
		l := o.Latency
		if l.Count == 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.P9999 || l.P9999 > l.Max {
			t.Errorf("%v: %s: latencies %+v", args, o.Name, l)
		}
	}
	if r.Unanswered != 0 || r.Dropped != 0 {
		t.Errorf("%v: %d unanswered, %d dropped", args, r.Unanswered, r.Dropped)
	}
	return r
}

// measure runs bench until it could: servers that get no processor for a second lose touch with
// each other, and turn clients away.
func measure(t *testing.T, hosts []string, args ...string) *load.Result {
	t.Helper()
	out, _, err := bench(t, hosts, args...)
	for patience := time.Now().Add(time.Minute); err != nil; out, _, err = bench(t, hosts, args...) {
		if time.Now().After(patience) {
			t.Fatalf("%v: %v", args, err)
		}
	}
	r := &load.Result{}
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatalf("%v: decoding the result: %v\n%s", args, err, out)
	}
	return r
}

// nothingOf reports whether an operation was not measured at all.
func nothingOf(r *load.Result) bool {
	return slices.ContainsFunc(r.Ops, func(o load.OpResult) bool { return o.Latency.Count == 0 || o.PerSecond <= 0 })
}

// TestCommand_EveryLoad runs everything against three servers in this process,
// a fraction of a second each, and finds the tree as it was before.
func TestCommand_EveryLoad(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	hosts, _ := start(t, 3)
	before := znodes(t, hosts[0])
	for _, op := range load.Ops() {
		r := run(t, hosts, quick("--mix", op.String())...)
		if r.Ops[0].Name != op.String() || r.Ops[0].PerSecond <= 0 {
			t.Errorf("%s: %+v, want that operation at a rate above 0", op, r.Ops[0])
		}
	}
	r := run(t, hosts, quick("--mix", "70% get 20% set 5% create 5% delete", "--in-flight", "16",
		"--zipf", "1.1", "--keys", "2500", "--pids", fmt.Sprint(os.Getpid()))...)
	if len(r.Ops) != 4 || len(r.Servers) != 1 || r.Servers[0].RSS == 0 || len(r.Timeline) == 0 {
		t.Errorf("%d operations, %+v, %d samples", len(r.Ops), r.Servers, len(r.Timeline))
	}
	if gets, sets := r.Ops[0].Latency.Count, r.Ops[1].Latency.Count; gets+sets > 500 && (gets < 2*sets || gets > 6*sets) {
		t.Errorf("%d gets and %d sets, want 7 to 2", gets, sets)
	}
	r = run(t, hosts, quick("--mix", "get", "--rate", "400")...)
	if n := float64(r.Total.Latency.Count) / r.Elapsed.Seconds(); n < 370 || n > 430 {
		t.Errorf("%g requests a second, want 400", n)
	}
	for _, more := range []string{"--keep", "--reuse"} {
		r = run(t, hosts, quick("--mix", "ycsb-d", "--keys", "3", "--value-size", "64", "--in-flight", "4", more)...)
		if r.Config.Zipf != 0.99 || len(r.Ops) != 2 {
			t.Errorf("%+v, want YCSB's workload D", r.Config)
		}
	}
	r = run(t, hosts, quick("--return", "--auth", "digest:flood:secret", "--local-address", "127.0.0.2")...)
	if r.Config.Local != "127.0.0.2" || !r.Config.Return || r.Config.Auth != "" {
		t.Errorf("%+v, want the address and the return, and not the password", r.Config)
	}
	if _, _, err := bench(t, hosts, quick("--auth", "nothing:x")...); err == nil || !strings.Contains(err.Error(), "identity") {
		t.Errorf("an identity of an unknown scheme: %v, want an error about it", err)
	}
	// A window of more bytes than sockets hold, both ways.
	run(t, hosts, quick("--mix", "get,set", "--in-flight", "32", "--value-size", "20000", "--keys", "10")...)
	if after := znodes(t, hosts[0]); after != before {
		t.Errorf("%s znodes before, %s after", before, after)
	}
}

func TestCommand_OtherKinds(t *testing.T) {
	t.Parallel()
	hosts, _ := start(t, 1)
	r := run(t, hosts, quick("watch")...)
	if events, last := r.Ops[0].Latency.Count, r.Ops[1].Latency.Count; events != 8*last || last == 0 {
		t.Errorf("%d events of %d changes to 8 watchers", events, last)
	}
	r = run(t, hosts, quick("sessions")...)
	// The measured time may begin or end between the two halves of a session.
	open, ended := int(r.Ops[0].Latency.Count), int(r.Ops[1].Latency.Count)
	if off := open - ended; open == 0 || off > 8 || off < -8 {
		t.Errorf("%d sessions opened, %d closed, by 8 loops", open, ended)
	}
	if r = run(t, hosts, quick("sessions", "--ephemeral")...); len(r.Ops) != 1 || r.Ops[0].Name != "session" {
		t.Errorf("%+v, want sessions with an ephemeral as one operation", r.Ops)
	}
	// Each of 8 sessions pings every 20 ms, for 150 ms, if the machine lets it.
	r = run(t, hosts, quick("idle", "--session-timeout", "60ms", "--pids", fmt.Sprint(os.Getpid()))...)
	if pings := r.Total.PerSecond * r.Elapsed.Seconds(); pings < 8 || pings > 60 || len(r.Servers) != 1 {
		t.Errorf("%g pings, want up to 60", pings)
	}
	before := znodes(t, hosts[0])
	r = run(t, hosts, quick("fill", "--keys", "1500")...)
	if r.Total.PerSecond <= 0 {
		t.Errorf("%+v, want a rate above 0", r.Total)
	}
	// The prefix, new, two directories.
	var a, b int
	if _, err := fmt.Sscan(before+" "+znodes(t, hosts[0]), &a, &b); err != nil || b-a != 1504 {
		t.Errorf("%d znodes before and %d after a fill of 1500 (%v)", a, b, err)
	}
}

// TestFailover_LeaderStops: clients of the leader come back elsewhere, clients
// of the others stay, and the pause is found.
func TestFailover_LeaderStops(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	hosts, stop := start(t, 3)
	cfg := load.Default()
	cfg.Hosts, cfg.Connections, cfg.WarmUp = hosts, 12, 0
	// Time for the leader to stop, which a busy machine needs before its clients are dropped.
	cfg.Mix, cfg.Duration = load.Mix{{Op: load.Set, Weight: 1}}, 5*time.Second
	var leader int
	res, err := load.Failover(t.Context(), cfg, func(ctx context.Context) (string, error) {
		var err error
		if leader, err = load.Leader(ctx, hosts); err != nil {
			return "", err
		}
		go stop(leader)
		return hosts[leader], nil
	}, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	f := res.Failover
	if f.Killed != hosts[leader] || f.DroppedOfKilled < 4 || f.KilledAt < 200*time.Millisecond {
		t.Errorf("%+v, want at least 4 clients of %s dropped", f, hosts[leader])
	}
	if f.Longest <= 0 || f.Clients.Count != 12 || f.Clients.Max < f.Longest/2 || res.Dropped < 4 {
		t.Errorf("%+v, %d dropped", f, res.Dropped)
	}
}

// With its defaults, bench failed on a server with its defaults: it wanted 64 connections, watch 1000
// and idle 5000, of 60 that one address may have.
func TestCommand_Defaults_FitAServersDefaults(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"--mix=get", "watch", "sessions", "idle", "--connections=61"} {
		// A server each: one that is busy counts the last run's connections for a moment longer.
		host := zklitetest.Start(t, zklitetest.WithSetting("maxClientCnxns", "60")).ConnectString()
		_, _, err := bench(t, []string{host}, kind, "--duration", "50ms", "--warm-up", "0s", "-q")
		tooMany := kind == "--connections=61"
		if (err != nil) != tooMany || tooMany && !strings.Contains(err.Error(), "maxClientCnxns") {
			t.Errorf("bench %s: got error %v, want one about maxClientCnxns: %v", kind, err, tooMany)
		}
	}
}

// TestCommand_Text_Progress: for people, with reports in files.
func TestCommand_Text_Progress(t *testing.T) {
	t.Parallel()
	hosts, _ := start(t, 1)
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.svg")
	out, progress, err := bench(t, hosts, "--duration", "150ms", "--warm-up", "50ms", "--interval", "40ms",
		"--connections", "2", "--html", page, "--svg", picture)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "p99.99") || !strings.Contains(out, "get, 2 connections to "+hosts[0]) {
		t.Errorf("printed:\n%s", out)
	}
	if !strings.Contains(progress, "/s  p50") || !strings.Contains(progress, "(warm-up)") {
		t.Errorf("progress:\n%s", progress)
	}
	for file, want := range map[string]string{page: "<!DOCTYPE html>", picture: "<svg "} {
		if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %v, it begins with %.40q, want %s", file, err, text, want)
		}
	}
	if _, progress, err := bench(t, hosts, quick("-q")...); err != nil || progress != "" {
		t.Errorf("with -q: %v, %q", err, progress)
	}
}

// TestIdle_AnEphemeralEach: as many ephemerals as sessions while these live, and none when they are closed.
func TestIdle_AnEphemeralEach(t *testing.T) {
	t.Parallel()
	hosts, _ := start(t, 1)
	ephemerals := func() string {
		text, err := load.FourLetter(t.Context(), hosts[0], "mntr")
		if err != nil {
			t.Error(err) // also called beside the test
		}
		_, rest, _ := strings.Cut(text, "zk_ephemerals_count\t")
		count, _, _ := strings.Cut(rest, "\n")
		return count
	}
	during := ""
	cfg := load.Default()
	cfg.Hosts, cfg.Connections, cfg.WarmUp, cfg.Duration = hosts, 70, 0, 100*time.Millisecond
	cfg.Measured = func(bool) { during = ephemerals() }
	if _, err := load.Idle(t.Context(), cfg, true); err != nil {
		t.Fatal(err)
	}
	if during != "70" {
		t.Errorf("%s ephemerals, want 70", during)
	}
	if n := ephemerals(); n != "0" {
		t.Errorf("%s ephemerals after the end of their sessions, want 0", n)
	}
}

func TestCommand_BadInput(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"operation \"fetch\" is unknown": {"--mix", "fetch"},
		"--output \"xml\"":               {"-o", "xml"},
		"connections 0":                  {"-c", "0"},
		"prefix \"/\"":                   {"--prefix", "/"},
		"connecting":                     {"-s", "127.0.0.1:1"},
		"assign requested address":       {"--local-address", "192.0.2.1"},
		"1 servers, 0 pids":              {"failover", "--kill-leader-after", "1s"},
		"unknown flag":                   {"--nothing"},
	} {
		_, _, err := bench(t, []string{"127.0.0.1:1"}, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestCommand_Interrupt: what was measured until then is shown, and the tree is
// cleaned up.
func TestCommand_Interrupt(t *testing.T) {
	t.Parallel()
	hosts, _ := start(t, 1)
	before := znodes(t, hosts[0])
	ctx, cancel := context.WithCancel(t.Context())
	cfg := load.Default()
	cfg.Hosts, cfg.Connections, cfg.WarmUp, cfg.Duration = hosts, 4, 0, time.Hour
	cfg.Measured = func(begun bool) { cancel() }
	res, err := load.Run(ctx, cfg)
	if err == nil || !strings.Contains(err.Error(), "interrupted") || res == nil {
		t.Errorf("result %v, %v, want one, and that it was interrupted", res, err)
	}
	if after := znodes(t, hosts[0]); after != before {
		t.Errorf("%s znodes before, %s after", before, after)
	}
}
