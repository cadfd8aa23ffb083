package api

import (
	"net/http"

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
func (q *request) drain() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	if err := q.door.srv.Drain(q.ctx); err != nil {
		return clusterProblem(err)
	}
	q.door.waiting.disconnectAll(errDraining)
	return q.answer(http.StatusOK, drainBody{q.door.srv.Config().ID, true, true})
}

// undrain takes clients again.
func (q *request) undrain() error {
	if err := q.needOperator(); err != nil {
		return err
	}
	q.door.srv.Undrain()
	q.begin(http.StatusNoContent)
	return nil
}

// notServing says why this server does not take requests.
func (q *request) notServing() *problem {
	if !q.door.srv.Draining() {
		return unavailable("this server is not in touch with a majority")
	}
	p := unavailable("this server is about to be stopped")
	p.Title, p.Hint = "draining", "go on at another server; sessions are good at any"
	return p
}
