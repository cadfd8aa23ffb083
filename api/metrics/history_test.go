package metrics

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// A history has the last hour, and no more.
func TestHistory_KeepsAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := NewHistory(), 0
		ctx, cancel := context.WithCancel(t.Context())
		go h.Record(ctx, func() *Samples {
			n++
			return Take(func(emit func(string, any)) {
				emit("znode_count", n)
				emit("request_duration_seconds", []Labelled{{`kind="read"`, oneSecond()}, {`kind="write"`, oneSecond()}})
			})
		})
		begin := time.Now().UnixMilli()
		clock.Sleep(3*time.Hour + time.Second)
		cancel()
		rows := h.Since(0)
		if len(rows) != historyRows || rows[0].Time != begin+2*time.Hour.Milliseconds()+HistoryInterval.Milliseconds() ||
			rows[historyRows-1].Time != begin+3*time.Hour.Milliseconds() {
			t.Fatalf("%d rows, from %d to %d", len(rows), rows[0].Time-begin, rows[len(rows)-1].Time-begin)
		}
		for name, want := range map[string]float64{
			"znode_count": float64(n), "request_duration_seconds_sum": 2, "request_duration_seconds_count": 2, "watch_count": 0,
		} {
			if got := rows[historyRows-1].Values[slices.Index(Columns, name)]; got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if late := h.Since(rows[historyRows-3].Time); len(late) != 2 {
			t.Errorf("%d rows behind the third last", len(late))
		}
	})
}

func oneSecond() (c histogram.Counts) {
	c.Sum, c.Within[0] = time.Second, 1
	return c
}
