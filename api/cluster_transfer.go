package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// transfer hands leadership to a voter, or to the one that is most up to date.
func (q *request) transfer() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	var doc struct {
		To *uint64 `json:"to"`
	}
	if err := q.decode(smallBody, &doc); err != nil {
		return err
	}
	var to state.ServerID
	if doc.To != nil {
		if *doc.To < 1 || *doc.To > maxServerID {
			return badRequest("to", "%d is not a server's number from 1 to %d", *doc.To, maxServerID)
		}
		to = state.ServerID(*doc.To)
	}
	if err := q.door.srv.TransferTo(q.ctx, to); err != nil {
		return clusterProblem(err)
	}
	s := q.door.srv.Status()
	return q.answer(http.StatusOK, map[string]any{"leader": s.Leader, "term": s.Term})
}
