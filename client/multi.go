package client

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Multi gathers operations for one transaction: all of them happen, or none. A
// method that adds an operation returns a pointer to its future result, if it
// has one. A Multi is not safe for concurrent use, and may be committed once.
type Multi struct {
	c    *Client
	ops  []multiItem
	size int
	err  error // the first operation that cannot be sent
	read error // the first that only Branch sends
}

type multiItem struct {
	wire.MultiOp
	path string // as the caller gave it
	// fill stores the result, of the type that belongs to the operation; nil if
	// there is nothing to store.
	fill func(c *Client, r wire.Response)
}

// MultiCreate is the result of a create in a Multi, after a commit without
// error.
type MultiCreate struct {
	Path string // with the sequence number, if any
	// Stat is zero if the server does not report it: ZooKeeper 3.8 answers a create in a
	// transaction with the path only.
	Stat Stat
}

// MultiSet is the result of a set in a Multi, after a commit without error.
type MultiSet struct {
	Stat Stat
}

// MultiError reports which operation made a transaction fail. None of the others
// happened either.
type MultiError struct {
	Index int    // of the operation, from 0
	Op    string // ZooKeeper's name of it
	Path  string
	Err   error
}

// Error names the operation that failed, and the reason.
func (e *MultiError) Error() string {
	return fmt.Sprintf("operation %d, %s %s: %v", e.Index, e.Op, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *MultiError) Unwrap() error { return e.Err }

// Multi returns an empty transaction.
func (c *Client) Multi() *Multi { return &Multi{c: c} }

// Len returns how many operations have been added.
func (m *Multi) Len() int { return len(m.ops) }

func (m *Multi) add(item multiItem, checkPath string, err error) {
	if err == nil {
		err = znode.ValidatePath(checkPath)
	}
	if err != nil && m.err == nil {
		m.err = &MultiError{len(m.ops), item.Type.String(), item.path, err}
	}
	m.size += requestOverhead + len(item.path) + len(m.c.chroot)
	m.ops = append(m.ops, item)
}

// Create adds the creation of a znode; see Client.Create.
func (m *Multi) Create(path string, data []byte, mode Mode, acl ...ACL) *MultiCreate {
	op := wire.MultiOp{Type: wire.OpCreate2, Request: &wire.CreateRequest{
		Path: m.c.abs(path), Data: data, ACL: m.c.aclOrDefault(acl), Mode: mode,
	}}
	if mode == Container {
		op.Type = wire.OpCreateContainer
	}
	return m.addCreate(op, path, data, mode, checkMode(mode))
}

// CreateTTL adds the creation of a znode with a time to live; see
// Client.CreateTTL.
func (m *Multi) CreateTTL(
	path string, data []byte, mode Mode, ttl time.Duration, acl ...ACL,
) *MultiCreate {
	op := wire.MultiOp{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{
		Path: m.c.abs(path), Data: data, ACL: m.c.aclOrDefault(acl), Mode: mode,
		TTLMillis: ttl.Milliseconds(),
	}}
	return m.addCreate(op, path, data, mode, checkTTL(mode, ttl))
}

func (m *Multi) addCreate(
	op wire.MultiOp, path string, data []byte, mode Mode, err error,
) *MultiCreate {
	result := new(MultiCreate)
	m.size += len(data)
	check := path
	if mode.Sequential() {
		check += "0"
	}
	m.add(multiItem{op, path, func(c *Client, r wire.Response) {
		switch reply := r.(type) {
		case *wire.Create2Response:
			*result = MultiCreate{Path: c.rel(reply.Path), Stat: reply.Stat}
		case *wire.CreateResponse:
			*result = MultiCreate{Path: c.rel(reply.Path)}
		}
	}}, check, err)
	return result
}

// Set adds the replacement of a znode's data; see Client.Set.
func (m *Multi) Set(path string, data []byte, version Version) *MultiSet {
	result := new(MultiSet)
	m.size += len(data)
	m.add(multiItem{
		wire.MultiOp{Type: wire.OpSetData, Request: &wire.SetDataRequest{
			Path: m.c.abs(path), Data: data, Version: version,
		}}, path, func(_ *Client, r wire.Response) {
			result.Stat = r.(*wire.SetDataResponse).Stat
		},
	}, path, nil)
	return result
}

// Delete adds the deletion of a znode; see Client.Delete.
func (m *Multi) Delete(path string, version Version) {
	m.add(multiItem{wire.MultiOp{Type: wire.OpDelete, Request: &wire.DeleteRequest{
		Path: m.c.abs(path), Version: version,
	}}, path, nil}, path, nil)
}

// Check adds the condition that a znode exists and has a version, or exists at
// all if that is AnyVersion.
func (m *Multi) Check(path string, version Version) {
	m.add(multiItem{wire.MultiOp{Type: wire.OpCheck, Request: &wire.CheckRequest{
		Path: m.c.abs(path), Version: version,
	}}, path, nil}, path, nil)
}

// Commit executes the transaction. If one operation fails none happens, and the
// error is a *MultiError that names it, in an *OpError.
//
// Errors: those of the operations; ErrOutcomeUnknown.
func (m *Multi) Commit(ctx context.Context) error {
	v, err := write(ctx, m.commit(ctx, false))
	if err == nil {
		fillResults(m.c, m.ops, v.results)
	}
	return err
}

// CommitAsync is Commit without waiting for the answer. The results are set
// when the Pending is done.
func (m *Multi) CommitAsync(ctx context.Context) *Pending[MultiReply] { return m.commit(ctx, true) }

// MultiReply is the answer to multi and multiRead. The results are in the
// values that the methods returned which added the operations.
type MultiReply struct{ results []wire.MultiResult }

type multiOp struct {
	Pending[MultiReply]
	req   wire.MultiRequest
	items []multiItem
	// fills reports that decode stores the results rather than the caller, who
	// may read them at any time after it stopped waiting.
	fills bool
}

func (m *Multi) commit(ctx context.Context, fills bool) *Pending[MultiReply] {
	op := newMultiOp(m.c, wire.OpMulti, m.ops, m.size)
	if op.fills, op.err = fills, m.err; op.err == nil {
		op.err = m.read
	}
	m.c.submit(ctx, op)
	return &op.Pending
}

func newMultiOp(c *Client, code wire.OpCode, items []multiItem, size int) *multiOp {
	op := &multiOp{Pending: Pending[MultiReply]{call: newCall(c, code)}, items: items}
	op.size += size
	op.req = wire.MultiRequest{Read: code == wire.OpMultiRead, Ops: wireOps(items)}
	return op
}

func wireOps(items []multiItem) []wire.MultiOp {
	ops := make([]wire.MultiOp, len(items))
	for i := range items {
		ops[i] = items[i].MultiOp
	}
	return ops
}

func (op *multiOp) request() wire.Request { return &op.req }

func (op *multiOp) decode(r *jute.Reader) {
	start := r.Offset()
	var resp wire.MultiResponse
	resp.Decode(r)
	if r.Err() != nil {
		return
	}
	if err := checkResults(op.items, resp.Results); err != nil {
		r.Fail(start, "multi", err)
		return
	}
	op.value.results = resp.Results
	if op.op == wire.OpMulti {
		op.err = blame(op.items, resp.Results)
	}
	if op.fills && op.err == nil {
		fillResults(op.c, op.items, resp.Results)
	}
}

// checkResults returns an error unless there is one result for each operation,
// of the matching type. It copies their data, because the frame's bytes are only lent.
func checkResults(items []multiItem, results []wire.MultiResult) error {
	if len(results) != len(items) {
		return fmt.Errorf("%d results for %d operations", len(results), len(items))
	}
	for i := range results {
		want := items[i].EffectiveType().ResultType()
		got := results[i].Type
		if got == wire.OpCreate && want == wire.OpCreate2 {
			continue // ZooKeeper 3.8
		}
		if got != want && got != wire.OpError {
			return fmt.Errorf("result %d is of type %s, want %s or error", i, got, want)
		}
		if get, ok := results[i].Response.(*wire.GetDataResponse); ok {
			get.Data = bytes.Clone(get.Data)
		}
	}
	return nil
}

// blame returns the error of the operation that made a transaction fail, or nil
// if none did.
func blame(items []multiItem, results []wire.MultiResult) error {
	failed := -1
	for i := range results {
		if results[i].Type != wire.OpError || results[i].Err == znode.OK {
			continue
		}
		// Those after the one that failed have ErrRuntimeInconsistency.
		if failed < 0 || results[failed].Err == ErrRuntimeInconsistency {
			failed = i
		}
	}
	if failed < 0 {
		return nil
	}
	item := &items[failed]
	return &MultiError{failed, item.Type.String(), item.path, results[failed].Err}
}

func fillResults(c *Client, items []multiItem, results []wire.MultiResult) {
	for i := range results {
		if fill := items[i].fill; fill != nil && results[i].Response != nil {
			fill(c, results[i].Response)
		}
	}
}

// MultiRead gathers reads of one state of the server. Unlike in a Multi, each
// succeeds or fails by itself. A MultiRead is not safe for concurrent use.
// Servers have it since ZooKeeper 3.6.
type MultiRead struct {
	c    *Client
	ops  []multiItem
	errs []*error // where the error of each goes
	size int
}

// MultiGet is the result of a get in a MultiRead.
type MultiGet struct {
	Data []byte
	Stat Stat
	Err  error // an *OpError or nil
}

// MultiChildren is the result of a list of children in a MultiRead.
type MultiChildren struct {
	Children []string // names, not paths
	Err      error    // an *OpError or nil
}

// MultiRead returns an empty request.
func (c *Client) MultiRead() *MultiRead { return &MultiRead{c: c} }

// Len returns how many reads have been added.
func (m *MultiRead) Len() int { return len(m.ops) }

// Get adds the reading of a znode's data and Stat.
func (m *MultiRead) Get(path string) *MultiGet {
	result := new(MultiGet)
	m.add(wire.OpGetData, path, &wire.GetDataRequest{Path: m.c.abs(path)}, &result.Err,
		func(_ *Client, r wire.Response) {
			reply := r.(*wire.GetDataResponse)
			result.Data, result.Stat = reply.Data, reply.Stat
		})
	return result
}

// Children adds the listing of a znode's children.
func (m *MultiRead) Children(path string) *MultiChildren {
	result := new(MultiChildren)
	m.add(wire.OpGetChildren, path, &wire.GetChildrenRequest{Path: m.c.abs(path)}, &result.Err,
		func(_ *Client, r wire.Response) {
			result.Children = r.(*wire.GetChildrenResponse).Children
		})
	return result
}

func (m *MultiRead) add(
	op wire.OpCode, path string, req wire.Request, err *error,
	fill func(*Client, wire.Response),
) {
	m.size += requestOverhead + len(path) + len(m.c.chroot)
	m.ops = append(m.ops, multiItem{wire.MultiOp{Type: op, Request: req}, path, fill})
	m.errs = append(m.errs, err)
}

// Do executes the request and fills in the results. The error is that of the
// whole request; the error of a single read is in its result.
func (m *MultiRead) Do(ctx context.Context) error {
	for i := range m.ops {
		if err := znode.ValidatePath(m.ops[i].path); err != nil {
			return &OpError{Op: wire.OpMultiRead.String(), Path: m.ops[i].path, Err: err}
		}
	}
	v, err := read(ctx, func() *Pending[MultiReply] { return m.start(ctx) })
	if err != nil {
		return err
	}
	fillResults(m.c, m.ops, v.results)
	for i := range v.results {
		*m.errs[i] = nil
		if code := v.results[i].Err; code != znode.OK {
			*m.errs[i] = &OpError{Op: m.ops[i].Type.String(), Path: m.ops[i].path, Err: code}
		}
	}
	return nil
}

func (m *MultiRead) start(ctx context.Context) *Pending[MultiReply] {
	op := newMultiOp(m.c, wire.OpMultiRead, m.ops, m.size)
	m.c.submit(ctx, op)
	return &op.Pending
}
