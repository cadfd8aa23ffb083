package curator

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// What a place is used for.
const (
	LockKind      = "lock"
	ReadWriteKind = "read-write lock"
	SemaphoreKind = "semaphore"
	ElectionKind  = "election"
	QueueKind     = "queue" // of items
	GroupKind     = "group"
)

// kazooRead is the marker of kazoo's ReadLock, whose writers have KazooLock.
const kazooRead = "__rlock__"

// families are the kinds of queues below one znode, by the markers of their names. A sign tells some apart from
// locks: kazoo's elections, and its writers, have the names of its locks.
var families = []struct {
	kind, sign string
	markers    []string
}{
	{ElectionKind, Latch, []string{Latch, KazooLock}},
	{ReadWriteKind, "", []string{ReadLock, WriteLock}},
	{ReadWriteKind, kazooRead, []string{kazooRead, KazooLock}},
	{LockKind, "", []string{Lock, KazooLock}},
	{SemaphoreKind, "", []string{Lease}},
}

// Place is a znode below which a recipe has its own.
type Place struct {
	Path  string
	Kind  string
	Users []User // in the order of the queue; of a group, by name
}

// User is a znode in a place.
type User struct {
	Name    string
	Session znode.SessionID // 0: it is an item, or not known
	Read    bool            // may hold the lock together with others
	Waits   bool
}

// Places tells what the children of a znode are: the ephemerals, with their sessions, and the items of queues.
func Places(path string, ephemerals map[string]znode.SessionID, items []string) (all []Place) {
	rest := maps.Clone(ephemerals)
	add := func(kind string, users []User) {
		if len(users) > 0 {
			p := Place{path, kind, users}
			p.settle()
			all = append(all, p)
		}
	}
	for _, f := range families {
		order := Order(slices.Collect(maps.Keys(rest)), f.markers...)
		signed := func(w Waiter) bool { return f.sign == "" || w.Marker == f.sign }
		if !slices.ContainsFunc(order, signed) {
			continue
		}
		var users []User
		for _, w := range order {
			read := w.Marker == ReadLock || w.Marker == kazooRead
			users = append(users, User{Name: w.Name, Session: rest[w.Name], Read: read})
			delete(rest, w.Name)
		}
		add(f.kind, users)
	}
	var members, queued []User
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		members = append(members, User{Name: name, Session: rest[name]})
	}
	add(GroupKind, members)
	for _, k := range []Items{Plain, Prioritized, Delayed, KazooItems} {
		for _, item := range k.Order(items) {
			queued = append(queued, User{Name: item.Name})
		}
	}
	add(QueueKind, queued)
	return all
}

// IsQueued reports whether a name is that of a waiter in some queue.
func IsQueued(name string) bool {
	_, queued := Parse(name, Lock, KazooLock, kazooRead, Latch, ReadLock, WriteLock, Lease)
	return queued
}

// IsItem reports whether a name is that of a queue's item.
func IsItem(name string) bool {
	if !strings.HasPrefix(name, itemName) && !strings.HasPrefix(name, kazooItemName) {
		return false
	}
	for _, k := range []Items{Plain, Prioritized, Delayed, KazooItems} {
		if _, ok := k.Parse(name); ok {
			return true
		}
	}
	return false
}

// Confirm takes out users that are no longer there, until it has found n that are.
func (p *Place) Confirm(n int, there func(*User) bool) {
	kept, looked := 0, 0
	for ; looked < len(p.Users) && kept < n; looked++ {
		if there(&p.Users[looked]) {
			p.Users[kept] = p.Users[looked]
			kept++
		}
	}
	p.Users = append(p.Users[:kept], p.Users[looked:]...)
	p.settle()
}

// Waiting is how many wait.
func (p *Place) Waiting() (n int) {
	for i := range p.Users {
		if p.Users[i].Waits {
			n++
		}
	}
	return n
}

// settle finds out who waits. How many may hold a semaphore is not in its znodes: those who wait for it are in the
// queue of a lock beside it.
func (p *Place) settle() {
	exclusive := p.Kind == LockKind || p.Kind == ElectionKind || p.Kind == ReadWriteKind
	shared := true // all before are readers
	for i := range p.Users {
		u := &p.Users[i]
		shared = shared && u.Read
		u.Waits = exclusive && i > 0 && !shared && !p.downgraded(u)
	}
	// Holders first: a writer's own read lock may have come later.
	slices.SortStableFunc(p.Users, func(a, b User) int { return cmp.Compare(waits(a), waits(b)) })
}

func waits(u User) int {
	if u.Waits {
		return 1
	}
	return 0
}

// downgraded reports whether u is the read lock of the one that holds the lock for writing, which gets it at once.
func (p *Place) downgraded(u *User) bool {
	first := p.Users[0]
	return u.Read && !first.Read && u.Session != 0 && u.Session == first.Session
}

// WaitsFor are the sessions that the i-th user waits for, the first first: its own is among them where another of its
// threads is ahead.
func (p *Place) WaitsFor(i int) (sessions []znode.SessionID) {
	u := p.Users[i]
	if !u.Waits {
		return nil
	}
	for _, ahead := range p.Users[:i] {
		if ahead.Session != 0 && !(u.Read && ahead.Read) && !slices.Contains(sessions, ahead.Session) {
			sessions = append(sessions, ahead.Session)
		}
	}
	return sessions
}
