package session

import (
	"cmp"
	"crypto/subtle"
	"maps"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Password proves that a session belongs to the client that names it.
type Password [znode.PasswordSize]byte

// Session is the replicated part of a session: the same on every server.
type Session struct {
	ID       znode.SessionID
	Timeout  time.Duration // negotiated; whole milliseconds
	Password Password
	// Owner is the server that has the client's connection and may send
	// requests for it; requests of a former owner are refused.
	Owner uint64
}

// Table is the replicated table of sessions. Like the tree it has one writer.
type Table struct {
	sessions map[znode.SessionID]*Session
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{sessions: map[znode.SessionID]*Session{}} }

// Possible reports whether an id can be a session's. Others have another meaning: 0 means none, the smallest number
// marks containers (ZooKeeper's SessionTrackerImpl skips it too), and a top byte of 0xFF marks TTL znodes (server ids
// end at 254).
func Possible(id znode.SessionID) bool { return id != 0 && id != -1<<63 && uint64(id)>>56 != 0xFF }

// Add adds a new session. It reports false if the id is taken, or not Possible.
func (t *Table) Add(s Session) bool {
	if !Possible(s.ID) || t.sessions[s.ID] != nil {
		return false
	}
	t.sessions[s.ID] = &s
	return true
}

// Get returns a session or nil. Only the table's writer may change it.
func (t *Table) Get(id znode.SessionID) *Session { return t.sessions[id] }

// Attach moves a session to another server, with a new timeout, and returns its
// former owner. It reports false, and changes nothing, if there is no such
// session or the password is wrong.
func (t *Table) Attach(
	id znode.SessionID, password Password, timeout time.Duration, owner uint64,
) (former uint64, ok bool) {
	s := t.sessions[id]
	if s == nil || subtle.ConstantTimeCompare(s.Password[:], password[:]) != 1 {
		return 0, false
	}
	former = s.Owner
	s.Owner, s.Timeout = owner, timeout
	return former, true
}

// Remove removes a session and reports whether it existed.
func (t *Table) Remove(id znode.SessionID) bool {
	_, ok := t.sessions[id]
	delete(t.sessions, id)
	return ok
}

// Len is the number of sessions.
func (t *Table) Len() int { return len(t.sessions) }

// Each calls visit for every session, in no particular order. visit must not
// keep the session, and only the table's writer may change it.
func (t *Table) Each(visit func(*Session)) {
	for _, s := range t.sessions {
		visit(s)
	}
}

// ByID returns all sessions by their ids. The caller must not change them.
func (t *Table) ByID() []*Session {
	return slices.SortedFunc(maps.Values(t.sessions), func(a, b *Session) int { return cmp.Compare(a.ID, b.ID) })
}

// Disown makes no server, whose id this is, the owner of all sessions.
func (t *Table) Disown(none uint64) {
	for _, s := range t.sessions {
		s.Owner = none
	}
}

// Clone copies the table.
func (t *Table) Clone() []Session {
	all := make([]Session, 0, len(t.sessions))
	for _, s := range t.sessions {
		all = append(all, *s)
	}
	return all
}
