package processors

import (
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/grid"
)

const (
	// lookEvery is how long work may pile up on one processor before it gets the others.
	lookEvery = 100 * time.Millisecond
	// lookIdle replaces it while hardly anything of one processor is used: an idle server should
	// not be woken for this.
	lookIdle = 500 * time.Millisecond
	idle     = 0.1
	// widenAt of one processor, used since the last look, is where requests begin to wait for
	// each other: at eight tenths the mean wait is twice what one takes.
	widenAt = 0.8
	// narrowBelow, for as long as narrowAfter, is little enough to do with one again. It is below
	// widenAt by what loads vary, for each change stops the world.
	narrowBelow = 0.6
	narrowAfter = 2 * time.Second
)

// governor decides how many processors there are.
type governor struct {
	held atomic.Int32  // how many need all of them now
	kick chan struct{} // capacity 1: held has grown
}

// process is the governor of this process.
var process = newGovernor()

func newGovernor() *governor { return &governor{kick: make(chan struct{}, 1)} }

// Hold gives the process all processors until release is called. It is for work on files that
// blocks for long: the only processor would be kept by it for up to 20 ms, until the runtime's monitor
// thread, which sleeps longer the busier the process is, has taken it away. Without Follow it
// does nothing.
func Hold() (release func()) { return process.hold() }

func (g *governor) hold() (release func()) {
	g.held.Add(1)
	select {
	case g.kick <- struct{}{}:
	default:
	}
	return func() { g.held.Add(-1) }
}

// Follow adapts GOMAXPROCS until stop is called, which brings Go's default back. It has no effect with
// a single processor, and on systems where the CPU time of a process is not known to it.
func Follow(logger *slog.Logger) (stop func()) {
	_, set := os.LookupEnv("GOMAXPROCS")
	if _, known := cpuTime(); set || !known || runtime.GOMAXPROCS(0) == 1 {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		process.follow(quit, cpuTime, func(wide bool) {
			use(wide)
			logger.Debug("processors", "GOMAXPROCS", runtime.GOMAXPROCS(0))
		})
	}()
	return func() {
		close(quit)
		<-done
		use(true)
	}
}

// use makes the process wide or narrow. What wide is can change while it runs: Go follows the limits of
// its control group.
func use(wide bool) {
	if wide {
		runtime.SetDefaultGOMAXPROCS()
		return
	}
	runtime.GOMAXPROCS(1)
}

// follow looks at the CPU time until quit is closed and calls use at each change. It begins wide.
func (g *governor) follow(
	quit <-chan struct{}, cpu func() (time.Duration, bool), use func(wide bool),
) {
	timer := time.NewTimer(grid.Until(lookEvery))
	defer timer.Stop()
	wide := true
	turn := func(to bool) {
		if wide != to {
			wide = to
			use(to)
		}
	}
	last, _ := cpu()
	at := time.Now()
	busy := at
	for {
		select {
		case <-quit:
			return
		case <-timer.C:
		case <-g.kick:
			busy = time.Now()
			turn(true)
			continue // the timer goes on
		}
		now := time.Now()
		used, _ := cpu()
		load := float64(used-last) / float64(now.Sub(at))
		last, at = used, now
		if load >= narrowBelow || g.held.Load() > 0 {
			busy = now
		}
		switch {
		case load >= widenAt:
			turn(true)
		case now.Sub(busy) >= narrowAfter:
			turn(false)
		}
		if !wide && load < idle {
			timer.Reset(grid.Until(lookIdle))
		} else {
			timer.Reset(grid.Until(lookEvery))
		}
	}
}
