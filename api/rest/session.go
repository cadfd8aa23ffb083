package rest

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
func (q *Request) readSession(rt *Route) error {
	text := q.HTTP.Header.Get(HeaderSession)
	if rt.Local || text == "" {
		return nil
	}
	id, password, err := parseSession(text)
	if err != nil {
		return err
	}
	timeout, ok := q.Core.Server.CheckSession(id, password)
	if !ok {
		// It may have been opened through another server a moment ago.
		if err := q.Barrier(); err != nil {
			return err
		}
		timeout, ok = q.Core.Server.CheckSession(id, password)
	}
	if !ok && repeatsOfEnded(q, id) {
		q.Session = id
		return nil
	}
	if !ok {
		p := ProblemOf(Failure{znode.ErrSessionExpired, ""}, false)
		p.Param = HeaderSession
		p.Detail = HeaderSession + ": there is no session " + id.String() + " with this secret (any more)"
		return p
	}
	q.Session, q.Timeout = id, timeout
	q.Core.Server.Touch(id)
	return nil
}

// repeatsOfEnded reports whether the request repeats one of a session that has ended
// since, perhaps by that request. Nobody can prove to be of it any more, but it owns
// nothing any more either: all that there is to be had is the first result.
func repeatsOfEnded(q *Request, id znode.SessionID) bool {
	ended := false
	q.View(func(v *server.View) { ended = v.Machine().Sessions().Get(id) == nil })
	return ended && q.Repeats()
}

// parseSession reads <id>.<secret>.
func parseSession(text string) (id znode.SessionID, password session.Password, err error) {
	idText, secret, _ := strings.Cut(text, ".")
	id, ok := ParseSessionID(idText)
	raw, err := hex.DecodeString(secret)
	if !ok || err != nil || copy(password[:], raw) != len(password) || len(raw) != len(password) {
		return 0, password, BadRequest(HeaderSession, "it is not <id>.<secret>, as POST "+
			"/v1/sessions has answered them, such as 0x1001.00112233445566778899aabbccddeeff")
	}
	return id, password, nil
}

// ParseSessionID reads the id of a session.
func ParseSessionID(text string) (znode.SessionID, bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	return znode.SessionID(n), ok && err == nil && n != 0
}

// NeedSession refuses a request without Zk-Session.
func (q *Request) NeedSession() error {
	if q.Session != 0 {
		return nil
	}
	p := BadRequest(HeaderSession, "this operation needs a session")
	p.Hint = "POST /v1/sessions opens one; send the header " + HeaderSession +
		": <id>.<secret>"
	return p
}
