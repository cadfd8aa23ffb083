package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// WatcherType selects which watches CheckWatches and RemoveWatches mean. The numbers are
// the protocol's.
type WatcherType int32

// The watcher types.
const (
	// WatcherChildren are the watches that ChildrenW leaves.
	WatcherChildren WatcherType = 1
	// WatcherData are the watches that GetW and ExistsW leave.
	WatcherData WatcherType = 2
	// WatcherAny are all watches of the path.
	WatcherAny WatcherType = 3
	// WatcherPersistent are those of AddWatch with ModePersistent. Servers know it, and
	// WatcherRecursive, since ZooKeeper 3.9.
	WatcherPersistent WatcherType = 4
	// WatcherRecursive are those of AddWatch with ModeRecursive.
	WatcherRecursive WatcherType = 5
)

type removeWatchesOp struct {
	Pending[struct{}]
	quiet
	req wire.RemoveWatchesRequest
}

func (op *removeWatchesOp) request() wire.Request { return &op.req }

// settledLocked ends the watches that the server has just removed.
func (op *removeWatchesOp) settledLocked(h wire.ReplyHeader) {
	if h.Err == znode.OK && op.op == wire.OpRemoveWatches {
		op.c.watches.removedLocked(op.full, WatcherType(op.req.Type))
	}
}

func (c *Client) askWatches(
	ctx context.Context, code wire.OpCode, path string, t WatcherType,
) *Pending[struct{}] {
	op := new(removeWatchesOp)
	if c.prepare(&op.call, code, path, false) {
		op.req = wire.RemoveWatchesRequest{Path: op.full, Type: znode.WatcherType(t)}
		c.submit(ctx, op)
	}
	return &op.Pending
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
// as if each had been cancelled. Watch.Cancel is what removes a single one.
//
// Errors: ErrNoWatcher. If the connection breaks, the error is
// ErrConnectionLoss and the watches stay.
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
