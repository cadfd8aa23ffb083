package client

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// GetReply is the answer to getData.
type GetReply struct {
	Data  []byte // nil if the data is null, which differs from empty
	Stat  Stat
	Watch *Watch // nil if none was asked for
}

func dataReply(p *call, r *jute.Reader) GetReply {
	var resp wire.GetDataResponse
	resp.Decode(r)
	return GetReply{Data: bytes.Clone(resp.Data), Stat: resp.Stat, Watch: p.watch}
}

// getData records how many events of marks came before the reply, if marks is not nil.
func (c *Client) getData(ctx context.Context, path string, watch bool, marks *Watch) *Pending[GetReply] {
	o := newOp[wire.GetDataRequest](c, wire.OpGetData, dataReply)
	o.req = wire.GetDataRequest{Path: o.fullPath(path), Watch: watch}
	o.setWatch(watch, watchData)
	o.marks = marks
	return o.submit(ctx)
}

// Get returns the data and the Stat of a znode.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.getData(ctx, path, false, nil) })
	return v.Data, v.Stat, err
}

// Get is Client.Get without waiting for the answer.
func (a Async) Get(ctx context.Context, path string) *Pending[GetReply] {
	return a.c.getData(ctx, path, false, nil)
}

// GetW is Get, and sets a watch that fires when the data changes or the znode
// is deleted. It sets none if it returns an error.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.getData(ctx, path, true, nil) })
	return v.Data, v.Stat, v.Watch, err
}

// GetW is Client.GetW without waiting for the answer.
func (a Async) GetW(ctx context.Context, path string) *Pending[GetReply] {
	return a.c.getData(ctx, path, true, nil)
}

// ExistsReply is the answer to exists.
type ExistsReply struct {
	Exists bool
	Stat   Stat   // zero if the znode does not exist
	Watch  *Watch // nil if none was asked for
}

func existsReply(p *call, r *jute.Reader) ExistsReply {
	if p.missing {
		return ExistsReply{Watch: p.watch}
	}
	var resp wire.ExistsResponse
	resp.Decode(r)
	return ExistsReply{Exists: true, Stat: resp.Stat, Watch: p.watch}
}

func (c *Client) exists(ctx context.Context, path string, watch bool) *Pending[ExistsReply] {
	o := newOp[wire.ExistsRequest](c, wire.OpExists, existsReply)
	o.req = wire.ExistsRequest{Path: o.fullPath(path), Watch: watch}
	o.setWatch(watch, watchData)
	return o.submit(ctx)
}

// Exists reports whether a znode exists, and returns its Stat. A missing znode
// is not an error.
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

// ExistsW is Exists, and sets a watch whether or not the znode exists: it fires
// when the znode is created, its data changes, or it is deleted.
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

func childrenReply(p *call, r *jute.Reader) ChildrenReply {
	var resp wire.GetChildren2Response
	resp.Decode(r)
	return ChildrenReply{Children: resp.Children, Stat: resp.Stat, Watch: p.watch}
}

func (c *Client) getChildren(ctx context.Context, path string, watch bool) *Pending[ChildrenReply] {
	o := newOp[wire.GetChildrenRequest](c, wire.OpGetChildren2, childrenReply)
	o.req = wire.GetChildrenRequest{Path: o.fullPath(path), Watch: watch}
	o.setWatch(watch, watchChild)
	return o.submit(ctx)
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

// ChildrenW is Children, and sets a watch that fires when a child is created or
// deleted, or the znode itself is deleted. It sets none if it returns an error.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[ChildrenReply] { return c.getChildren(ctx, path, true) })
	return v.Children, v.Stat, v.Watch, err
}

// ChildrenW is Client.ChildrenW without waiting for the answer.
func (a Async) ChildrenW(ctx context.Context, path string) *Pending[ChildrenReply] {
	return a.c.getChildren(ctx, path, true)
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
	o := newOp[wire.GetAllChildrenNumberRequest](a.c, wire.OpGetAllChildrenNumber, numberReply)
	o.req = wire.GetAllChildrenNumberRequest{Path: o.fullPath(path)}
	return o.submit(ctx)
}

func numberReply(_ *call, r *jute.Reader) int {
	var resp wire.GetAllChildrenNumberResponse
	resp.Decode(r)
	return int(resp.TotalNumber)
}

// GetEphemerals returns the paths of this session's ephemerals that start with
// prefix. The prefix is compared as text: "/a" matches "/ab". "" and "/" match
// all.
func (c *Client) GetEphemerals(ctx context.Context, prefix string) ([]string, error) {
	return read(ctx, func() *Pending[[]string] { return c.Async().GetEphemerals(ctx, prefix) })
}

// GetEphemerals is Client.GetEphemerals without waiting for the answer.
func (a Async) GetEphemerals(ctx context.Context, prefix string) *Pending[[]string] {
	o := newOp[wire.GetEphemeralsRequest](a.c, wire.OpGetEphemerals, ephemeralsReply)
	o.path = prefix
	o.req = wire.GetEphemeralsRequest{PrefixPath: a.c.chroot + cmp.Or(prefix, "/")}
	return o.submit(ctx)
}

func ephemeralsReply(p *call, r *jute.Reader) []string {
	var resp wire.GetEphemeralsResponse
	resp.Decode(r)
	for i, path := range resp.Ephemerals {
		resp.Ephemerals[i] = p.c.rel(path)
	}
	return resp.Ephemerals
}

// Sync waits until the server has caught up with the leader, so that later reads
// see every write that any client saw acknowledged before the call. ZooKeeper
// ignores the path. It also does not ask a majority: a deposed leader can still
// answer.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := read(ctx, func() *Pending[struct{}] { return c.Async().Sync(ctx, path) })
	return err
}

// Sync is Client.Sync without waiting for the answer. Its promise holds for
// reads that are submitted after it.
func (a Async) Sync(ctx context.Context, path string) *Pending[struct{}] {
	o := newOp[wire.SyncRequest](a.c, wire.OpSync, noResult)
	o.req = wire.SyncRequest{Path: o.fullPath(path)}
	return o.submit(ctx)
}

// SyncWithin is Sync for reads that may be old: later reads see every write that any client saw acknowledged maxStale
// before the call. The server answers at once if it knows that its state is that new, and otherwise syncs; it does not
// trust its leader's word. staleness is how old its state was at most when it answered.
//
// It holds, as Sync does, as long as the connection does. Errors: ErrUnimplemented of a server that is not zk-lite.
func (c *Client) SyncWithin(ctx context.Context, maxStale time.Duration) (staleness time.Duration, err error) {
	return read(ctx, func() *Pending[time.Duration] { return c.Async().SyncWithin(ctx, maxStale) })
}

// SyncWithin is Client.SyncWithin without waiting for the answer. Its promise holds for reads that are submitted after
// it.
func (a Async) SyncWithin(ctx context.Context, maxStale time.Duration) *Pending[time.Duration] {
	o := newOp[wire.SyncWithinRequest](a.c, wire.OpSyncWithin, func(_ *call, r *jute.Reader) time.Duration {
		var resp wire.SyncWithinResponse
		resp.Decode(r)
		return resp.Staleness
	})
	o.req = wire.SyncWithinRequest{MaxStale: maxStale}
	return o.submit(ctx)
}
