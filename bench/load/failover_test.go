package load

import (
	"testing"
	"time"
)

// TestOutage_Answered_LongestSilence covers what counts: silences between two
// answers to anybody, after a kill only those that end later, and the one that
// the end of the run cuts off.
func TestOutage_Answered_LongestSilence(t *testing.T) {
	from := time.Unix(1_000_000, 0)
	ms := func(n int) time.Time { return from.Add(time.Duration(n) * time.Millisecond) }
	play := func(killAfter int, answers ...int) *Outage {
		o := &outage{rec: newRecorder(Mix{{Set, 1}}, from, ms(1000))}
		o.last.Store(-1)
		for _, at := range answers {
			if killAfter > 0 && at > killAfter && !o.hasKilled() {
				o.killedAt, o.longest, o.at = time.Duration(killAfter)*time.Millisecond, 0, 0
			}
			o.answered(ms(at))
		}
		return o.result(nil)
	}
	for _, c := range []struct {
		kill     int
		answers  []int
		long, at int
		open     bool
	}{
		{0, []int{10, 20, 320, 990, 999}, 670, 320, false},
		{0, []int{-500, 10, 20, 300, 600, 900, 999}, 300, 300, false}, // the warm-up does not count
		{500, []int{1, 450, 460, 560, 700, 999}, 299, 700, false},
		{500, []int{1, 450, 460, 760, 800, 999}, 300, 460, false},
		{500, []int{1, 450, 460}, 540, 460, true},
	} {
		got := play(c.kill, c.answers...)
		if got.Longest.Duration() != time.Duration(c.long)*time.Millisecond ||
			got.At != time.Duration(c.at)*time.Millisecond || got.Open != c.open {
			t.Errorf("%v, killed at %d: %v from %v, open %v; want %d ms from %d ms, %v", c.answers, c.kill,
				got.Longest, got.At, got.Open, c.long, c.at, c.open)
		}
	}
}
