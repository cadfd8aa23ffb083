package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// AddWatchMode selects which kind of persistent watch AddWatch leaves. The numbers are the
// protocol's.
type AddWatchMode int32

// The modes of AddWatch.
const (
	// ModePersistent gets all events of the znode itself, and
	// EventChildrenChanged.
	ModePersistent AddWatchMode = 0
	// ModeRecursive gets EventCreated, EventDeleted and EventDataChanged of the
	// znode and of all below it, and never EventChildrenChanged.
	ModeRecursive AddWatchMode = 1
)

// WatchOption changes a default of AddWatch.
type WatchOption func(*watchConfig)

type watchConfig struct{ queue int }

// WithWatchQueue makes a persistent watch hold n events for a slow reader
// instead of DefaultWatchQueue.
func WithWatchQueue(n int) WatchOption {
	return func(c *watchConfig) { c.queue = max(n, 1) }
}

type addWatchOp struct {
	Pending[*Watch]
	req wire.AddWatchRequest
}

func (op *addWatchOp) request() wire.Request { return &op.req }

func (op *addWatchOp) decode(r *jute.Reader) {
	var resp wire.ErrorResponse
	resp.Decode(r)
	if resp.Err != znode.OK {
		op.err = resp.Err
	}
	op.value = op.watch
}

// AddWatch leaves a persistent watch, which needs neither the znode to exist nor
// a permission; events of znodes that may not be read do not come. Servers have
// it since ZooKeeper 3.6; older ones answer with ErrUnimplemented, and end the
// connection.
//
// Before ZooKeeper 3.9 a server keeps one kind of watch for a path and session
// (ZOOKEEPER-4466): there, do not leave one-shot watches on the same path, nor
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
	c := a.c
	cfg := watchConfig{queue: DefaultWatchQueue}
	for _, o := range opts {
		o(&cfg)
	}
	op := new(addWatchOp)
	if c.prepare(&op.call, wire.OpAddWatch, path, false) {
		kind := watchPersistent
		if mode == ModeRecursive {
			kind = watchRecursive
		}
		op.req = wire.AddWatchRequest{Path: op.full, Mode: wire.AddWatchMode(mode)}
		// One more place, for the last event.
		op.watch = newWatch(c, op.full, kind, cfg.queue+1)
		c.submit(ctx, op)
	}
	return &op.Pending
}
