package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/internal/journal"
)

// Columns are the metrics that a History keeps: those of a histogram are the sum of all its samples, and quantiles
// of what came since the row before, without pings.
var Columns = []string{
	"packets_received", "request_duration_seconds_sum", "request_duration_seconds_count", "outstanding_requests",
	"pending_commands", "log_fsync_seconds_sum", "log_fsync_seconds_count", "process_cpu_seconds_total",
	"process_resident_memory_bytes", "tree_memory_bytes", "num_alive_connections", "global_sessions", "watch_count",
	"znode_count", "request_duration_seconds_p50", "request_duration_seconds_p99", "log_fsync_seconds_p99",
	"sessions_expired_total", "raft_term", "raft_leader",
}

const (
	// HistoryInterval is the time between two rows, and historyRows of them are an hour: 70 KB.
	HistoryInterval = 10 * time.Second
	historyRows     = int(time.Hour / HistoryInterval)
)

// Row has the values of the Columns at one moment; 0 for those that were not measured.
type Row struct {
	Time   int64     `json:"time"` // milliseconds since 1970
	Values []float64 `json:"values"`
}

// History keeps the metrics of the last hour. Use NewHistory.
type History struct {
	before map[string]histogram.Counts // at the last row; of the goroutine that records

	mu   sync.Mutex // protects the field below
	rows journal.Journal[Row]
}

// NewHistory returns an empty History.
func NewHistory() *History { return &History{rows: journal.New[Row](historyRows)} }

// Record measures at once and every HistoryInterval until ctx ends.
func (h *History) Record(ctx context.Context, measure func() *Samples) {
	tick := time.NewTicker(HistoryInterval)
	defer tick.Stop()
	for {
		h.add(time.Now(), measure())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *History) add(now time.Time, s *Samples) {
	all, counts := s.numbers()
	for name, c := range counts {
		recent := c.Since(h.before[name])
		all[name+"_p50"], all[name+"_p99"] = recent.Quantile(0.5).Seconds(), recent.Quantile(0.99).Seconds()
	}
	h.before = counts
	row := Row{Time: now.UnixMilli(), Values: make([]float64, len(Columns))}
	for i, name := range Columns {
		row.Values[i] = all[name]
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows.Add(row)
}

// Since returns the rows after a moment, in milliseconds since 1970, the oldest first.
func (h *History) Since(millis int64) []Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []Row{}
	for _, r := range slices.Backward(h.rows.Page(0, historyRows)) {
		if r.Time > millis {
			out = append(out, r)
		}
	}
	return out
}

// numbers are the values by name, and the histograms without pings, which no one waits for.
func (s *Samples) numbers() (all map[string]float64, counts map[string]histogram.Counts) {
	all, counts = map[string]float64{}, map[string]histogram.Counts{}
	for _, x := range s.all {
		samples, several := x.value.([]Labelled)
		if !several {
			samples = []Labelled{{Value: x.value}}
		}
		for _, l := range samples {
			switch v := l.Value.(type) {
			case int:
				all[x.name] += float64(v)
			case int64:
				all[x.name] += float64(v)
			case uint64:
				all[x.name] += float64(v)
			case float64:
				all[x.name] += v
			case histogram.Counts:
				all[x.name+"_sum"] += v.Sum.Seconds()
				all[x.name+"_count"] += float64(v.Total())
				if l.Labels != `kind="ping"` {
					sum := counts[x.name]
					sum.Add(v)
					counts[x.name] = sum
				}
			}
		}
	}
	return all, counts
}
