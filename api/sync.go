package api

import (
	"net/http"

	"github.com/zk-lite/zk-lite/server"
)

// sync waits until this server has applied all that was acknowledged, by any
// server, before the request; a local read here then shows it.
func (q *request) sync() error {
	if err := q.barrier(); err != nil {
		return err
	}
	zxid := ""
	q.look(func(v *server.View) { zxid = v.Zxid().String() })
	q.w.Header().Set(headerConsistency, consistencyLinearizable)
	return q.answer(http.StatusOK, map[string]string{"zxid": zxid})
}
