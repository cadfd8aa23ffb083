package state

import (
	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Result is the outcome of a command. It is valid only during the call that
// delivers it.
type Result struct {
	Op    Op
	Zxid  znode.Zxid // the transaction's; for other commands the last one's
	Code  znode.Error
	Path  string     // OpCreate; OpDeleteAll: the znode that made it fail
	Stat  znode.Stat // OpCreate, OpSetData, OpSetACL
	Multi []OpResult // OpMulti
	// Session is the session of OpCreateSession or OpAttach.
	Session *session.Session
	Key     KeyOutcome // of a command with a Key
	// Restored is what the commit of a restore has changed.
	Restored backup.Changes
}

// OpResult is the outcome of one operation of a multi. If the multi failed, Code
// is OK for the operations before the one that failed, and ErrRuntimeInconsistency
// for those after it, although none has happened.
type OpResult struct {
	Op   Op
	Kind znode.CreateKind
	Code znode.Error
	Path string
	Stat znode.Stat
}

// Observer receives the effects of Apply, in the order of the log, on the
// goroutine that calls Apply. For one command: the Events, then changes of
// sessions, then the Result. No method may block.
type Observer interface {
	// Event reports an edit of the tree.
	Event(e *znode.Event)
	// Result delivers a command's outcome.
	Result(o Origin, seq uint64, r *Result)
	// Gap reports that commands of an origin were dropped because the one with
	// number want has not arrived: the origin must send again from there.
	Gap(o Origin, want uint64)
	// SessionOpened reports a new session.
	SessionOpened(s *session.Session)
	// SessionAttached reports that a session's client is now at s.Owner. It was
	// at former, which may be the same.
	SessionAttached(s *session.Session, former ServerID)
	// SessionClosed reports a session's end, after which s no longer changes, and the paths of its deleted
	// ephemerals, which share the znodes' memory.
	SessionClosed(s *session.Session, ephemerals []string, expired bool)
	// QuotaExceeded reports a subtree over a soft or hard limit.
	QuotaExceeded(path string)
}
