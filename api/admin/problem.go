package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/znode"
)

// clusterProblem explains why a change of the ensemble has failed.
func clusterProblem(err error) error {
	p := &rest.Problem{
		Status: http.StatusServiceUnavailable, Code: znode.ErrConnectionLoss, RetryAfter: 1,
		Title: "the ensemble did not agree", Detail: err.Error(),
		Hint: "try again; repeating it is safe",
	}
	switch {
	case errors.Is(err, membership.ErrNoMember):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusNotFound, znode.OK, 0, "no such server"
		p.Hint = "GET /v1/cluster lists the members, and which of them vote"
	case errors.Is(err, membership.ErrStandalone):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "stands alone"
		p.Hint = "start it as a member of an ensemble: its configuration needs server.N lines"
	case errors.Is(err, membership.ErrNoTokens):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "no token is needed"
		p.Hint = "start the server"
	case errors.Is(err, membership.ErrElsewhere):
		p.Status, p.Code, p.RetryAfter = http.StatusConflict, znode.OK, 0
		p.Title = "a member at another address"
		p.Hint = "choose another id; if this server has moved, stop it where it was first"
	case errors.Is(err, membership.ErrLevel):
		p.Status, p.Code, p.RetryAfter, p.Title = http.StatusConflict, znode.OK, 0, "not at this level"
		p.Hint = "GET /v1/cluster shows the ensemble's level, and those of its servers"
	case errors.Is(err, membership.ErrNoLeader):
		p.Title = "no leader"
		p.Hint = "start the voters that are down, and try again; GET /v1/cluster shows the members"
	case errors.Is(err, membership.ErrTooFew):
		p.Status, p.Code, p.RetryAfter = http.StatusConflict, znode.OK, 0
		p.Title = "too few would be left"
		p.Hint = "bring another voter back first, or add one; force=true removes a server nevertheless"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p.Status, p.Code, p.RetryAfter = http.StatusGatewayTimeout, znode.ErrOperationTimeout, 0
		p.Title = "outcome unknown"
		p.Hint = "GET /v1/cluster shows the result; repeating it is safe"
	}
	return p
}
