package load

import "time"

// timerSlack is how late the generator's own timer may wake it without that
// counting as the server's latency: Go's timers sleep in steps of a millisecond
// when a process is idle.
const timerSlack = 2 * time.Millisecond

// pace is the schedule of one connection in an open loop. One goroutine uses it.
type pace struct {
	first    time.Time     // when request 0 is due
	interval time.Duration // between two requests
	woke     time.Time     // end of the last sleep
}

// newPace gives connection i of n its part of a rate; the connections are evenly shifted
// against one another.
func newPace(start time.Time, rate float64, i, n int) *pace {
	interval := time.Duration(float64(n) / rate * float64(time.Second))
	return &pace{first: start.Add(interval / time.Duration(n) * time.Duration(i)), interval: interval}
}

// at is when request k is intended.
func (p *pace) at(k int) time.Time { return p.first.Add(time.Duration(k) * p.interval) }

// start is the moment from which the latency of request k counts: the intended
// one, so that waiting for the server counts; but not the delay of the sleep
// before it, when the connection had nothing to wait for.
func (p *pace) start(k int) time.Time {
	at := p.at(k)
	if !at.Before(p.woke) {
		return at
	}
	if late := at.Add(timerSlack); late.Before(p.woke) {
		return late
	}
	return p.woke
}

// sleep reports false if stop was closed before d had passed.
func (p *pace) sleep(d time.Duration, stop <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		p.woke = time.Now()
		return true
	case <-stop:
		return false
	}
}
