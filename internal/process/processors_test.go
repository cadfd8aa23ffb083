package process

import (
	"log/slog"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// phase is how many cores a process uses, and for how long.
type phase struct {
	cores float64
	lasts time.Duration
}

// The process has all processors at first, one when it has needed little for two seconds, and all again
// within one check of needing a whole one, which is half a second when it was idle.
func TestAdjust_Loads(t *testing.T) {
	for name, c := range map[string]struct {
		phases []phase
		want   []time.Duration // of the changes, by turns to one and to all
	}{
		"idle":                {[]phase{{0, time.Minute}}, []time.Duration{2 * time.Second}},
		"busy":                {[]phase{{3, time.Minute}}, nil},
		"half busy keeps all": {[]phase{{0.7, time.Minute}}, nil},
		"half busy keeps one": {[]phase{{0, 3 * time.Second}, {0.7, time.Minute}}, []time.Duration{2 * time.Second}},
		"a burst": {
			[]phase{{0, 3 * time.Second}, {1, time.Second}, {0.1, time.Minute}},
			[]time.Duration{2 * time.Second, 3500 * time.Millisecond, 6 * time.Second},
		},
		"more and more": {
			[]phase{{0.3, 3 * time.Second}, {1, time.Minute}},
			[]time.Duration{2 * time.Second, 3100 * time.Millisecond},
		},
		"a pause is too short": {
			[]phase{{1, time.Second}, {0, time.Second}, {1, time.Second}, {0, 1500 * time.Millisecond}, {1, time.Second}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				cpu := func() (time.Duration, bool) {
					used, left := 0.0, time.Since(begin)
					for _, p := range c.phases {
						used += p.cores * float64(min(left, p.lasts))
						left -= min(left, p.lasts)
					}
					return time.Duration(used), true
				}
				var got []time.Duration
				hasAll := true
				quit, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					control(quit, cpu, func(all bool) {
						if all == hasAll {
							t.Errorf("all processors: %v, twice", all)
						}
						hasAll = all
						got = append(got, time.Since(begin))
					})
				}()
				for _, p := range c.phases {
					clock.Sleep(p.lasts)
				}
				close(quit)
				<-done
				if len(got) != len(c.want) {
					t.Fatalf("changes at %v, want %v", got, c.want)
				}
				for i := range got {
					if got[i] != c.want[i] {
						t.Errorf("changes at %v, want %v", got, c.want)
					}
				}
			})
		})
	}
}

// An idle process gets one processor, and stop brings the default back.
func TestAdjust_ThisProcess(t *testing.T) {
	if _, set := os.LookupEnv("GOMAXPROCS"); set {
		t.Setenv("GOMAXPROCS", "") // brings it back afterwards
		os.Unsetenv("GOMAXPROCS")
	}
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	runtime.SetDefaultGOMAXPROCS()
	all := runtime.GOMAXPROCS(0)
	if _, known := cpuTime(); !known || all == 1 {
		AdjustProcessors(slog.New(slog.DiscardHandler))()
		if got := runtime.GOMAXPROCS(0); got != all {
			t.Errorf("GOMAXPROCS is %d where nothing can be adjusted, it was %d", got, all)
		}
		return
	}
	stop := AdjustProcessors(slog.New(slog.DiscardHandler))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != 1; <-tick.C {
		if time.Now().After(until) {
			t.Fatal("an idle process kept its processors for a minute")
		}
	}
	stop()
	if got := runtime.GOMAXPROCS(0); got != all {
		t.Errorf("afterwards GOMAXPROCS is %d, want %d", got, all)
	}
}

func TestAdjust_Environment_HasTheLastWord(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2")
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	runtime.GOMAXPROCS(before + 1) // which stop would not leave, had Adjust begun
	AdjustProcessors(slog.New(slog.DiscardHandler))()
	if got := runtime.GOMAXPROCS(0); got != before+1 {
		t.Errorf("GOMAXPROCS is %d though the environment has it, it was %d", got, before+1)
	}
}

func TestCPUTime_Grows(t *testing.T) {
	before, known := cpuTime()
	if !known {
		if before != 0 {
			t.Errorf("an unknown CPU time of %v", before)
		}
		return
	}
	for {
		if now, _ := cpuTime(); now > before+10*time.Millisecond {
			return
		}
	}
}
