package api

import (
	"net/http"
	"strconv"

	"github.com/zk-lite/zk-lite/server"
)

// livez says that the process answers.
func (q *request) livez() error {
	return q.answer(http.StatusOK, map[string]any{"status": "ok", "version": q.door.cfg.Version})
}

// readyCheck is one of the things that readyz?verbose tells.
type readyCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// readyz says whether this server serves clients: whether it knows of a leader
// with a majority. With verbose it says of what that is made up.
func (q *request) readyz() error {
	verbose, err := q.query.flag("verbose")
	if err != nil {
		return err
	}
	s := q.door.srv.Status()
	body := map[string]any{
		"status": "ok", "server": q.door.srv.Config().ID, "role": s.Role, "leader": s.Leader,
		"term": s.Term,
	}
	if verbose {
		body["checks"] = q.readyChecks(&s)
	}
	code := http.StatusOK
	switch {
	case q.door.stopping.Err() != nil:
		code, body["status"] = http.StatusServiceUnavailable, "stopping"
	case q.door.srv.Draining():
		code, body["status"] = http.StatusServiceUnavailable, "draining"
	case !q.door.srv.Serving():
		code, body["status"] = http.StatusServiceUnavailable, "no leader with a majority is known"
	}
	if code != http.StatusOK {
		q.w.Header().Set("Retry-After", "1")
	}
	return q.answer(code, body)
}

// readyChecks are the parts. The disk is told of and does not count: a server that cannot
// write serves its clients through a leader that can.
func (q *request) readyChecks(s *server.Status) []readyCheck {
	majority := "a majority has never been in touch"
	if text := contactText(s.Contact); text != nil {
		majority = "a majority was last known " + *text + " ago"
	}
	leader := "none is known"
	if s.Leader != 0 {
		leader = "server " + strconv.FormatUint(uint64(s.Leader), 10)
	}
	return []readyCheck{
		{"running", q.door.stopping.Err() == nil, ""},
		{"not_draining", !q.door.srv.Draining(), ""},
		{"leader", s.Leader != 0, leader},
		{"majority", q.door.srv.Serving() || q.door.srv.Draining() && s.Leader != 0, majority},
		{"disk", s.DiskFault == "", s.DiskFault},
	}
}
