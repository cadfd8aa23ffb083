package admin

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
)

// removeMember takes a server out of the ensemble. A leader hands over first.
func (h *handlers) removeMember(q *rest.Request) error {
	id, err := serverID(q)
	if err != nil {
		return err
	}
	force, err := q.Query.Flag("force")
	if err != nil {
		return err
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.RemoveServer(q.Context, id, force); err != nil {
		return clusterProblem(err)
	}
	q.Begin(http.StatusNoContent)
	return nil
}
