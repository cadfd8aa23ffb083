package grid

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

func TestUntil(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ at, period, want time.Duration }{
		{0, 500 * ms, 500 * ms},
		{1 * ms, 500 * ms, 499 * ms},
		{250 * ms, 500 * ms, 250 * ms},
		{251 * ms, 500 * ms, 749 * ms},
		{499 * ms, 500 * ms, 501 * ms},
		{900 * ms, 1000 * ms, 1100 * ms},
		{320 * ms, 125 * ms, 180 * ms},
	} {
		synctest.Test(t, func(t *testing.T) { // whose clock begins with a whole second
			clock.Sleep(tc.at)
			if got := Until(tc.period); got != tc.want {
				t.Errorf("at %v, the next multiple of %v is awaited for %v, want %v", tc.at, tc.period, got, tc.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ at, want time.Duration }{
		{0, 500 * ms}, {1 * ms, 499 * ms}, {499 * ms, 1 * ms}, {500 * ms, 500 * ms}, {750 * ms, 250 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			clock.Sleep(tc.at)
			if got := Next(500 * ms); got != tc.want {
				t.Errorf("at %v, the next multiple is awaited for %v, want %v", tc.at, got, tc.want)
			}
		})
	}
}

// Six loops that begin at different times wake the process twice a second.
func TestUntil_Loops_FallTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const span = 20 * time.Second
		end := time.Now().Add(span)
		ticks := make(chan time.Time, 1000)
		for i, ms := range []int{500, 500, 1000, 1000, 1000, 2000} {
			go func() {
				clock.Sleep(time.Duration(17*i) * time.Millisecond)
				period := time.Duration(ms) * time.Millisecond
				for time.Now().Before(end) {
					clock.Sleep(Until(period))
					ticks <- time.Now()
				}
			}()
		}
		clock.Sleep(span + 2*time.Second)
		wakes := map[time.Time]bool{}
		for range len(ticks) {
			wakes[<-ticks] = true
		}
		if n := len(wakes); n < int(2*span.Seconds()) || n > int(2*span.Seconds())+2 {
			t.Errorf("%d wake-ups in %v, want two a second", n, span)
		}
	})
}
