package api

import "github.com/zk-lite/zk-lite/consensus/state"

// closeSession ends a session; its ephemeral znodes go with it.
func (q *request) closeSession() error {
	if err := q.ownSession(); err != nil {
		return err
	}
	r, err := q.do(&state.Command{Op: state.OpCloseSession})
	if err != nil {
		return err
	}
	return q.deleted(r.Code, "")
}
