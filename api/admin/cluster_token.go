package admin

import (
	"net/http"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// tokenBody is a one-time token.
type tokenBody struct {
	Token string    `json:"token"`
	Until time.Time `json:"token_until"`
}

// makeToken makes a one-time token with which a member may join with a new key.
func (h *handlers) makeToken(q *rest.Request) error {
	id, err := serverID(q)
	if err != nil {
		return err
	}
	if err := needLeader(q); err != nil {
		return err
	}
	t, err := h.newToken(q, id)
	if err != nil {
		return clusterProblem(err)
	}
	return q.Answer(http.StatusOK, t)
}

func (h *handlers) newToken(q *rest.Request, id state.ServerID) (*tokenBody, error) {
	secret, until, err := h.ensemble.NewToken(q.Context, id)
	return &tokenBody{secret, until.UTC().Truncate(time.Second)}, err
}

// serverID is the server that the path names.
func serverID(q *rest.Request) (state.ServerID, error) {
	id, err := strconv.ParseUint(q.Vars["id"], 10, 8)
	if err != nil || id > state.MaxServerID {
		return 0, rest.BadRequest("id", "%q is not a server id from 0 to %d", q.Vars["id"], state.MaxServerID)
	}
	return state.ServerID(id), nil
}
