package client

import (
	"context"
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// EventType is the kind of an event of a path, or of the watch itself.
type EventType int32

// The types of events. The first four come from the server.
const (
	EventCreated         = EventType(znode.EventCreated)
	EventDeleted         = EventType(znode.EventDeleted)
	EventDataChanged     = EventType(znode.EventDataChanged)
	EventChildrenChanged = EventType(znode.EventChildrenChanged)
	// EventRearmed comes from the client, to persistent watches only: the
	// connection was lost and the watch is now set on another server. ZooKeeper
	// does not report to persistent watches what happened in between, so read
	// everything that depends on the watch again.
	EventRearmed EventType = 100
	// EventEnded is the last event of a watch that ends without being
	// cancelled; Err is the reason.
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

// Event is one event of a watch.
type Event struct {
	Type EventType
	// Path is the znode that changed; that of the watch for EventRearmed and
	// EventEnded.
	Path string
	// Zxid is the transaction that changed it, or NoZxid if the server does not
	// report it. With EventRearmed it is the zxid up to which events may be
	// missing.
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
// receives exactly one event, that of the change, or EventEnded if the session is
// lost first, and is closed. A reconnection is not an event: the client sets the
// watch again, and the server reports what changed in between. (It cannot report
// that a znode was created and deleted again.)
//
// A persistent watch (AddWatch) receives every event until it is cancelled or
// ends. Its channel is bounded: if the reader is slower than the events, the
// watch ends with EventEnded and ErrWatchOverflow, so that no event is lost
// unnoticed. After a reconnection there is an EventRearmed.
//
// Events arrive in the server's order, and before any operation completes whose
// reply the server sent after them. Cancel a watch that you no longer need: it
// costs memory here and at the server until it fires.
type Watch struct {
	c    *Client
	path string // with the chroot
	ch   chan Event

	// c.mu protects the fields below.
	kind   watchKind // fixed once registered
	index  int       // place in pathWatches.list
	listed bool      // is in the registry
	ended  bool      // ch is closed
	pushed uint64    // events sent to ch
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
// ErrClosed, or the server's error when the client set the watch again.
func (w *Watch) Err() error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return w.err
}

// Cancel ends the watch: it closes the channel without another event, and asks the server
// to remove the watch unless another one of this client is on the path. It may be called
// more than once, and after the watch has ended.
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
// reserved for the last one.
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

// AddWatchMode selects the kind of persistent watch that AddWatch sets. The numbers are
// the protocol's.
type AddWatchMode int32

// The modes of AddWatch.
const (
	// ModePersistent receives all events of the znode itself, and
	// EventChildrenChanged.
	ModePersistent AddWatchMode = 0
	// ModeRecursive receives EventCreated, EventDeleted and EventDataChanged of
	// the znode and of all below it, and never EventChildrenChanged.
	ModeRecursive AddWatchMode = 1
)

// WatchOption changes a default of AddWatch.
type WatchOption func(*watchConfig)

type watchConfig struct{ queue int }

// WithWatchQueue makes a persistent watch queue n events for a slow reader
// instead of DefaultWatchQueue.
func WithWatchQueue(n int) WatchOption {
	return func(c *watchConfig) { c.queue = max(n, 1) }
}

// AddWatch sets a persistent watch. It requires neither that the znode exist nor
// a permission, but reports no events of znodes that the client may not read.
// Servers have it since ZooKeeper 3.6; older ones answer with ErrUnimplemented
// and end the connection.
//
// Before ZooKeeper 3.9 a server keeps one kind of watch for a path and session
// (ZOOKEEPER-4466): there, do not set one-shot watches on the same path, nor
// watches of both modes.
func (c *Client) AddWatch(
	ctx context.Context, path string, mode AddWatchMode, opts ...WatchOption,
) (*Watch, error) {
	return read(ctx, func() *Pending[*Watch] {
		return c.Async().AddWatch(ctx, path, mode, opts...)
	})
}

// AddWatch is Client.AddWatch without waiting for the answer.
func (a Async) AddWatch(
	ctx context.Context, path string, mode AddWatchMode, opts ...WatchOption,
) *Pending[*Watch] {
	cfg := watchConfig{queue: DefaultWatchQueue}
	for _, o := range opts {
		o(&cfg)
	}
	kind := watchPersistent
	if mode == ModeRecursive {
		kind = watchRecursive
	}
	o := newOp[wire.AddWatchRequest](a.c, wire.OpAddWatch, watchReply)
	o.req = wire.AddWatchRequest{Path: o.fullPath(path), Mode: wire.AddWatchMode(mode)}
	o.watch = newWatch(a.c, o.full, kind, cfg.queue+1) // one more place, for the last event
	return o.submit(ctx)
}

func watchReply(p *call, r *jute.Reader) *Watch {
	var resp wire.ErrorResponse
	resp.Decode(r)
	if resp.Err != znode.OK {
		p.err = resp.Err
	}
	return p.watch
}

// WatcherType selects the watches that CheckWatches and RemoveWatches apply to. The
// numbers are the protocol's.
type WatcherType int32

// The watcher types.
const (
	// WatcherChildren are the watches that ChildrenW sets.
	WatcherChildren WatcherType = 1
	// WatcherData are the watches that GetW and ExistsW set.
	WatcherData WatcherType = 2
	// WatcherAny are all watches of the path.
	WatcherAny WatcherType = 3
	// WatcherPersistent are those of AddWatch with ModePersistent. Servers know it, and
	// WatcherRecursive, since ZooKeeper 3.9.
	WatcherPersistent WatcherType = 4
	// WatcherRecursive are those of AddWatch with ModeRecursive.
	WatcherRecursive WatcherType = 5
)

func (c *Client) askWatches(
	ctx context.Context, code wire.OpCode, path string, t WatcherType,
) *Pending[struct{}] {
	o := newOp[wire.RemoveWatchesRequest](c, code, noResult)
	o.req = wire.RemoveWatchesRequest{Path: o.fullPath(path), Type: znode.WatcherType(t)}
	if code == wire.OpRemoveWatches {
		o.settledLocked = func(code znode.Error) {
			if code == znode.OK {
				c.watches.removedLocked(o.full, t)
			}
		}
	}
	return o.submit(ctx)
}

// CheckWatches asks the server whether this session has watches of a type on a
// path, and returns ErrNoWatcher if not.
func (c *Client) CheckWatches(ctx context.Context, path string, t WatcherType) error {
	_, err := read(ctx, func() *Pending[struct{}] { return c.Async().CheckWatches(ctx, path, t) })
	return err
}

// CheckWatches is Client.CheckWatches without waiting for the answer.
func (a Async) CheckWatches(
	ctx context.Context, path string, t WatcherType,
) *Pending[struct{}] {
	return a.c.askWatches(ctx, wire.OpCheckWatches, path, t)
}

// RemoveWatches removes all watches of a type that this client has on a path,
// as if each had been cancelled. Watch.Cancel removes a single one.
//
// Errors: ErrNoWatcher. If the connection breaks, the error is
// ErrConnectionLoss and the watches remain.
func (c *Client) RemoveWatches(ctx context.Context, path string, t WatcherType) error {
	_, err := write(ctx, c.Async().RemoveWatches(ctx, path, t))
	return err
}

// RemoveWatches is Client.RemoveWatches without waiting for the answer.
func (a Async) RemoveWatches(
	ctx context.Context, path string, t WatcherType,
) *Pending[struct{}] {
	return a.c.askWatches(ctx, wire.OpRemoveWatches, path, t)
}

// removedLocked ends the watches that a removal has taken from the server.
func (r *registry) removedLocked(path string, t WatcherType) {
	e := r.paths[path]
	if e == nil {
		return
	}
	for i := 0; i < len(e.list); {
		w := e.list[i]
		if !w.kind.removedBy(t) {
			i++
			continue
		}
		w.err, w.ended = ErrWatchCancelled, true
		close(w.ch)
		r.unlistLocked(e, w)
	}
	switch t {
	case WatcherAny:
		e.armed = 0
	case WatcherData:
		e.armed &^= armedData
	case WatcherChildren:
		e.armed &^= armedChild
	}
	r.tidyLocked(path, e)
}

func (k watchKind) removedBy(t WatcherType) bool {
	switch t {
	case WatcherAny:
		return true
	case WatcherData:
		return k == watchData || k == watchExist
	case WatcherChildren:
		return k == watchChild
	case WatcherPersistent:
		return k == watchPersistent
	case WatcherRecursive:
		return k == watchRecursive
	}
	return false
}
