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

// A row has the quantiles of the requests since the row before, without pings, also after a reset.
func TestHistory_Quantiles(t *testing.T) {
	h := NewHistory()
	for i, c := range []struct{ fast, slow int64 }{{100, 0}, {100, 100}, {1, 1}} { // so far
		var requests, pings histogram.Counts
		requests.Within[0], requests.Within[12], pings.Within[9] = c.fast, c.slow, 1000
		h.add(time.UnixMilli(int64(i+1)), Take(func(emit func(string, any)) {
			emit("request_duration_seconds", []Labelled{{`kind="read"`, requests}, {`kind="ping"`, pings}})
			emit("raft_term", uint64(7))
		}))
	}
	low, high := histogram.Bounds[11].Seconds(), histogram.Bounds[12].Seconds()
	for i, want := range []struct{ p50, p99 [2]float64 }{
		{[2]float64{1e-6, 5e-5}, [2]float64{1e-6, 5e-5}},
		{[2]float64{low, high}, [2]float64{low, high}},
		{[2]float64{1e-6, 5e-5}, [2]float64{low, high}},
	} {
		row := h.Since(0)[i]
		for column, between := range map[string][2]float64{"p50": want.p50, "p99": want.p99} {
			got := row.Values[slices.Index(Columns, "request_duration_seconds_"+column)]
			if got < between[0] || got > between[1] {
				t.Errorf("row %d: %s is %v, want from %v to %v", i, column, got, between[0], between[1])
			}
		}
		if got := row.Values[slices.Index(Columns, "raft_term")]; got != 7 {
			t.Errorf("row %d: the term is %v, want 7", i, got)
		}
	}
}

func oneSecond() (c histogram.Counts) {
	c.Sum, c.Within[0] = time.Second, 1
	return c
}
