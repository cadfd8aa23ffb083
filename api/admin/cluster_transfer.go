package admin

import (
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

const (
	// newsTimeout is how long the answer to a transfer waits for this server to hear of
	// the new leader, and newsInterval how often it looks: a few times in a heartbeat.
	newsTimeout  = 2 * time.Second
	newsInterval = 10 * time.Millisecond
)

// transfer hands leadership to a voter, or to the one that is most up to date.
func (h *handlers) transfer(q *rest.Request) error {
	var doc struct {
		To *uint64 `json:"to"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	to := state.NoServer
	if doc.To != nil {
		if *doc.To > state.MaxServerID {
			return rest.BadRequest("to", "%d is not a server id from 0 to %d", *doc.To, state.MaxServerID)
		}
		to = state.ServerID(*doc.To)
	}
	if err := needLeader(q); err != nil {
		return err
	}
	if err := h.ensemble.TransferTo(q.Context, to); err != nil {
		return clusterProblem(err)
	}
	s := awaitLeader(q, to)
	return q.Answer(http.StatusOK, map[string]any{"leader": s.Leader, "term": s.Term})
}

// needLeader reports that this server knows no leader, and hears of none for a moment: a change would wait for one for
// longer than people do, who could not tell then whether it has happened.
func needLeader(q *rest.Request) error {
	if awaitLeader(q, state.NoServer).Leader == state.NoServer {
		return clusterProblem(membership.ErrNoLeader)
	}
	return nil
}

// awaitLeader waits a moment until this server knows who leads now: that server, or with
// NoServer any.
func awaitLeader(q *rest.Request, to state.ServerID) consensus.Status {
	late := time.NewTimer(newsTimeout)
	defer late.Stop()
	look := time.NewTicker(newsInterval)
	defer look.Stop()
	for {
		s := q.Core.Server.Status()
		if s.Leader != state.NoServer && (to == state.NoServer || s.Leader == to) {
			return s
		}
		select {
		case <-look.C:
		case <-late.C:
			return s
		case <-q.Context.Done():
			return s
		}
	}
}
