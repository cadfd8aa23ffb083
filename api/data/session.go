package data

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// defaultSessionTimeout applies without timeout: long enough for a shell script.
	defaultSessionTimeout = 30 * time.Second
	// longestSessionTimeout is longer than any server grants; their bounds apply.
	longestSessionTimeout = 24 * time.Hour
)

// openSession opens a session.
func (h *handlers) openSession(q *rest.Request) error {
	var doc struct {
		Timeout string `json:"timeout"`
	}
	if err := q.Decode(rest.SmallBody, &doc); err != nil {
		return err
	}
	timeout := defaultSessionTimeout
	if doc.Timeout != "" {
		var err error
		timeout, err = rest.ParseDuration("timeout", doc.Timeout, time.Millisecond, longestSessionTimeout)
		if err != nil {
			return err
		}
	}
	if err := ownKey(q); err != nil {
		return err
	}
	var r state.Result
	err := q.OpenSession(func() (id znode.SessionID, err error) {
		r, err = q.Do(h.server.NewSession(timeout))
		switch {
		case err != nil:
			return 0, err
		case r.Code != znode.OK || r.Session == nil:
			return 0, rest.Fail(r.Code, "")
		}
		return r.Session.ID, nil
	})
	if err != nil {
		return err
	}
	id := r.Session.ID.String()
	q.W.Header().Set("Location", "/v1/sessions/"+id)
	q.W.Header().Set("Cache-Control", "no-store") // it has a secret
	return q.Answer(http.StatusCreated, sessionBody{
		ID: id, Secret: hex.EncodeToString(r.Session.Password[:]),
		Timeout: r.Session.Timeout.String(),
	})
}

// minSessionKey is how long a key must be that brings a secret: 128 bits take 22 characters in base64.
const minSessionKey = 22

// ownKey makes the Idempotency-Key one of the client's own address, and refuses a short one: a client that repeats it
// is given the session.
func ownKey(q *rest.Request) error {
	switch {
	case q.Key == "":
		return nil
	case len(q.Key) < minSessionKey:
		p := rest.BadRequest(rest.HeaderKey, "for a new session it must have %d characters at least, drawn at random: "+
			"who knows it gets the session", minSessionKey)
		p.Hint = "send a random UUID, as of uuidgen"
		return p
	}
	q.Key = q.Address + "\n" + q.Key // no header contains a line feed
	return nil
}

// keepSession is a heartbeat, which reading the header has recorded already.
func keepSession(q *rest.Request) error {
	if err := ownSession(q); err != nil {
		return err
	}
	return q.Answer(http.StatusOK, sessionBody{
		ID: q.Session.String(), Timeout: q.Timeout.String(),
	})
}

// closeSession ends a session; its ephemeral znodes go with it. An administrator may end any session.
func closeSession(q *rest.Request) error {
	force, err := q.Query.Flag("force")
	switch {
	case err != nil:
		return err
	case force:
		return closeOther(q)
	}
	if err := ownSession(q); err != nil {
		return err
	}
	r, err := q.Do(&state.Command{Op: state.OpCloseSession})
	if err != nil {
		return err
	}
	return rest.Deleted(q, r.Code, "")
}

// closeOther ends the session in the URL. Only the server that has opened a local one can, and is named by its id.
func closeOther(q *rest.Request) error {
	if err := q.NeedAdministrator(); err != nil {
		return err
	}
	id, ok := rest.ParseSessionID(q.Vars["id"])
	if !ok {
		return rest.BadRequest("id", "%q is not the id of a session, such as 0x1001", q.Vars["id"])
	}
	opened, member := state.ServerID(uint64(id)>>56), false
	var local *server.LocalSessions
	q.View(func(v *server.View) {
		local = v.Local()
		_, member = v.Machine().Members()[opened]
	})
	if local.Close(id) {
		return rest.Deleted(q, znode.OK, "")
	}
	r, err := q.Do(&state.Command{Op: state.OpCloseSession, Session: id, Flags: state.FlagAnyServer})
	switch {
	case err == nil:
		return rest.Deleted(q, r.Code, "")
	case !errors.Is(err, znode.ErrSessionExpired):
		return err
	}
	p := rest.ProblemOf(err, false)
	p.Param, p.Detail = "id", fmt.Sprintf("id: server %d knows no session %v (any more)", q.Core.Config.ID, id)
	if p.Hint = "GET /v1/sessions lists them"; member && opened != q.Core.Config.ID {
		p.Hint = fmt.Sprintf("server %d has opened it, and knows it alone if it is a local one: "+
			"ask with ?force&server=%d", opened, opened)
	}
	return p
}

// ownSession checks that the session in the URL is the one that the request has
// proved to be of.
func ownSession(q *rest.Request) error {
	id, ok := rest.ParseSessionID(q.Vars["id"])
	switch {
	case !ok:
		return rest.BadRequest("id", "%q is not the id of a session, such as 0x1001", q.Vars["id"])
	case q.Session == 0:
		p := rest.ProblemOf(rest.Fail(znode.ErrAuthFailed, ""), false)
		p.Status, p.Param = 403, rest.HeaderSession
		p.Detail = rest.HeaderSession + ": the request does not prove that it is of this session"
		p.Hint = "send the header " + rest.HeaderSession + ": <id>.<secret>"
		return p
	case id != q.Session:
		return rest.BadRequest(rest.HeaderSession, "it is of session %v, the URL of %v", q.Session, id)
	}
	return nil
}

// sessionBody is a session as JSON.
type sessionBody struct {
	ID      string `json:"id"`
	Secret  string `json:"secret,omitempty"`
	Timeout string `json:"timeout"`
}

// identityBody is the client, as this server knows it.
type identityBody struct {
	Identities    []identity `json:"identities"`
	Anonymous     bool       `json:"anonymous"` // it has proved nothing but its address
	Administrator bool       `json:"administrator"`
}

type identity struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// getIdentity shows the client's identities. Credentials that prove nothing are refused.
func getIdentity(q *rest.Request) error {
	body := identityBody{Identities: []identity{}, Administrator: q.IsAdministrator()}
	body.Anonymous = q.Anonymous && !body.Administrator
	for _, id := range q.IDs {
		body.Identities = append(body.Identities, identity{id.Scheme, id.ID})
	}
	return q.Answer(http.StatusOK, body)
}
