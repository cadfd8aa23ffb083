package api

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// readSession reads the header Zk-Session and proves it. A request with it is also
// a heartbeat.
func (q *request) readSession(rt *route) error {
	text := q.http.Header.Get(headerSession)
	if rt.plain || text == "" {
		return nil
	}
	id, password, err := parseSession(text)
	if err != nil {
		return err
	}
	timeout, ok := q.door.srv.CheckSession(id, password)
	if !ok {
		// It may have been opened through another server a moment ago.
		if err := q.barrier(); err != nil {
			return err
		}
		timeout, ok = q.door.srv.CheckSession(id, password)
	}
	if !ok && q.repeatsOfEnded(id) {
		q.session = id
		return nil
	}
	if !ok {
		p := problemOf(failure{znode.ErrSessionExpired, ""}, false)
		p.Param = headerSession
		p.Detail = headerSession + ": there is no session " + id.String() + " with this secret (any more)"
		return p
	}
	q.session, q.timeout = id, timeout
	q.door.srv.Touch(id)
	return nil
}

// repeatsOfEnded reports whether the request repeats one of a session that has ended
// since, perhaps by that request. Nobody can prove to be of it any more, but it owns
// nothing any more either: all that there is to be had is the first result.
func (q *request) repeatsOfEnded(id znode.SessionID) bool {
	ended := false
	q.look(func(v *server.View) { ended = v.Machine().Sessions().Get(id) == nil })
	return ended && q.repeats()
}

// parseSession reads <id>.<secret>.
func parseSession(text string) (id znode.SessionID, password session.Password, err error) {
	idText, secret, _ := strings.Cut(text, ".")
	id, ok := parseSessionID(idText)
	raw, err := hex.DecodeString(secret)
	if !ok || err != nil || copy(password[:], raw) != len(password) || len(raw) != len(password) {
		return 0, password, badRequest(headerSession, "it is not <id>.<secret>, as POST "+
			"/v1/sessions has answered them, such as 0x1001.00112233445566778899aabbccddeeff")
	}
	return id, password, nil
}

func parseSessionID(text string) (znode.SessionID, bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	return znode.SessionID(n), ok && err == nil && n != 0
}

// ownSession checks that the session in the URL is the one that the request has
// proved to be of.
func (q *request) ownSession() error {
	id, ok := parseSessionID(q.vars["id"])
	switch {
	case !ok:
		return badRequest("id", "%q is not the id of a session, such as 0x1001", q.vars["id"])
	case q.session == 0:
		p := problemOf(failure{znode.ErrAuthFailed, ""}, false)
		p.Status, p.Param = 403, headerSession
		p.Detail = headerSession + ": the request does not prove that the session is its own"
		p.Hint = "send the header " + headerSession + ": <id>.<secret>"
		return p
	case id != q.session:
		return badRequest(headerSession, "it is of session %v, the URL of %v", q.session, id)
	}
	return nil
}

// sessionBody is a session as JSON.
type sessionBody struct {
	ID      string `json:"id"`
	Secret  string `json:"secret,omitempty"`
	Timeout string `json:"timeout"`
}
