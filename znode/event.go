package znode

// EventType is what happened to a znode; the numbers are the wire's.
type EventType int32

// The four types that travel from server to client.
const (
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// String is ZooKeeper's name of the type.
func (t EventType) String() string {
	switch t {
	case EventCreated:
		return "NodeCreated"
	case EventDeleted:
		return "NodeDeleted"
	case EventDataChanged:
		return "NodeDataChanged"
	case EventChildrenChanged:
		return "NodeChildrenChanged"
	}
	return "None"
}

// WatcherType selects the watches that removeWatches and checkWatches apply to; the
// numbers are the protocol's (Watcher.WatcherType).
type WatcherType int32

// The watcher types.
const (
	WatcherChildren   WatcherType = 1 // the one-shot child watch
	WatcherData       WatcherType = 2 // the one-shot data watch
	WatcherAny        WatcherType = 3 // every watch on the path
	WatcherPersistent WatcherType = 4
	WatcherRecursive  WatcherType = 5
)

// Valid reports whether t is one of the five.
func (t WatcherType) Valid() bool { return t >= WatcherChildren && t <= WatcherRecursive }

// Event is one edit of the tree: a znode was created, deleted or got new data.
// Creations and deletions imply a change of the parent's children, which has no
// Event of its own.
type Event struct {
	Type EventType
	Path string
	Zxid Zxid
	// ACL is the znode's at the edit and ParentACL its parent's; they decide
	// which clients may learn of it. Both are shared: do not modify.
	ACL       []ACL
	ParentACL []ACL
}
