package admin

import (
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// Counting stays within its memory; what it misses is as small as it says.
func TestFrequent_Bounds(t *testing.T) {
	r := seed.Rand(t)
	f := frequent{most: 100, counts: map[string]int64{}}
	real, total := map[string]int64{}, int64(0)
	for range 50_000 {
		key := fmt.Sprint(min(r.IntN(2000), r.IntN(2000), r.IntN(2000)) / (1 + r.IntN(20)))
		n := 1 + r.Int64N(3)
		f.add(key, n)
		real[key] += n
		total += n
		if len(f.counts) > f.most {
			t.Fatalf("%d counters, want %d at most", len(f.counts), f.most)
		}
	}
	if f.missed == 0 || f.missed > 2*total/int64(f.most) {
		t.Errorf("%d of %d may be missed, want below %d", f.missed, total, 2*total/int64(f.most))
	}
	for key, n := range real {
		if have := f.counts[key]; have > n || have < n-f.missed {
			t.Errorf("%s has %d and is counted as %d, of which %d may be missed", key, n, have, f.missed)
		}
	}
}
