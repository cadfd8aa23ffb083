package api

// takeLock waits for a lock, whose path is the URL's: POST /v1/locks/{path}.
func (q *request) takeLock() error { return q.queueUp(lockKind()) }
