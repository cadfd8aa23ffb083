package admin

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// raiseLevel raises the ensemble's feature level.
func (h *handlers) raiseLevel(q *rest.Request) error {
	var doc struct {
		Level state.Level `json:"level"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	if doc.Level == 0 {
		return rest.BadRequest("level", "is missing; want a level as GET /v1/cluster shows it")
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.RaiseLevel(q.Context, doc.Level); err != nil {
		return clusterProblem(err)
	}
	now, highest := h.ensemble.Levels()
	return q.Answer(http.StatusOK, map[string]any{"level": now, "highest_level": highest})
}
