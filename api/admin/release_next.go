//go:build nextrelease

package admin

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// releaseRoutes has the next release's operation.
func releaseRoutes() []rest.Route {
	return []rest.Route{
		rest.LocalOp(http.MethodPost, "/v1/cluster/next", func(q *rest.Request) error {
			r, err := q.Core.Server.Do(q.Context, &state.Command{Op: state.OpNext})
			if err != nil {
				return err
			}
			return q.Answer(http.StatusOK, map[string]any{"zxid": r.Zxid.String()})
		}).For(rest.Administrators),
	}
}
