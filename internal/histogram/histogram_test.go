package histogram_test

import (
	"math"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
)

// A duration belongs to the first bucket whose bound it does not exceed.
func TestHistogram_Observe(t *testing.T) {
	const last = len(histogram.Bounds)
	for i, bound := range histogram.Bounds {
		var h histogram.Histogram
		h.Observe(bound)
		h.Observe(bound + 1)
		sum := h.Counts()
		sum.Add(h.Counts())
		want := histogram.Counts{Sum: 4*bound + 2}
		want.Within[i], want.Within[min(i+1, last)] = 2, 2
		if sum != want {
			t.Errorf("%v: %+v, want %+v", bound, sum, want)
		}
	}
}

// A value outside all bounds is in the first or the last bucket.
func TestHistogram_Observe_Extremes(t *testing.T) {
	const last = len(histogram.Bounds)
	for d, bucket := range map[time.Duration]int{
		math.MinInt64: 0, -1: 0, 0: 0, 1: 0, 11 * time.Second: last, math.MaxInt64: last,
	} {
		var h histogram.Histogram
		if h.Observe(d); h.Counts().Within[bucket] != 1 {
			t.Errorf("%v: %v, want it in bucket %d", d, h.Counts().Within, bucket)
		}
	}
}

func TestCounts_Quantile(t *testing.T) {
	var h histogram.Histogram
	if c := h.Counts(); c.Quantile(0.5) != 0 {
		t.Errorf("of none: %v, want 0", c.Quantile(0.5))
	}
	for range 90 {
		h.Observe(7 * time.Millisecond) // in the bucket from 5 to 10 ms
	}
	for range 10 {
		h.Observe(70 * time.Millisecond) // from 50 to 100 ms
	}
	c := h.Counts()
	for q, want := range map[float64]time.Duration{
		0: 5 * time.Millisecond, 0.45: 7500 * time.Microsecond, 0.9: 10 * time.Millisecond,
		0.95: 75 * time.Millisecond, 1: 100 * time.Millisecond,
	} {
		if got := c.Quantile(q).Round(time.Microsecond); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	h.Observe(time.Minute)
	if c = h.Counts(); c.Quantile(1) != 10*time.Second {
		t.Errorf("above all bounds: %v, want the last bound, 10 s", c.Quantile(1))
	}
}

func BenchmarkHistogram_Observe(b *testing.B) {
	var h histogram.Histogram
	for b.Loop() {
		h.Observe(3 * time.Millisecond)
	}
}
