package admin

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// drainBody says whether this server can be stopped.
type drainBody struct {
	Server   state.ServerID `json:"server"`
	Draining bool           `json:"draining"`
	Safe     bool           `json:"safe_to_stop"`
}

// drain makes this server ready to be stopped: it takes no new clients, hands over
// leadership and sends its clients away.
func (h *handlers) drain(q *rest.Request) error {
	if err := h.server.Drain(q.Context); err != nil {
		return clusterProblem(err)
	}
	q.Core.Long.DisconnectAll(rest.ErrDraining)
	return q.Answer(http.StatusOK, drainBody{q.Core.Config.ID, true, true})
}

// undrain takes clients again.
func (h *handlers) undrain(q *rest.Request) error {
	h.server.Undrain()
	q.Begin(http.StatusNoContent)
	return nil
}
