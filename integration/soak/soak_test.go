//go:build soak

package soak_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/integration/cluster"
)

// The environment variables that a run reads; the Makefile sets them.
const (
	durationVariable = "ZK_LITE_SOAK_DURATION" // a Go duration
	seedVariable     = "ZK_LITE_SEED"
	serversVariable  = "ZK_LITE_SOAK_SERVERS" // how many
	reportVariable   = "ZK_LITE_SOAK_REPORT"  // a directory for the report and bad histories
)

const (
	defaultDuration = 35 * time.Second
	defaultServers  = 3
	// windowLength is how long faults come and go before everything is healed and
	// judged.
	windowLength = 20 * time.Second
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestSoak runs windows until the time is over, or a guarantee is broken.
func TestSoak(t *testing.T) {
	duration, seed := settings(t)
	servers := servers(t)
	t.Logf("to run it again: %s=%v %s=%d %s=%d", durationVariable, duration, seedVariable, seed,
		serversVariable, servers)
	rng := rand.New(rand.NewPCG(seed, 0))
	o := cluster.Options{Config: map[string]string{"snapCount": "400"}}
	n := &nemesis{t: t, rng: rng}
	if cluster.Privileged() {
		n.network = cluster.NewNetwork(t, servers, seed)
		o.Network = n.network
		o.Disks = cluster.NewDisks(t, servers, seed)
	} else {
		t.Logf("%s is set: NO FAULTS OF THE NETWORK AND THE DISKS", cluster.UnprivilegedVariable)
	}
	n.e = cluster.Start(t, servers, o)
	r := &report{begin: time.Now(), seed: seed, servers: servers, faults: map[string]int{}}
	defer r.write(t)
	for number := 0; time.Since(r.begin) < duration && !t.Failed(); number++ {
		n.window(r, number, seed)
	}
	if n.network != nil {
		r.network = n.network.Counts()
	}
	for _, d := range o.Disks {
		r.disks.Add(d.Counts())
	}
	r.log(t)
}

// window runs one window of faults.
func (n *nemesis) window(r *report, number int, seed uint64) {
	w := open(n.t, n.e, number, seed)
	offset := w.rec.begin.Sub(r.begin)
	n.last(500, 1500)
	for time.Since(w.rec.begin) < windowLength {
		f := n.pick()
		from := time.Since(r.begin)
		n.t.Logf("%v: %s", from.Round(time.Millisecond), f.name)
		f.do(n)
		r.fault(f.name, from, time.Since(r.begin))
		n.last(200, 2500)
	}
	n.heal()
	n.last(500, 1000)
	w.judge(r, number, seed, offset)
}

// judge closes a window and adds it to the report.
func (w *window) judge(r *report, number int, seed uint64, offset time.Duration) {
	w.t.Helper()
	f := w.close()
	r.window(w, f, offset)
	w.t.Logf("window %d: %d operations, %d judged for linearizability in %d groups (%d undecided), "+
		"%d events, %d changes, stream resumed %d times, %d sessions, %d holds of the lock", number,
		len(f.history.Ops), f.linear.Ops, f.linear.Groups, f.linear.Undecided, len(f.history.Events),
		len(f.history.Changes), f.resumed, len(f.history.Sessions), len(f.history.Holds))
	for _, v := range f.violations {
		w.t.Errorf("window %d, seed %d: the guarantee %q is broken: %s", number, seed, v.Guarantee, v.What)
	}
	if len(f.violations) > 0 {
		keep(w.t, number, f.history)
	}
}

// pick is the next fault.
func (n *nemesis) pick() fault {
	for {
		all := faults()
		if f := all[n.rng.IntN(len(all))]; n.network != nil || !f.needs {
			return f
		}
	}
}

// keep writes down a history that breaks a guarantee.
func keep(t *testing.T, number int, h *check.History) {
	t.Helper()
	path := filepath.Join(reportDir(t), "window-"+strconv.Itoa(number)+".json")
	text, err := json.Marshal(h)
	if err == nil {
		err = os.WriteFile(path, text, 0o640)
	}
	t.Logf("the history is in %s (%v)", path, err)
}

func reportDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(reportVariable)
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "zk-lite-soak")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	return dir
}

func settings(t *testing.T) (time.Duration, uint64) {
	t.Helper()
	duration, seed := defaultDuration, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv(durationVariable); text != "" {
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", durationVariable, err)
		}
	}
	if text := os.Getenv(seedVariable); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is %q: %v", seedVariable, text, err)
		}
	}
	return duration, seed
}

// servers is how many the ensemble has.
func servers(t *testing.T) int {
	t.Helper()
	text := os.Getenv(serversVariable)
	if text == "" {
		return defaultServers
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 3 || n > 9 {
		t.Fatalf("%s is %q; want a number from 3 to 9", serversVariable, text)
	}
	return n
}
