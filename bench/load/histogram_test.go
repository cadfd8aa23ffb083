package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestHistogram_Percentile_WithinError compares with the exact percentiles.
func TestHistogram_Percentile_WithinError(t *testing.T) {
	const seed, n = 7, 200_000
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var h Histogram
	exact := make([]time.Duration, n)
	for i := range exact {
		// From nanoseconds to minutes.
		exact[i] = time.Duration(math.Exp(r.Float64() * 25))
		h.Record(exact[i])
	}
	slices.Sort(exact)
	c := &Counts{}
	h.AddTo(c)
	if c.N() != n || c.Max() != exact[n-1] {
		t.Errorf("%d durations, longest %v, want %d, %v", c.N(), c.Max(), n, exact[n-1])
	}
	for _, p := range []float64{0, 1, 50, 90, 99, 99.9, 99.99, 100} {
		want := exact[max(int(math.Ceil(p/100*n)), 1)-1]
		got := c.Percentile(p)
		if diff := math.Abs(float64(got - want)); diff > 0.005*float64(want)+0.5 {
			t.Errorf("p%g is %v, want %v within 0.5 %%", p, got, want)
		}
	}
}

func TestHistogram_Buckets_EveryValueNearItsMiddle(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<41; v += 1 + v/97 {
		b := bucketOf(v)
		if b < last || b >= histogramBuckets {
			t.Fatalf("%d is in bucket %d after %d, of %d", v, b, last, histogramBuckets)
		}
		last = b
		if off := math.Abs(float64(middleOf(b)) - float64(v)); off > float64(v)/200 {
			t.Fatalf("%d stands for %d", middleOf(b), v)
		}
	}
	if bucketOf(math.MaxUint64) != histogramBuckets-1 {
		t.Error("the longest duration is not in the last bucket")
	}
}

func TestHistogram_Record_ManyGoroutines(t *testing.T) {
	var h Histogram
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				h.Record(time.Duration(g*1000 + i))
			}
		})
	}
	wg.Wait()
	c := &Counts{}
	h.AddTo(c)
	if c.N() != 8000 || c.Max() != 7999 {
		t.Errorf("%d durations, longest %v", c.N(), c.Max())
	}
}

func TestCounts_Since_OnlyTheNew(t *testing.T) {
	var h Histogram
	h.Record(time.Second)
	before := &Counts{}
	h.AddTo(before)
	h.Record(time.Millisecond)
	after := &Counts{}
	h.AddTo(after)
	d := after.Since(before)
	if off := d.Percentile(50) - time.Millisecond; d.N() != 1 || off.Abs() > 10*time.Microsecond {
		t.Errorf("%d durations of %v, want 1 of 1 ms", d.N(), d.Percentile(50))
	}
	if d.Max() > 2*time.Millisecond {
		t.Errorf("longest %v, which is an old one", d.Max())
	}
}

func TestCounts_Latency_Empty(t *testing.T) {
	if l := (&Counts{}).Latency(); l.Count != 0 || l.P99 != 0 || l.Mean != 0 || l.Curve != nil {
		t.Errorf("%+v, want nothing", l)
	}
}
