package rest

import (
	"errors"
	"net/http"

	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/znode"
)

// auditClient is who asks, for the audit log.
func (q *Request) auditClient() audit.Client {
	return audit.Client{Session: q.Session, IDs: q.IDs, IP: q.Address}
}

// errCutOff is why an answer failed that had begun.
var errCutOff = errors.New("the answer was cut off")

// noteAdministrator records what an administrator has asked for: members, drain, a backup, a restore.
func (q *Request) noteAdministrator(rt *Route, err error) {
	e := audit.Event{Operation: rt.Method + " " + q.HTTP.URL.Path, Result: audit.Success}
	if q.local {
		e.User = "admin.token"
	}
	if err != nil {
		e.Result, e.Reason = audit.Failure, err.Error()
	}
	q.Core.Config.Audit.Note(q.auditClient(), e)
}

// noteRefusal records that a request was refused for who has sent it.
func (q *Request) noteRefusal(p *Problem) {
	if p.Status != http.StatusUnauthorized && p.Status != http.StatusForbidden || q.Core.Config.Audit == nil {
		return
	}
	e := audit.Event{Operation: q.HTTP.Method + " " + q.HTTP.URL.Path, Result: audit.Failure, Reason: p.Code.Name()}
	switch p.Code {
	case znode.ErrAuthFailed:
		e.Operation = "login"
	case znode.OK:
		e.Reason = p.Title
	}
	q.Core.Config.Audit.Note(q.auditClient(), e)
}
