package client

import (
	"fmt"

	"github.com/zk-lite/zk-lite/znode"
)

// EventType is what has happened to a path, or to the watch.
type EventType int32

// The types of events. The first four come from the server.
const (
	EventCreated         = EventType(znode.EventCreated)
	EventDeleted         = EventType(znode.EventDeleted)
	EventDataChanged     = EventType(znode.EventDataChanged)
	EventChildrenChanged = EventType(znode.EventChildrenChanged)
	// EventRearmed comes from the client, to persistent watches only: the
	// connection was gone and the watch has been left on another server.
	// ZooKeeper does not report to persistent watches what happened in between, so
	// read all that depends on the watch again.
	EventRearmed EventType = 100
	// EventEnded is the last event of a watch that ends without having been
	// cancelled; Err has the reason.
	EventEnded EventType = 101
)

// String is ZooKeeper's name of the type, or Rearmed or Ended.
func (t EventType) String() string {
	switch t {
	case EventRearmed:
		return "Rearmed"
	case EventEnded:
		return "Ended"
	}
	if t < EventCreated || t > EventChildrenChanged {
		return fmt.Sprintf("unknown(%d)", int32(t))
	}
	return znode.EventType(t).String()
}

// Event is what comes out of a watch.
type Event struct {
	Type EventType
	// Path is the znode that changed; that of the watch for EventRearmed and
	// EventEnded.
	Path string
	// Zxid is the transaction that changed it, or NoZxid if the server does not
	// say. With EventRearmed it is the zxid up to which events may be missing.
	Zxid Zxid
	Err  error // why the watch has ended
}

// watchKind selects which events end or reach a watch.
type watchKind uint8

const (
	watchData       watchKind = iota // getData, and exists of a znode that is there
	watchExist                       // exists of a znode that is not
	watchChild                       // getChildren
	watchPersistent                  // addWatch
	watchRecursive
)

func (k watchKind) oneShot() bool { return k <= watchChild }

// Watch is a stream of events about a path.
//
// A one-shot watch (GetW, ExistsW, ChildrenW) has a channel of capacity one. It
// receives exactly one event, that of the change or EventEnded if the session is
// lost before, and is closed. A reconnection is not an event: the client leaves
// the watch again, and the server reports what changed in between. (It cannot report
// that a znode which did not exist was created and deleted again.)
//
// A persistent watch (AddWatch) receives every event until it is cancelled or
// ends. Its channel is bounded: if the reader is slower than the events, the
// watch ends with EventEnded and ErrWatchOverflow, so that no event is ever
// missing without notice. After a reconnection there is an EventRearmed.
//
// Events are in the channel in the order of the server's, and before an
// operation completes whose reply the server sent after them. Cancel a watch
// that is not needed any more: it costs memory here and at the server until it
// has fired.
type Watch struct {
	c    *Client
	path string // with the chroot
	ch   chan Event

	// c.mu protects the fields below.
	kind   watchKind // fixed once registered
	index  int       // place in pathWatches.list
	listed bool      // is in the registry
	ended  bool      // ch is closed
	pushed uint64    // events that have gone into ch
	err    error
}

func newWatch(c *Client, path string, kind watchKind, queue int) *Watch {
	return &Watch{c: c, path: path, kind: kind, ch: make(chan Event, queue)}
}

// C returns the channel of the events.
func (w *Watch) C() <-chan Event { return w.ch }

// Path returns the path of the watch.
func (w *Watch) Path() string { return w.c.rel(w.path) }

// Err returns why the watch has ended: nil while it has not, or if a one-shot
// watch has fired; ErrWatchCancelled, ErrWatchOverflow, ErrSessionExpired,
// ErrClosed, or what the server said when the watch was to be left again.
func (w *Watch) Err() error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return w.err
}

// Cancel ends the watch: its channel is closed without another event, and the
// server is asked to remove it if nothing else here watches the path. It may be called more
// than once, also after the watch has ended.
func (w *Watch) Cancel() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.ended {
		return
	}
	w.err = ErrWatchCancelled
	w.ended = true
	close(w.ch)
	w.c.watches.removeLocked(w)
}

// pushLocked appends an event. One place in the queue of a persistent watch is
// kept for the last one.
func (w *Watch) pushLocked(e Event) {
	if w.ended {
		return
	}
	if !w.kind.oneShot() && len(w.ch) >= cap(w.ch)-1 {
		w.endLocked(ErrWatchOverflow)
		return
	}
	w.ch <- e
	w.pushed++
	if w.kind.oneShot() {
		w.ended = true
		close(w.ch)
	}
}

// endLocked ends the watch with an EventEnded, for which there is room: a
// one-shot watch that has not ended is empty.
func (w *Watch) endLocked(cause error) {
	if w.ended {
		return
	}
	w.err = cause
	w.ended = true
	w.ch <- Event{Type: EventEnded, Path: w.Path(), Zxid: NoZxid, Err: cause}
	close(w.ch)
}
