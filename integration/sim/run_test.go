package sim

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/check"
)

var (
	flagSeed     = flag.Uint64("sim.seed", 0, "the first seed; 0: 1")
	flagSeeds    = flag.Int("sim.seeds", 0, "how many seeds; 0: 8, or one if -sim.seed is given")
	flagServers  = flag.Int("sim.servers", 0, "3 or 5 servers; 0: by the seed")
	flagDuration = flag.Duration("sim.duration", 40*time.Second, "virtual time of the faults")
	flagClients  = flag.Int("sim.clients", 5, "clients")
	flagRepeat   = flag.Int("sim.repeat", 1, "run each seed so often")
	flagLog      = flag.Bool("sim.log", false, "print the servers' logs")
	flagProcs    = flag.Int("sim.procs", 0, "processes that run seeds; 0: one for each processor; 1: none but this one")
	flagWithin   = flag.Duration("sim.within", 0, "begin no seed after so much real time; 0: no limit")
	flagWorker   = flag.Bool("sim.worker", false, "internal: run the seeds that come on the standard input")
)

const (
	// progressEvery is after how many seeds a long run says that it lives.
	progressEvery = 100
	// stuckAfter is how much real time one seed may take. A seed takes a second at most, and half a minute
	// where many share a processor; one that never ends shall say where it is.
	stuckAfter = 3 * time.Minute
	// maxTail is how much of a worker's output is kept for the case that it dies.
	maxTail = 1 << 20
	// garbagePercent lets more garbage gather than Go does (100): the ensembles are small, and a fifth of
	// the time went into collecting.
	garbagePercent = 400
	// memoryLimit has the collector work harder when a process gets larger all the same, bytes.
	memoryLimit = 1 << 30
)

// TestSim runs seeds: without flags always the same few, so that who builds zk-lite is not the one
// to find what thousands of others have not. Chance and threads belong to a whole process, so one
// process runs one seed at a time, and several processes share the seeds.
func TestSim(t *testing.T) {
	debug.SetGCPercent(garbagePercent)
	debug.SetMemoryLimit(memoryLimit)
	if *flagWorker {
		work(t)
		return
	}
	first, n := *flagSeed, *flagSeeds
	switch {
	case n > 0:
	case first == 0:
		n = 8
	default:
		n = 1
	}
	first = max(first, 1)
	r := &run{t: t, total: newOutcome(), start: time.Now(), seeds: make(chan uint64)}
	procs := min(*flagProcs, n**flagRepeat)
	if *flagProcs == 0 {
		procs = min(runtime.GOMAXPROCS(0), n**flagRepeat)
	}
	if *flagLog || testing.CoverMode() != "" {
		procs = 1 // the log goes where it can be seen, and what is counted is this process
	}
	go func() {
		defer close(r.seeds)
		for seed := first; seed < first+uint64(n); seed++ {
			for range *flagRepeat {
				if *flagWithin > 0 && time.Since(r.start) > *flagWithin {
					return
				}
				r.seeds <- seed
			}
		}
	}()
	if procs == 1 {
		for seed := range r.seeds {
			out := simulate(t, optionsOf(seed), seed)
			r.note(seed, &out)
		}
	} else {
		var all sync.WaitGroup
		for range procs {
			all.Go(r.share)
		}
		all.Wait()
	}
	r.say(first, n)
}

// run is seeds on their way.
type run struct {
	t     *testing.T
	start time.Time
	seeds chan uint64

	mu     sync.Mutex // protects the fields below
	total  outcome
	failed []uint64 // seeds
}

// note counts what came of a seed, and reports what is wrong.
func (r *run) note(seed uint64, out *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.add(out)
	if len(out.Violations) > 0 {
		r.failed = append(r.failed, seed)
		report(r.t, seed, out.Violations)
	}
	if n := r.total.Seeds; n%progressEvery == 0 {
		r.t.Logf("%d seeds in %v, %v of virtual time, %d operations", n,
			time.Since(r.start).Round(time.Second), r.total.Virtual.Round(time.Second), r.total.Ops)
	}
}

// share gives seeds to a process, and to another one when that has died of one.
func (r *run) share() {
	for {
		seed, more := <-r.seeds
		if !more {
			return
		}
		if err := r.employ(seed); err != nil {
			r.mu.Lock()
			r.t.Error(err)
			r.mu.Unlock()
		}
	}
}

// employ starts a process for a seed and those that come after it. An error names the seed that has
// ended it.
func (r *run) employ(seed uint64) error {
	results, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer results.Close()
	said := &tail{}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSim$", "-test.timeout=0", "-sim.worker",
		"-sim.servers="+strconv.Itoa(*flagServers), "-sim.clients="+strconv.Itoa(*flagClients),
		"-sim.duration="+flagDuration.String())
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, []*os.File{theirs}
	orders, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a process for seed %d: %w", seed, err)
	}
	theirs.Close()
	lines := bufio.NewReader(results)
	for more := true; more; seed, more = <-r.seeds {
		watchdog := time.AfterFunc(stuckAfter, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
		out := newOutcome()
		_, err := fmt.Fprintln(orders, seed)
		if err == nil {
			var line []byte
			if line, err = lines.ReadBytes('\n'); err == nil {
				err = json.Unmarshal(line, &out)
			}
		}
		watchdog.Stop()
		if err != nil {
			orders.Close()
			r.mu.Lock()
			r.failed = append(r.failed, seed)
			r.mu.Unlock()
			return fmt.Errorf("seed %d ended its process: %w, %w\n%s\n%s", seed, err, cmd.Wait(), said, replay(seed))
		}
		r.note(seed, &out)
	}
	orders.Close()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("a process that had run all its seeds: %w\n%s", err, said)
	}
	return nil
}

// work runs the seeds that come on the standard input, and writes what came of them to file 3.
func work(t *testing.T) {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.NewFile(3, "results"))
	for in.Scan() {
		seed, err := strconv.ParseUint(in.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		result := simulate(t, optionsOf(seed), seed)
		if err := out.Encode(&result); err != nil {
			t.Fatal(err)
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // protects the field below
	last []byte
}

// Write implements io.Writer.
func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = append(w.last, b...)
	if len(w.last) > 2*maxTail {
		w.last = slices.Clone(w.last[len(w.last)-maxTail:])
	}
	return len(b), nil
}

var _ io.Writer = (*tail)(nil)

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.last)
}

// say sums a run up.
func (r *run) say(first uint64, n int) {
	a, took := &r.total, time.Since(r.start)
	r.t.Logf("seeds %d..%d, %d runs in %v: %v virtual time, %d operations (%d without an answer), %d judged by "+
		"porcupine in %d groups (%d undecided), %d changes, %d events, %d holds of a lock, %d watches "+
		"set again, %d operations about ACLs, %d znodes that expired; sessions: %d alive at the end, %d closed, %d expired; longest recovery %v; %d ended with raft's stuck transfer", first,
		first+uint64(n)-1, a.Seeds, took.Round(time.Second), a.Virtual.Round(time.Second), a.Ops, a.Unknown,
		a.Linear.Ops, a.Linear.Groups, a.Linear.Undecided, a.Changes, a.Events, a.Holds, a.Again, a.Rights, a.Expired, a.Ends[check.Alive],
		a.Ends[check.Closed], a.Ends[check.Expired], a.Healed.Round(time.Millisecond), a.Stuck)
	r.t.Logf("each real second: %.1f seeds, %.0f s of virtual time, %.0f operations",
		float64(a.Seeds)/took.Seconds(), a.Virtual.Seconds()/took.Seconds(), float64(a.Ops)/took.Seconds())
	for _, k := range slices.Sorted(maps.Keys(a.Counts)) {
		r.t.Logf("  %6d %s", a.Counts[k], k)
	}
	if len(r.failed) > 0 { // again, where the end of a long log is all that is kept
		r.t.Errorf("see above for these seeds: %d", r.failed)
	}
}

// report prints what is wrong and how to see it again.
func report(t *testing.T, seed uint64, list []check.Violation) {
	t.Helper()
	for i, v := range list {
		if i == 12 {
			t.Logf("... and %d more", len(list)-i)
			break
		}
		t.Errorf("seed %d: %v", seed, v)
	}
	t.Errorf("to run it again: %s", replay(seed))
}

// replay is how to run a seed again.
func replay(seed uint64) string {
	opt := optionsOf(seed)
	return fmt.Sprintf("run it again: go test ./integration/sim -run TestSim -sim.seed=%d -sim.servers=%d "+
		"-sim.clients=%d -sim.duration=%v -sim.repeat=20", seed, opt.servers, opt.clients, opt.duration)
}
