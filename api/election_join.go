package api

// joinElection stands for election and waits to be the leader: POST
// /v1/elections/{path}. The body is what observers see of the candidate.
func (q *request) joinElection() error { return q.queueUp(electionKind()) }
