package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// MultiRead gathers reads that are answered together, at one moment of the
// server's state. Unlike in a Multi, each succeeds or fails for itself. A
// MultiRead is not safe for concurrent use. Servers have it since ZooKeeper 3.6.
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

// Do executes the request and fills in the results. The error is about the whole
// request; that of a single read is in its result.
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
	op := &multiOp{items: m.ops}
	m.c.prepareAny(&op.call, wire.OpMultiRead, "")
	op.size += m.size
	op.req = wire.MultiRequest{Read: true, Ops: wireOps(m.ops)}
	m.c.submit(ctx, op)
	return &op.Pending
}
