package znodes

import (
	"fmt"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Session names one life of one client: a process that crashed returns with a new session, and
// the znodes of the old one are deleted when that expires.
type Session struct {
	ID   sim.ID
	Life int
}

// String writes the session as a timer name.
func (s Session) String() string { return fmt.Sprintf("%d/%d", s.ID, s.Life) }

// Znode is one ephemeral sequential znode.
type Znode struct {
	Sequence int
	Owner    Session
}

// The operations and the types under which their messages are counted.
const (
	Create   = "create"
	Delete   = "delete"
	Children = "children"
	Exists   = "exists"
)

// Types returns the types of messages of processes that use these operations.
func Types(operations ...string) []string {
	var types []string
	for _, op := range operations {
		types = append(types, op, Reply{Op: op}.Type())
	}
	return append(types, WatchEvent{}.Type(), ping, pong, expired)
}

// Request asks the service for an operation. Number counts the requests of a
// session, so that a repeated request is answered again and not done again.
type Request struct {
	Session  Session
	Number   int
	Op       string
	Sequence int
}

// Type implements sim.Message.
func (r Request) Type() string { return r.Op }

// String implements sim.Message.
func (r Request) String() string {
	if r.Op == Delete || r.Op == Exists {
		return fmt.Sprintf("%s n_%d", r.Op, r.Sequence)
	}
	return r.Op
}

// Reply answers the request of the same number.
type Reply struct {
	Session  Session
	Number   int
	Op       string
	Sequence int  // of the znode created or asked about
	Found    bool // exists: the znode is there and the watch is set
	list     *[]Znode
}

// List returns the children, ascending by sequence.
func (r Reply) List() []Znode {
	if r.list == nil {
		return nil
	}
	return *r.list
}

// Type implements sim.Message.
func (r Reply) Type() string { return r.Op + "-reply" }

// String implements sim.Message.
func (r Reply) String() string {
	switch {
	case r.Op == Create:
		return fmt.Sprintf("created n_%d", r.Sequence)
	case r.Op == Children:
		return fmt.Sprintf("%d children", len(r.List()))
	case r.Op == Exists && r.Found:
		return fmt.Sprintf("watch on n_%d set", r.Sequence)
	case r.Op == Exists:
		return fmt.Sprintf("n_%d is gone", r.Sequence)
	}
	return fmt.Sprintf("deleted n_%d", r.Sequence)
}

// WatchEvent reports to a watcher, once, that a znode was deleted.
type WatchEvent struct {
	Session  Session
	Sequence int
}

// Type implements sim.Message.
func (WatchEvent) Type() string { return "event" }

// String implements sim.Message.
func (e WatchEvent) String() string { return fmt.Sprintf("event: n_%d deleted", e.Sequence) }

// pulse keeps a session alive and shows the client that it is.
type pulse struct {
	session Session
	kind    string // ping, pong or expired
}

func (p pulse) Type() string   { return p.kind }
func (p pulse) String() string { return p.kind }

// Background implements sim.Background.
func (pulse) Background() {}

const (
	ping    = "ping"
	pong    = "pong"
	expired = "expired"
)
