package watch

import (
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/znode"
)

// Mode selects the events of a watch, and whether it fires once.
type Mode uint8

// The modes. One watcher may hold several of them on one path.
const (
	Data       Mode = iota + 1 // getData and exists; one-shot
	Child                      // getChildren; one-shot
	Persistent                 // data and children of one path, until removed
	Recursive                  // a path and all below it, never ChildrenChanged, until removed
)

// String is the mode's name in messages.
func (m Mode) String() string {
	switch m {
	case Data:
		return "data"
	case Child:
		return "child"
	case Persistent:
		return "persistent"
	case Recursive:
		return "recursive"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Notification is one watch event for the connections. Every watcher of one
// (type, path) of a Trigger gets the same pointer.
type Notification struct {
	Type znode.EventType
	Path string
	Zxid znode.Zxid
	// ACL must grant READ before the client may learn of the event: the znode's
	// own, or the parent's for ChildrenChanged. The Sink checks it; a one-shot
	// watch is consumed in any case (ZooKeeper's NIOServerCnxn.process).
	// Shared: do not modify.
	ACL []znode.ACL
	// Frame is a slot in which the first Sink may store the encoded event for
	// the others, so that a thousand watchers of a znode encode it once. Only
	// Notify may write it; its target is immutable afterwards.
	Frame []byte
}

// Sink receives the notifications of one connection.
type Sink interface {
	// Notify handles one notification. Trigger calls it without a lock of the
	// Manager; it must not block.
	Notify(n *Notification)
}

// ErrDropped is the error of Add for a watcher that was dropped with its connection.
var ErrDropped = errors.New("watch: the watcher's connection is closed")

// LimitError is the error of Add for a watcher that watches as many paths as it may, or when all
// watches take as much memory as they may. It wraps znode.ErrThrottled.
type LimitError struct {
	Path  string // the path that was not added
	Limit int    // paths that one watcher may watch
	Bytes int64  // that all watches may take; 0 if the bound was Limit
}

// Error names the path and the bound.
func (e *LimitError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("watch: cannot watch a path of %d bytes: the watches of all connections take %d bytes, "+
			"which is the limit (limits.watchBytes)", len(e.Path), e.Bytes)
	}
	return fmt.Sprintf("watch: cannot watch %q: the connection already watches %d paths, "+
		"which is the limit for one connection", e.Path, e.Limit)
}

// Unwrap is the protocol's code for the refusal.
func (e *LimitError) Unwrap() error { return znode.ErrThrottled }

// modes is the set of modes that one watcher holds on one path.
type modes uint8

const (
	hasData modes = 1 << iota
	hasChild
	hasPersistent
	hasRecursive

	oneShot    = hasData | hasChild
	dataTable  = hasData | hasPersistent | hasRecursive
	childTable = hasChild | hasPersistent
)

// modesOf returns 0 for an invalid mode.
func modesOf(m Mode) modes {
	if m < Data || m > Recursive {
		return 0
	}
	return 1 << (m - Data)
}

// selects is the set of modes that t selects in removeWatches and checkWatches
// (DataTree.removeWatch and containsWatcher); 0 for an unknown type.
func selects(t znode.WatcherType) modes {
	switch t {
	case znode.WatcherChildren:
		return hasChild
	case znode.WatcherData:
		return hasData
	case znode.WatcherAny:
		return dataTable | childTable
	case znode.WatcherPersistent:
		return hasPersistent
	case znode.WatcherRecursive:
		return hasRecursive
	}
	return 0
}

// in counts membership in a table: 1 if the set has a mode of it, else 0.
func (k modes) in(table modes) int64 {
	if k&table != 0 {
		return 1
	}
	return 0
}
