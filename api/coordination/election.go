package coordination

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
)

// electionBody is an election as JSON.
type electionBody struct {
	Path       string       `json:"path"`
	Leader     *queueEntry  `json:"leader"`     // null: there is none
	Candidates []queueEntry `json:"candidates"` // who would be next, at most maxQueue
	Length     int          `json:"length"`     // how many candidates there are
}

// getElection shows who has been elected, and again whenever that changes if the
// client accepts a stream.
func (h *handlers) getElection(q *rest.Request) error {
	k := electionKind()
	dir, err := shownQueue(q, k)
	if err != nil {
		return err
	}
	if rest.WantsStream(q.HTTP) {
		return h.observe(q, k, dir)
	}
	all, length, err := listQueue(q, k, dir)
	if err != nil {
		return err
	}
	body := electionBody{Path: dir, Candidates: []queueEntry{}}
	if len(all) > 0 {
		body.Leader, body.Candidates, body.Length = &all[0], all[1:], length-1
	}
	return q.Answer(http.StatusOK, body)
}

// joinElection stands for election and waits to be the leader: POST
// /v1/elections/{path}. The body is what observers see of the candidate.
func (h *handlers) joinElection(q *rest.Request) error { return h.queueUp(q, electionKind()) }

// resign gives leadership, or a candidacy, up.
func (h *handlers) resign(q *rest.Request) error { return h.giveBack(q, electionKind()) }
