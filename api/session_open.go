package api

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

const (
	// defaultSessionTimeout is what one gets who does not say: long enough for a
	// shell script.
	defaultSessionTimeout = 30 * time.Second
	// longest is beyond what any server grants; theirs apply.
	longestSessionTimeout = 24 * time.Hour
	// smallBody is room for a request's few fields.
	smallBody = 4 << 10
)

// openSession opens a session.
func (q *request) openSession() error {
	var doc struct {
		Timeout string `json:"timeout"`
	}
	if err := q.decode(smallBody, &doc); err != nil {
		return err
	}
	timeout := defaultSessionTimeout
	if doc.Timeout != "" {
		var err error
		timeout, err = parseDuration("timeout", doc.Timeout, time.Millisecond, longestSessionTimeout)
		if err != nil {
			return err
		}
	}
	r, err := q.do(q.door.srv.NewSession(timeout))
	if err != nil {
		return err
	}
	if r.Code != znode.OK || r.Session == nil {
		return failure{r.Code, ""}
	}
	id := r.Session.ID.String()
	q.w.Header().Set("Location", "/v1/sessions/"+id)
	q.w.Header().Set("Cache-Control", "no-store") // it has a secret
	return q.answer(http.StatusCreated, sessionBody{
		ID: id, Secret: hex.EncodeToString(r.Session.Password[:]),
		Timeout: r.Session.Timeout.String(),
	})
}
