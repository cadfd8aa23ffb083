package rest

import (
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// readSession reads the header Zk-Session and proves it. A request with it is also
// a heartbeat.
func readSession(q *Request) error {
	text := q.HTTP.Header.Get(HeaderSession)
	if q.operation.Local || text == "" {
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
// since, perhaps by that request. No client can prove to be of it any longer, but it no
// longer owns anything either: the first result is all that the request gets.
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

// sessionUse is which sessions this server has opened over HTTP, by the addresses of clients: they have no connections
// that could be counted.
type sessionUse struct {
	limit int // of an address

	mu        sync.Mutex // protects the fields below
	byAddress map[string]map[znode.SessionID]bool
	pending   map[string]int // sessions that are being opened; never 0
	sum, look int            // sessions of all, and how many there must be before all are looked at
}

// firstLook is how many sessions are kept before it is first looked which of them have ended.
const firstLook = 1000

// OpenSession opens a session by open, if the client's address may have one more, and sessions are not opened faster
// than connectionMaxTokens allows. A request that repeats one is not counted.
func (q *Request) OpenSession(open func() (znode.SessionID, error)) error {
	if q.Repeats() {
		_, err := open()
		return err
	}
	u := &q.Core.sessions
	if !u.enter(q.Address) {
		u.forget(q, u.of(q.Address))
		if !u.enter(q.Address) {
			return TooMany(10, "%s has opened %d sessions over HTTP that go on", q.Address, u.limit)
		}
	}
	defer u.leave(q.Address)
	if admit := q.Core.Config.AdmitSession; admit != nil && !admit() {
		return TooMany(1, "sessions are opened faster than connectionMaxTokens allows")
	}
	id, err := open()
	if err == nil && u.add(q.Address, id) {
		u.forget(q, u.of(""))
	}
	return err
}

func (u *sessionUse) enter(address string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.byAddress[address])+u.pending[address] >= u.limit {
		return false
	}
	u.pending[address]++
	return true
}

func (u *sessionUse) leave(address string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending[address]--; u.pending[address] == 0 {
		delete(u.pending, address)
	}
}

// add counts a session, and reports whether it is time to forget those that have ended.
func (u *sessionUse) add(address string, id znode.SessionID) (look bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.byAddress[address]
	if own == nil {
		own = map[znode.SessionID]bool{}
		u.byAddress[address] = own
	}
	if !own[id] {
		own[id] = true
		u.sum++
	}
	return u.sum >= u.look
}

// of lists the sessions of an address; of all, if it is empty.
func (u *sessionUse) of(address string) map[znode.SessionID]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.byAddress
	if address != "" {
		all = map[string]map[znode.SessionID]bool{address: all[address]}
	}
	list := map[znode.SessionID]string{}
	for at, own := range all {
		for id := range own {
			list[id] = at
		}
	}
	return list
}

// forget leaves those of these sessions out that have ended.
func (u *sessionUse) forget(q *Request, list map[znode.SessionID]string) {
	q.Core.Server.View(func(v *server.View) {
		for id := range list {
			if v.Machine().Sessions().Get(id) != nil {
				delete(list, id)
			}
		}
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, address := range list {
		if own := u.byAddress[address]; own[id] {
			u.sum--
			if delete(own, id); len(own) == 0 {
				delete(u.byAddress, address)
			}
		}
	}
	u.look = max(2*u.sum, firstLook)
}
