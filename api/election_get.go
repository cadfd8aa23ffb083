package api

import "net/http"

// electionBody is an election as JSON.
type electionBody struct {
	Path       string       `json:"path"`
	Leader     *queueEntry  `json:"leader"`     // null: there is none
	Candidates []queueEntry `json:"candidates"` // who would be next, at most maxQueue
	Length     int          `json:"length"`     // how many candidates there are
}

// getElection shows who has been elected, and again whenever that changes if the
// client accepts a stream.
func (q *request) getElection() error {
	k := electionKind()
	dir, err := q.shownQueue(k)
	if err != nil {
		return err
	}
	if q.wantsStream() {
		return q.observe(k, dir)
	}
	all, length, err := q.listQueue(k, dir)
	if err != nil {
		return err
	}
	body := electionBody{Path: dir, Candidates: []queueEntry{}}
	if len(all) > 0 {
		body.Leader, body.Candidates, body.Length = &all[0], all[1:], length-1
	}
	return q.answer(http.StatusOK, body)
}
