package admin

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// levels are the ensemble's feature level, and the highest one that all its servers speak.
func (h *handlers) levels() (now, highest state.Level) {
	members := h.cluster.Members()
	all := map[state.ServerID]bool{}
	for id := range members {
		all[id] = true
	}
	highest, _ = state.CommonLevel(all, members)
	return h.cluster.Level(), highest
}

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
	if err := h.cluster.RaiseLevel(q.Context, doc.Level); err != nil {
		return clusterProblem(err)
	}
	now, highest := h.levels()
	return q.Answer(http.StatusOK, map[string]any{"level": now, "highest_level": highest})
}
