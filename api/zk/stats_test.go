package zk

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// The metrics that are printed are in order, however short or alike the requests were.
func TestTally_Printed_IsInOrder(t *testing.T) {
	r := seed.Rand(t)
	for range 1000 {
		var x counters
		for range 1 + r.IntN(3) {
			x.request(time.Duration(r.ExpFloat64() * float64(2*time.Millisecond)))
		}
		shortest, longest := x.shortest.Milliseconds(), metrics.WholeMillis(x.longest)
		avg, err := strconv.ParseFloat(metrics.JavaDouble(x.averageMillis()), 64)
		if err != nil || float64(shortest) > avg || avg > float64(longest) ||
			longest > int64(math.Ceil(x.longest.Seconds()*1000)) {
			t.Fatalf("%+v: min/avg/max %d/%v/%d (%v), want them in order, and max not above the longest",
				x, shortest, avg, longest, err)
		}
	}
	if metrics.WholeMillis(0) != 0 || metrics.WholeMillis(1) != 1 || metrics.WholeMillis(time.Millisecond) != 1 {
		t.Errorf("whole milliseconds of 0, 1ns, 1ms: %d, %d, %d; want 0, 1, 1",
			metrics.WholeMillis(0), metrics.WholeMillis(1), metrics.WholeMillis(time.Millisecond))
	}
}
