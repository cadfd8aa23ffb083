package process

import (
	"log/slog"
	"os"
	"runtime"
	"time"
)

const (
	// checkEvery bounds how long work piles up on one processor before the process gets the others.
	checkEvery = 100 * time.Millisecond
	// checkIdle replaces it while hardly anything of one processor is used, because each timer wakes an
	// idle process.
	checkIdle = 500 * time.Millisecond
	idleBelow = 0.1
	// upAt is the share of one processor, used since the last check, from which requests begin to wait for
	// each other: at eight tenths the mean wait is twice the time of a request.
	upAt = 0.8
	// downBelow, for as long as downAfter, is little enough for one processor. The distance to upAt exceeds
	// the variation of loads, because each change stops the world.
	downBelow = 0.6
	downAfter = 2 * time.Second
)

// AdjustProcessors adjusts GOMAXPROCS, the number of processors that run Go code, to how many of them the process
// uses: one while it needs less than one, all of them once it needs more. It does so on one goroutine until stop is
// called, which sets Go's default again, and may be in effect once in a process. It does nothing with a single
// processor, where GOMAXPROCS is in the environment, and on systems on which a process cannot read its CPU time.
// The setting runtime.adjustProcessors turns it off.
//
// With more than one, Go wakes a second thread whenever a goroutine becomes ready, in case there is more
// to do, and that thread sleeps again when there is not. A server does this several times per entry. Three
// servers on a machine with two cores take the processors for that from each other: a sixth of their CPU
// went there (docs/adr/0012).
//
// The price: when load begins suddenly, requests share one processor for up to 100 ms, or 500 ms if the
// process was idle. A call that blocks on a file keeps the one processor until the runtime's monitor
// thread takes it away, which takes up to 20 ms in a busy process.
func AdjustProcessors(logger *slog.Logger) (stop func()) {
	_, set := os.LookupEnv("GOMAXPROCS")
	if _, known := cpuTime(); set || !known || runtime.GOMAXPROCS(0) == 1 {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		control(quit, cpuTime, func(all bool) {
			use(all)
			logger.Debug("GOMAXPROCS changed", "processors", runtime.GOMAXPROCS(0))
		})
	}()
	return func() {
		close(quit)
		<-done
		use(true)
	}
}

// use sets GOMAXPROCS to all processors or to one. How many are all can change while the process runs,
// since Go follows the limits of its control group.
func use(all bool) {
	if all {
		runtime.SetDefaultGOMAXPROCS()
		return
	}
	runtime.GOMAXPROCS(1)
}

// control checks the CPU time until quit is closed and calls use for each change. It begins with all
// processors in use.
func control(quit <-chan struct{}, cpu func() (time.Duration, bool), use func(all bool)) {
	timer := time.NewTimer(checkEvery)
	defer timer.Stop()
	all := true
	last, _ := cpu()
	at := time.Now()
	busy := at // when one processor was last too few
	for {
		select {
		case <-quit:
			return
		case <-timer.C:
		}
		now := time.Now()
		used, _ := cpu()
		load := float64(used-last) / float64(now.Sub(at))
		last, at = used, now
		if load >= downBelow {
			busy = now
		}
		switch {
		case !all && load >= upAt:
			all = true
			use(all)
		case all && now.Sub(busy) >= downAfter:
			all = false
			use(all)
		}
		if !all && load < idleBelow {
			timer.Reset(checkIdle)
		} else {
			timer.Reset(checkEvery)
		}
	}
}
