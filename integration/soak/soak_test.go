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
	"github.com/zk-lite/zk-lite/integration/workload"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// The environment variables that a run reads; the Makefile sets them.
const (
	durationVariable = "ZK_LITE_SOAK_DURATION" // a Go duration
	serversVariable  = "ZK_LITE_SOAK_SERVERS"  // how many
	reportVariable   = "ZK_LITE_SOAK_REPORT"   // a directory for the report and bad histories
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
	t.Logf("for %v, with %d servers", duration, servers)
	rng := rand.New(rand.NewPCG(seed, 0))
	secret := filepath.Join(t.TempDir(), "secret") // lets replaced disks in
	if err := os.WriteFile(secret, []byte("the secret of this soak and of no other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := cluster.Options{Config: map[string]string{"snapCount": "400", "peer.joinSecretFile": secret}}
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
	w := workload.Open(n.t, n.e, number, seed)
	n.last(500, 1500)
	for time.Since(w.Begin()) < windowLength {
		f := n.pick()
		from := time.Since(r.begin)
		n.t.Logf("%v: %s", from.Round(time.Millisecond), f.name)
		f.do(n)
		r.fault(f.name, from, time.Since(r.begin))
		n.last(200, 2500)
	}
	n.heal()
	n.last(500, 1000)
	n.judge(w, r, number, seed)
}

// judge closes a window and adds it to the report.
func (n *nemesis) judge(w *workload.Window, r *report, number int, seed uint64) *workload.Findings {
	n.t.Helper()
	f := w.Close()
	r.window(f, w.Begin().Sub(r.begin))
	n.t.Logf("window %d: %v", number, f)
	for _, v := range f.Violations {
		n.t.Errorf("window %d, seed %d: the guarantee %q is broken: %s", number, seed, v.Guarantee, v.What)
	}
	if len(f.Violations) > 0 {
		keep(n.t, number, f.History)
	}
	return f
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
	duration, first := defaultDuration, seed.Of(t)
	var err error
	if text := os.Getenv(durationVariable); text != "" {
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", durationVariable, err)
		}
	}
	return duration, first
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
