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

func BenchmarkHistogram_Observe(b *testing.B) {
	var h histogram.Histogram
	for b.Loop() {
		h.Observe(3 * time.Millisecond)
	}
}
