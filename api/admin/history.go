package admin

import (
	"math"
	"net/http"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
)

// historyBody is a server's load over the last hour.
type historyBody struct {
	Interval string        `json:"interval"`
	Names    []string      `json:"names"` // of the values in each row
	Rows     []metrics.Row `json:"rows"`
}

// getHistory shows the rows behind a moment.
func (h *handlers) getHistory(q *rest.Request) error {
	since, err := q.Query.Integer("since", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	rows := h.history.Since(int64(since))
	return q.Answer(http.StatusOK, historyBody{metrics.HistoryInterval.String(), metrics.Columns, rows})
}
