package rest

import (
	"sync"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

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
