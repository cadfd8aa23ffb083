package processors

import (
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"
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

// The process is wide at first, narrow when it has needed little for two seconds, and wide again within
// a look of needing a processor whole, which is half a second when it was idle.
func TestFollow_Loads(t *testing.T) {
	for name, c := range map[string]struct {
		phases []phase
		want   []time.Duration // of the changes, by turns to narrow and to wide
	}{
		"idle":                   {[]phase{{0, time.Minute}}, []time.Duration{2 * time.Second}},
		"busy":                   {[]phase{{3, time.Minute}}, nil},
		"half busy stays wide":   {[]phase{{0.7, time.Minute}}, nil},
		"half busy stays narrow": {[]phase{{0, 3 * time.Second}, {0.7, time.Minute}}, []time.Duration{2 * time.Second}},
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
				isWide := true
				quit, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					newGovernor().follow(quit, cpu, func(wide bool) {
						if wide == isWide {
							t.Errorf("wide %v twice", wide)
						}
						isWide = wide
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

// Hold makes an idle process wide at once, and keeps it so until two seconds after it is released.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor()
		var isWide atomic.Bool
		quit, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			g.follow(quit, func() (time.Duration, bool) { return 0, true }, isWide.Store)
		}()
		look := func(after time.Duration, want bool) {
			t.Helper()
			clock.Sleep(after)
			synctest.Wait()
			if got := isWide.Load(); got != want {
				t.Errorf("wide %v, want %v", got, want)
			}
		}
		look(3*time.Second, false)
		first, second := g.hold(), g.hold()
		look(0, true)
		look(time.Minute, true)
		first()
		look(time.Minute, true)
		second()
		look(time.Second, true)
		look(2*time.Second, false)
		g.hold()()
		look(0, true)
		look(time.Second, true)
		look(2*time.Second, false)
		close(quit)
		<-done
	})
}

// An idle process gets one processor, and stop brings the default back.
func TestFollow_ThisProcess(t *testing.T) {
	if _, set := os.LookupEnv("GOMAXPROCS"); set {
		t.Setenv("GOMAXPROCS", "") // brings it back afterwards
		os.Unsetenv("GOMAXPROCS")
	}
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	runtime.SetDefaultGOMAXPROCS()
	all := runtime.GOMAXPROCS(0)
	if _, known := cpuTime(); !known || all == 1 {
		Follow(slog.New(slog.DiscardHandler))()
		if got := runtime.GOMAXPROCS(0); got != all {
			t.Errorf("GOMAXPROCS is %d where nothing can be followed, it was %d", got, all)
		}
		return
	}
	stop := Follow(slog.New(slog.DiscardHandler))
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

func TestFollow_Environment_HasTheLastWord(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2")
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	runtime.GOMAXPROCS(before + 1) // which stop would not leave, had Follow begun
	Follow(slog.New(slog.DiscardHandler))()
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
