package admin

import (
	"net/http"
	"strconv"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// removeMember takes a server out of the ensemble. A leader hands over first.
func (h *handlers) removeMember(q *rest.Request) error {
	id, err := strconv.ParseUint(q.Vars["id"], 10, 8)
	if err != nil || id > state.MaxServerID {
		return rest.BadRequest("id", "%q is not a server id from 0 to %d", q.Vars["id"], state.MaxServerID)
	}
	force, err := q.Query.Flag("force")
	if err != nil {
		return err
	}
	if err := h.cluster.RemoveServer(q.Context, state.ServerID(id), force); err != nil {
		return clusterProblem(err)
	}
	q.Begin(http.StatusNoContent)
	return nil
}
