package api

// resign gives leadership, or a candidacy, up.
func (q *request) resign() error { return q.giveBack(electionKind()) }
