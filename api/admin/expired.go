package admin

import (
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
)

// expiredSession is an insight.ExpiredSession as JSON. What the server does not know is left out.
type expiredSession struct {
	ID         uint64         `json:"id"`
	At         time.Time      `json:"at"`
	Session    string         `json:"session"`
	TimeoutMS  float64        `json:"timeout_ms"`
	Server     state.ServerID `json:"server"`
	Ephemerals int            `json:"ephemerals"`
	Paths      []string       `json:"paths,omitempty"`
	Cause      string         `json:"cause"`

	Heard          *time.Time      `json:"heard,omitempty"`
	HeardBy        *state.ServerID `json:"heard_by,omitempty"`
	ServerSilentMS float64         `json:"server_silent_ms,omitempty"`

	Connected bool       `json:"connected,omitempty"`
	LastByte  *time.Time `json:"last_byte,omitempty"`
	Ended     *time.Time `json:"connection_ended,omitempty"`
	EndReason string     `json:"connection_end_reason,omitempty"`
	Watches   int        `json:"watches,omitempty"`
	PausedMS  float64    `json:"paused_ms,omitempty"`
}

// getExpiredSessions shows the newest sessions that have expired, and what this server knows of why.
func (h *handlers) getExpiredSessions(q *rest.Request) error {
	return answerNewest(q, nil, h.server.Expired().Sessions, func(x *insight.ExpiredSession) (expiredSession, uint64) {
		b := expiredSession{
			ID: x.ID, At: x.At.UTC(), Session: x.Session.String(), TimeoutMS: millis(x.Timeout), Server: x.Server,
			Ephemerals: x.Ephemerals, Paths: x.Paths, Cause: x.Cause,
			Heard: known(x.Heard), ServerSilentMS: millis(x.ServerSilent), Connected: x.Connected,
			LastByte: known(x.LastByte), Ended: known(x.Ended), EndReason: x.EndReason, Watches: x.Watches,
			PausedMS: millis(x.Paused),
		}
		if x.HeardBy != state.NoServer {
			b.HeardBy = &x.HeardBy
		}
		return b, x.ID
	})
}

// known is a moment in UTC; nil for the zero Time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
