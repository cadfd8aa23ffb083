package load

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// The shape of a Histogram: every power of two is cut into 2^histogramBits
// buckets, as in HdrHistogram, so that a value is off by 1/2^histogramBits = 0.8 %
// at most and, reported as the middle of its bucket, by half of that.
const (
	histogramBits    = 7
	histogramHalf    = 1 << histogramBits
	histogramOctaves = 34 // up to 2^41 ns, 36 minutes
	histogramBuckets = histogramHalf * (histogramOctaves + 1)
)

// Histogram counts durations, from 1 ns to 36 minutes, with a relative error
// of 0.4 %; longer ones count as that. Record may be called from many
// goroutines. The zero value is empty.
type Histogram struct {
	counts  [histogramBuckets]atomic.Uint64
	longest atomic.Int64 // nanoseconds, exact
}

// Record counts one duration; a negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(uint64(d))].Add(1)
	for {
		longest := h.longest.Load()
		if int64(d) <= longest || h.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// bucketOf numbers the buckets: the first 2^(histogramBits+1) values have one
// each, then every octave has 2^histogramBits.
func bucketOf(v uint64) int {
	shift := bits.Len64(v) - histogramBits - 1
	if shift <= 0 {
		return int(v)
	}
	return min(histogramHalf*shift+int(v>>shift), histogramBuckets-1)
}

// middleOf is the representative value of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 2*histogramHalf {
		return time.Duration(bucket)
	}
	shift := bucket/histogramHalf - 1
	low := uint64(bucket-histogramHalf*shift) << shift
	return time.Duration(low + 1<<shift/2)
}

// Counts is a copy of a histogram at one moment, which can be added to and
// taken from others.
type Counts struct {
	buckets [histogramBuckets]uint64
	n       uint64
	longest time.Duration
}

// AddTo adds the counts of the histogram to c.
func (h *Histogram) AddTo(c *Counts) {
	for i := range h.counts {
		v := h.counts[i].Load()
		c.buckets[i] += v
		c.n += v
	}
	c.longest = max(c.longest, time.Duration(h.longest.Load()))
}

// Add adds other to c.
func (c *Counts) Add(other *Counts) {
	for i, v := range other.buckets {
		c.buckets[i] += v
	}
	c.n += other.n
	c.longest = max(c.longest, other.longest)
}

// Since returns the counts that were added to c after an earlier copy of the same histogram.
func (c *Counts) Since(earlier *Counts) *Counts {
	d := &Counts{n: c.n - earlier.n}
	for i, v := range c.buckets {
		d.buckets[i] = v - earlier.buckets[i]
		if d.buckets[i] > 0 {
			d.longest = min(middleOf(i), c.longest)
		}
	}
	return d
}

// N is the number of durations.
func (c *Counts) N() uint64 { return c.n }

// Max is the longest duration.
func (c *Counts) Max() time.Duration { return c.longest }

// Percentile returns the duration that a share of p percent does not exceed,
// with the error of the histogram; p is 0 to 100. It is 0 without durations.
func (c *Counts) Percentile(p float64) time.Duration {
	if c.n == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(p/100*float64(c.n))), 1)
	if rank >= c.n {
		return c.longest
	}
	var seen uint64
	for i, v := range c.buckets {
		if seen += v; seen >= rank {
			return min(middleOf(i), c.longest)
		}
	}
	return c.longest
}

// Mean is the average, with the error of the histogram.
func (c *Counts) Mean() time.Duration {
	if c.n == 0 {
		return 0
	}
	sum := 0.0
	for i, v := range c.buckets {
		sum += float64(v) * float64(middleOf(i))
	}
	return time.Duration(sum / float64(c.n))
}

// percents are those of a Latency and of its curve.
func percents() []float64 {
	return []float64{0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100}
}

// Latency sums the counts up.
func (c *Counts) Latency() Latency {
	l := Latency{
		Count: c.n, Mean: Micros(c.Mean()), P50: Micros(c.Percentile(50)),
		P90: Micros(c.Percentile(90)), P99: Micros(c.Percentile(99)),
		P999: Micros(c.Percentile(99.9)), P9999: Micros(c.Percentile(99.99)), Max: Micros(c.longest),
	}
	if c.n == 0 {
		return l
	}
	for _, p := range percents() {
		l.Curve = append(l.Curve, Point{Percent: p, At: Micros(c.Percentile(p))})
	}
	return l
}
