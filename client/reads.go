package client

import (
	"bytes"
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// GetReply is the answer to getData.
type GetReply struct {
	Data  []byte // nil if the znode has null data, which is not the same as none
	Stat  Stat
	Watch *Watch // nil if none was asked for
}

type getDataOp struct {
	Pending[GetReply]
	req wire.GetDataRequest
}

func (op *getDataOp) request() wire.Request { return &op.req }

func (op *getDataOp) decode(r *jute.Reader) {
	var resp wire.GetDataResponse
	resp.Decode(r)
	op.value = GetReply{Data: bytes.Clone(resp.Data), Stat: resp.Stat, Watch: op.watch}
}

func (c *Client) getData(ctx context.Context, path string, watch bool) *Pending[GetReply] {
	op := new(getDataOp)
	if c.prepare(&op.call, wire.OpGetData, path, false) {
		op.req = wire.GetDataRequest{Path: op.full, Watch: watch}
		if watch {
			op.watch = newWatch(c, op.full, watchData, 1)
		}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// Get returns the data and the Stat of a znode.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.getData(ctx, path, false) })
	return v.Data, v.Stat, err
}

// Get is Client.Get without waiting for the answer.
func (a Async) Get(ctx context.Context, path string) *Pending[GetReply] {
	return a.c.getData(ctx, path, false)
}

// GetW is Get, and leaves a watch that fires when the data changes or the znode
// is deleted. There is no watch if there is an error.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.getData(ctx, path, true) })
	return v.Data, v.Stat, v.Watch, err
}

// GetW is Client.GetW without waiting for the answer.
func (a Async) GetW(ctx context.Context, path string) *Pending[GetReply] {
	return a.c.getData(ctx, path, true)
}

// getDataMarked is GetAsync for a cache: it notes how many events of w had come
// before the reply.
func (c *Client) getDataMarked(ctx context.Context, path string, w *Watch) *Pending[GetReply] {
	op := new(getDataOp)
	op.marks = w
	if c.prepare(&op.call, wire.OpGetData, path, false) {
		op.req = wire.GetDataRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// ExistsReply is the answer to exists.
type ExistsReply struct {
	Exists bool
	Stat   Stat   // zero if the znode does not exist
	Watch  *Watch // nil if none was asked for
}

type existsOp struct {
	Pending[ExistsReply]
	req wire.ExistsRequest
}

func (op *existsOp) request() wire.Request { return &op.req }

func (op *existsOp) decode(r *jute.Reader) {
	var resp wire.ExistsResponse
	resp.Decode(r)
	op.value = ExistsReply{Exists: true, Stat: resp.Stat, Watch: op.watch}
}

func (op *existsOp) tolerate(code znode.Error) bool {
	op.value = ExistsReply{Watch: op.watch}
	return code == ErrNoNode
}

func (c *Client) exists(ctx context.Context, path string, watch bool) *Pending[ExistsReply] {
	op := new(existsOp)
	if c.prepare(&op.call, wire.OpExists, path, false) {
		op.req = wire.ExistsRequest{Path: op.full, Watch: watch}
		if watch {
			op.watch = newWatch(c, op.full, watchData, 1)
		}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// Exists reports whether there is a znode, and returns its Stat. That there is
// none is no error.
//
// Errors: ErrNoAuth (READ, since ZooKeeper 3.9.2).
func (c *Client) Exists(ctx context.Context, path string) (bool, Stat, error) {
	v, err := read(ctx, func() *Pending[ExistsReply] { return c.exists(ctx, path, false) })
	return v.Exists, v.Stat, err
}

// Exists is Client.Exists without waiting for the answer.
func (a Async) Exists(ctx context.Context, path string) *Pending[ExistsReply] {
	return a.c.exists(ctx, path, false)
}

// ExistsW is Exists, and leaves a watch in any case: it fires when the znode is
// created, its data changes, or it is deleted.
func (c *Client) ExistsW(ctx context.Context, path string) (bool, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[ExistsReply] { return c.exists(ctx, path, true) })
	return v.Exists, v.Stat, v.Watch, err
}

// ExistsW is Client.ExistsW without waiting for the answer.
func (a Async) ExistsW(ctx context.Context, path string) *Pending[ExistsReply] {
	return a.c.exists(ctx, path, true)
}

// ChildrenReply is the answer to getChildren2.
type ChildrenReply struct {
	Children []string // names, not paths, in no particular order
	Stat     Stat     // of the parent
	Watch    *Watch   // nil if none was asked for
}

type getChildrenOp struct {
	Pending[ChildrenReply]
	req wire.GetChildrenRequest
}

func (op *getChildrenOp) request() wire.Request { return &op.req }

func (op *getChildrenOp) decode(r *jute.Reader) {
	var resp wire.GetChildren2Response
	resp.Decode(r)
	op.value = ChildrenReply{Children: resp.Children, Stat: resp.Stat, Watch: op.watch}
}

func (c *Client) getChildren(
	ctx context.Context, path string, watch bool,
) *Pending[ChildrenReply] {
	op := new(getChildrenOp)
	if c.prepare(&op.call, wire.OpGetChildren2, path, false) {
		op.req = wire.GetChildrenRequest{Path: op.full, Watch: watch}
		if watch {
			op.watch = newWatch(c, op.full, watchChild, 1)
		}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// Children returns the names of a znode's children, in no particular order, and
// the znode's Stat.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	v, err := read(ctx, func() *Pending[ChildrenReply] { return c.getChildren(ctx, path, false) })
	return v.Children, v.Stat, err
}

// Children is Client.Children without waiting for the answer.
func (a Async) Children(ctx context.Context, path string) *Pending[ChildrenReply] {
	return a.c.getChildren(ctx, path, false)
}

// ChildrenW is Children, and leaves a watch that fires when a child is created
// or deleted, or the znode itself is deleted. There is no watch if there is an
// error.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[ChildrenReply] { return c.getChildren(ctx, path, true) })
	return v.Children, v.Stat, v.Watch, err
}

// ChildrenW is Client.ChildrenW without waiting for the answer.
func (a Async) ChildrenW(ctx context.Context, path string) *Pending[ChildrenReply] {
	return a.c.getChildren(ctx, path, true)
}

type getAllChildrenNumberOp struct {
	Pending[int]
	req wire.GetAllChildrenNumberRequest
}

func (op *getAllChildrenNumberOp) request() wire.Request { return &op.req }

func (op *getAllChildrenNumberOp) decode(r *jute.Reader) {
	var resp wire.GetAllChildrenNumberResponse
	resp.Decode(r)
	op.value = int(resp.TotalNumber)
}

// GetAllChildrenNumber returns how many znodes are below path, at any depth.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) GetAllChildrenNumber(ctx context.Context, path string) (int, error) {
	return read(ctx, func() *Pending[int] { return c.Async().GetAllChildrenNumber(ctx, path) })
}

// GetAllChildrenNumber is Client.GetAllChildrenNumber without waiting for the
// answer.
func (a Async) GetAllChildrenNumber(ctx context.Context, path string) *Pending[int] {
	c := a.c
	op := new(getAllChildrenNumberOp)
	if c.prepare(&op.call, wire.OpGetAllChildrenNumber, path, false) {
		op.req = wire.GetAllChildrenNumberRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}

type getEphemeralsOp struct {
	Pending[[]string]
	req wire.GetEphemeralsRequest
}

func (op *getEphemeralsOp) request() wire.Request { return &op.req }

func (op *getEphemeralsOp) decode(r *jute.Reader) {
	var resp wire.GetEphemeralsResponse
	resp.Decode(r)
	op.value = resp.Ephemerals
	for i, path := range op.value {
		op.value[i] = op.c.rel(path)
	}
}

// GetEphemerals returns the paths of this session's ephemerals that start with
// prefix. The prefix is one of the text and not of the path's names: "/a"
// matches "/ab". "" and "/" match all.
func (c *Client) GetEphemerals(ctx context.Context, prefix string) ([]string, error) {
	return read(ctx, func() *Pending[[]string] { return c.Async().GetEphemerals(ctx, prefix) })
}

// GetEphemerals is Client.GetEphemerals without waiting for the answer.
func (a Async) GetEphemerals(ctx context.Context, prefix string) *Pending[[]string] {
	c := a.c
	op := new(getEphemeralsOp)
	c.prepareAny(&op.call, wire.OpGetEphemerals, prefix)
	if prefix == "" {
		prefix = "/"
	}
	op.req = wire.GetEphemeralsRequest{PrefixPath: c.chroot + prefix}
	c.submit(ctx, op)
	return &op.Pending
}

type syncOp struct {
	Pending[struct{}]
	quiet
	req wire.SyncRequest
}

func (op *syncOp) request() wire.Request { return &op.req }

// Sync waits until the server has caught up with the leader, so that later reads
// see every write that was acknowledged to anybody before. The path does not
// matter to ZooKeeper, which also does not ask a majority: a deposed leader can
// still answer it.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := read(ctx, func() *Pending[struct{}] { return c.Async().Sync(ctx, path) })
	return err
}

// Sync is Client.Sync without waiting for the answer: reads that are submitted
// behind it see what it promises.
func (a Async) Sync(ctx context.Context, path string) *Pending[struct{}] {
	c := a.c
	op := new(syncOp)
	if c.prepare(&op.call, wire.OpSync, path, false) {
		op.req = wire.SyncRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}
