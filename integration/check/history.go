package check

import (
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// History is a run as its clients saw it, and, where the recorder can look inside, as it was.
type History struct {
	Ops      []Op
	Events   []Event
	Sessions []Session
	Holds    []Hold
	Uses     []Use
	Feeds    []Feed
	// Changes is every edit of the tree in the order of the log, as one replica has applied it. If
	// nil, rules that need the whole truth are left out.
	Changes []Change
	// Final is the whole tree when everything was over and all servers agreed; nil if unknown.
	Final []Znode
}

// Kind is the kind of an Op.
type Kind uint8

// The kinds of operations. Get, Exists and Children are reads, which any server answers from its
// own state; all others go through the log.
const (
	Create Kind = iota + 1
	Delete
	Set
	Check // only within a Multi
	Multi
	Sync
	Get
	Exists
	Children
	AddWatch
	OpenSession
	AttachSession // a client reconnects with its session
	CloseSession
)

// String names the kind as in a report.
func (k Kind) String() string {
	names := [...]string{"", "create", "delete", "set", "check", "multi", "sync", "get", "exists",
		"children", "add-watch", "open-session", "attach-session", "close-session"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown kind"
}

// Write reports whether the kind changes the tree.
func (k Kind) Write() bool { return k >= Create && k <= Multi && k != Check }

// Read reports whether the kind is answered from a server's own state.
func (k Kind) Read() bool { return k == Get || k == Exists || k == Children }

// Outcome is what a client knows of the result of an operation.
type Outcome uint8

// The outcomes.
const (
	OK      Outcome = iota + 1 // answered with success
	Failed                     // answered with Code: it has changed nothing
	Unknown                    // no answer: it may have happened, or not, or happen later
)

// WatchMode is the kind of watch that a read or AddWatch sets.
type WatchMode uint8

// The modes.
const (
	NoWatch    WatchMode = iota
	DataWatch            // one-shot, by Get and Exists
	ChildWatch           // one-shot, by Children
	Persistent
	Recursive
)

// Op is one request of a client and its outcome.
type Op struct {
	ID      int // unique in the history
	Client  int // the client; it lives through many connections and sessions
	Conn    int // the connection, unique in the history; grows with each of a client's
	Server  int // the server that got the request
	Session znode.SessionID

	Kind    Kind
	Path    string
	Mode    znode.Mode    // Create
	Value   string        // Create, Set: the written value; unique, except for Multi's checks
	Version znode.Version // Set, Delete, Check: the one expected; znode.AnyVersion for any
	Ops     []Op          // Multi; also Get, and Exists: that of one Failed is that the znode did not exist
	If      []Op          // Multi: Checks; if one does not hold, Else is carried out instead of Ops. Nil: none
	Else    []Op          // with If; only Gets
	Held    bool          // with If, of the answer
	Watch   WatchMode     // Get, Exists, Children, AddWatch
	// Synced: the client sent this read directly after a Sync, and Call is that of the Sync:
	// together they are a linearizable read.
	Synced bool

	Call, Return time.Duration // Return is meaningless when the outcome is Unknown
	// Sent is the place of the request among those of its connection, from 1 on; Arrival that of
	// the answer among all answers and events of the connection, 0 without one.
	Sent, Arrival int

	Outcome Outcome
	Code    znode.Error // Failed
	Zxid    znode.Zxid  // of the answer: the write's own, or the last one that the server had applied
	Created string      // Create: the path that it got
	Data    string      // Get
	Stat    znode.Stat  // Get, Exists
	Names   []string    // Children, in any order
}

// parts are the operations of which o consists, as far as its answer shows them.
func (o *Op) parts() []Op {
	switch {
	case o.Kind != Multi:
		return []Op{*o}
	case o.If != nil && o.Outcome == OK && !o.Held:
		return o.Else
	}
	return o.Ops
}

// Event is a watch event that a client got.
type Event struct {
	Client, Conn int
	At           time.Duration
	Arrival      int // see Op
	Type         znode.EventType
	Path         string
	Zxid         znode.Zxid // 0 if the recorder cannot see it
}

// Change is one edit of the tree.
type Change struct {
	Zxid  znode.Zxid
	Type  znode.EventType // created, deleted or data changed
	Path  string
	Value string          // the data, unless deleted
	Owner znode.SessionID // of an ephemeral, when it is created
}

// Session is a session's life.
type Session struct {
	ID      znode.SessionID
	Client  int
	Timeout time.Duration
	// NotBefore is the earliest moment at which the session may expire, given the heartbeats that
	// have reached the ensemble. 0: not checked.
	NotBefore time.Duration
	Ended     End
	EndedAt   time.Duration // when the ensemble ended it, or when it was first seen to have ended
	EndZxid   znode.Zxid    // of the transaction that ended it; 0 if unknown
}

// End is how a session ended.
type End uint8

// The ends.
const (
	Alive   End = iota
	Closed      // by its client
	Expired     // by the ensemble
)

// Znode is a znode of the final tree.
type Znode struct {
	Path  string
	Value string
	Owner znode.SessionID
}

// Hold is the time for which a client believed to have a lock or to lead: from the answer that
// granted it to the call that released it.
type Hold struct {
	Lock         string
	Client       int
	Token        uint64        // the fencing token
	Asked        time.Duration // when the attempt began
	From, To     time.Duration
	SessionEnded bool // the session ended before To: another may hold the lock since, and only tokens count
}

// Use is a use of a fenced resource that the resource has accepted.
type Use struct {
	Lock  string
	Token uint64
	At    time.Duration // by the resource's own order
}
