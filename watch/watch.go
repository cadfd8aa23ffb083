package watch

import (
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/znode"
)

// Mode is what a watch listens to and for how long.
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

// Notification is one watch event on its way to the connections. Every
// watcher of one (type, path) of a Trigger gets the same pointer.
type Notification struct {
	Type znode.EventType
	Path string
	Zxid znode.Zxid
	// ACL is what READ is checked against before the client may learn of the
	// event: the znode's own, and the parent's for ChildrenChanged. Checking is
	// the Sink's job; a one-shot watch is consumed whatever the outcome
	// (ZooKeeper's NIOServerCnxn.process). Shared: do not modify.
	ACL []znode.ACL
	// Frame is a slot in which the first Sink may keep the encoded event for
	// the others, so that a thousand watchers of a znode encode it once. It may
	// be written only within Notify; what it points to is immutable afterwards.
	Frame []byte
}

// Sink is the receiving end of one connection.
type Sink interface {
	// Notify takes over one notification. It is called by Trigger with no lock
	// of the Manager held and must not block.
	Notify(n *Notification)
}

// ErrDropped is Add's answer for a watcher that was dropped with its connection.
var ErrDropped = errors.New("watch: the watcher's connection is closed")

// LimitError is Add's answer for a watcher that watches as many paths as it
// may, or where all watches take as much memory as they may. It is znode.ErrThrottled for errors.Is.
type LimitError struct {
	Path  string // the path that was not added
	Limit int    // paths that one watcher may watch
	Bytes int64  // that all watches may take; 0: it was the paths
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

// modesOf is 0 for a number that is no mode.
func modesOf(m Mode) modes {
	if m < Data || m > Recursive {
		return 0
	}
	return 1 << (m - Data)
}

// selects is the set of modes that removeWatches and checkWatches mean by t, as
// DataTree.removeWatch and containsWatcher read it; 0 for an unknown type.
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

// in counts membership in a table: 1 when the set has a mode of it, else 0.
func (k modes) in(table modes) int64 {
	if k&table != 0 {
		return 1
	}
	return 0
}
