package api

import (
	"net/http"
)

// livez says that the process answers.
func (q *request) livez() error {
	return q.answer(http.StatusOK, map[string]any{"status": "ok", "version": q.door.cfg.Version})
}

// readyz says whether this server serves clients: whether it knows of a leader
// with a majority.
func (q *request) readyz() error {
	if _, err := q.query.flag("verbose"); err != nil {
		return err
	}
	s := q.door.srv.Status()
	body := map[string]any{
		"status": "ok", "server": q.door.srv.Config().ID, "role": s.Role, "leader": s.Leader,
		"term": s.Term,
	}
	code := http.StatusOK
	switch {
	case q.door.stopping.Err() != nil:
		code, body["status"] = http.StatusServiceUnavailable, "stopping"
	case !q.door.srv.Serving():
		code, body["status"] = http.StatusServiceUnavailable, "no leader with a majority is known"
	}
	if code != http.StatusOK {
		q.w.Header().Set("Retry-After", "1")
	}
	return q.answer(code, body)
}
