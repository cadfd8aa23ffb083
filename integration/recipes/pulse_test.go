package recipes_test

import (
	"context"
	"sync"
	"time"
)

const (
	// pulseEvery is how often the pulse beats.
	pulseEvery = 5 * time.Millisecond
	// stillAfter is how late a beat may be before this process counts as paused. The client gives a session up 1/16 of
	// its timeout, 125 ms, before the servers may: a timer that is this late can cost that.
	stillAfter = 40 * time.Millisecond
)

// pulse notices when this process is paused, as happens on a busy machine. Then no promise about clocks can be checked.
type pulse struct {
	mu    sync.Mutex // protects the fields below
	last  time.Time  // the newest beat
	still time.Time  // the newest beat that was late
	lates int
}

func (p *pulse) run(ctx context.Context) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	p.beat(time.Now())
	for {
		select {
		case <-tick.C:
			p.beat(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

func (p *pulse) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) > stillAfter {
		p.still = now
		p.lates++
	}
	p.last = now
}

// steady reports whether the process has been running all the time for d.
func (p *pulse) steady(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Sub(p.last) <= stillAfter && (p.still.IsZero() || now.Sub(p.still) > d)
}
