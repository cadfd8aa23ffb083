// Package histogram counts durations in buckets with fixed bounds. It takes no lock, reads no clock and starts no
// goroutine; package api/metrics writes the counts.
package histogram

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// Bounds are the inclusive upper bounds of the buckets: from a read from memory to the longest time that a
// request may take. Durations above the last are in one more bucket.
var Bounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Histogram counts durations. The zero value is ready for use, by several goroutines at once.
type Histogram struct {
	within [len(Bounds) + 1]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

// first is the first bucket in which a duration can be, by the bits that its nanoseconds have: a search would cost more
// than all else.
var first = func() (first [64]int) {
	for n := 1; n < len(first); n++ {
		first[n], _ = slices.BinarySearch(Bounds[:], time.Duration(1)<<(n-1))
	}
	return first
}()

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) {
	i := first[bits.Len64(uint64(max(d, 0)))]
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.within[i].Add(1)
	h.sum.Add(int64(d))
}

// Counts returns the counts so far.
func (h *Histogram) Counts() Counts {
	c := Counts{Sum: time.Duration(h.sum.Load())}
	for i := range h.within {
		c.Within[i] = h.within[i].Load()
	}
	return c
}

// Counts are the counts of a Histogram at one moment.
type Counts struct {
	Within [len(Bounds) + 1]int64 // above the bound before, and no more than the one of the same number
	Sum    time.Duration          // of all
}

// Add adds the counts of another Histogram.
func (c *Counts) Add(o Counts) {
	c.Sum += o.Sum
	for i, n := range o.Within {
		c.Within[i] += n
	}
}

// Since returns what was counted after before; all, if the counts were reset meanwhile.
func (c *Counts) Since(before Counts) Counts {
	d := Counts{Sum: c.Sum - before.Sum}
	for i := range d.Within {
		if d.Within[i] = c.Within[i] - before.Within[i]; d.Within[i] < 0 {
			return *c
		}
	}
	return d
}

// Total is how many durations there were.
func (c *Counts) Total() (n int64) {
	for _, within := range c.Within {
		n += within
	}
	return n
}

// Summary is Counts that are reported as ZooKeeper reports its own: in milliseconds, with quantiles.
type Summary Counts

// Quantile estimates the duration that a share q of all, from 0 to 1, do not exceed, as if those of a bucket were
// spread evenly over it; the last bound for what is above all bounds, and 0 if there are none.
func (c *Counts) Quantile(q float64) time.Duration {
	rank, below := q*float64(c.Total()), int64(0)
	for i, n := range c.Within {
		if n == 0 || float64(below+n) < rank {
			below += n
			continue
		}
		low := time.Duration(0)
		if i > 0 {
			low = Bounds[i-1]
		}
		if i == len(Bounds) {
			return low
		}
		return low + time.Duration(float64(Bounds[i]-low)*(rank-float64(below))/float64(n))
	}
	return 0
}
