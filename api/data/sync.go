package data

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
)

// sync waits until this server has applied all that was acknowledged, by any
// server, before the request; a local read here then shows it.
func sync(q *rest.Request) error {
	if err := q.Barrier(); err != nil {
		return err
	}
	zxid := ""
	q.View(func(v *server.View) { zxid = v.Zxid().String() })
	q.W.Header().Set(rest.HeaderConsistency, rest.ConsistencyLinearizable)
	return q.Answer(http.StatusOK, map[string]string{"zxid": zxid})
}
