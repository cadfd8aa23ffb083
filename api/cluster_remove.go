package api

import (
	"net/http"
	"strconv"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// removeMember takes a server out of the ensemble. A leader hands over first.
func (q *request) removeMember() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	id, err := strconv.ParseUint(q.vars["id"], 10, 8)
	if err != nil || id < 1 || id > state.MaxServerID {
		return badRequest("id", "%q is not a server id from 1 to %d", q.vars["id"], state.MaxServerID)
	}
	force, err := q.query.flag("force")
	if err != nil {
		return err
	}
	if err := q.door.srv.RemoveServer(q.ctx, state.ServerID(id), force); err != nil {
		return clusterProblem(err)
	}
	q.begin(http.StatusNoContent)
	return nil
}
