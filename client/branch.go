package client

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// The parts of a Condition.
type (
	// Condition compares an attribute of a znode. A comparison with a znode that does not exist is false, whatever
	// the relation, except OfExistence.
	Condition = znode.Condition
	// Attribute is what a Condition compares.
	Attribute = znode.Attribute
	// Relation is how it must compare.
	Relation = znode.Relation
)

// The attributes. A znode's mzxid stands for its data, and the pzxid for the list of its children: neither recurs when
// the znode is deleted and created.
const (
	OfExistence = znode.OfExistence // 1 or 0
	OfVersion   = znode.OfVersion
	OfMzxid     = znode.OfMzxid
	OfPzxid     = znode.OfPzxid
	OfChildren  = znode.OfChildren // how many there are
	OfOwner     = znode.OfOwner    // the session of an ephemeral; 0: it is none
	OfData      = znode.OfData
)

// The relations.
const (
	Equal    = znode.Equal
	NotEqual = znode.NotEqual
	Less     = znode.Less
	Greater  = znode.Greater
)

// Get adds the reading of a znode's data and Stat to a Multi that is given to Branch. It sees what the operations
// before it have done.
func (m *Multi) Get(path string) *MultiGet {
	result := new(MultiGet)
	m.addRead(wire.OpGetData, path, &wire.GetDataRequest{Path: m.c.abs(path)}, func(_ *Client, r wire.Response) {
		reply := r.(*wire.GetDataResponse)
		result.Data, result.Stat = reply.Data, reply.Stat
	})
	return result
}

// Children adds the listing of a znode's children to a Multi that is given to Branch; see Get.
func (m *Multi) Children(path string) *MultiChildren {
	result := new(MultiChildren)
	q := &wire.GetChildrenRequest{Path: m.c.abs(path)}
	m.addRead(wire.OpGetChildren, path, q, func(_ *Client, r wire.Response) {
		result.Children = r.(*wire.GetChildrenResponse).Children
	})
	return result
}

func (m *Multi) addRead(op wire.OpCode, path string, q wire.Request, fill func(*Client, wire.Response)) {
	if m.read == nil {
		m.read = &MultiError{Index: len(m.ops), Op: op.String(), Path: path, Err: ErrBadArguments}
	}
	m.add(multiItem{wire.MultiOp{Type: op, Request: q}, path, fill}, path, nil)
}

// Branch carries out the operations of then if all conditions hold, and those of otherwise if not, as one transaction:
// conditions, operations and reads are of one state, the newest. It reports which it was, also
// with the error of an operation, which is as that of Multi.Commit: nothing has happened. Either Multi may be nil, and
// both are used up.
//
// zk-lite has it, ZooKeeper does not. What the reads return is at most 1 MiB in all; beyond it they fail with
// ErrSystem.
//
// Errors: those of the operations; ErrNoAuth (READ) of a znode that is compared; ErrUnimplemented;
// ErrNotReadOnly of an ensemble that mirrors ZooKeeper; ErrOutcomeUnknown.
func (c *Client) Branch(ctx context.Context, conditions []Condition, then, otherwise *Multi) (bool, error) {
	p := c.branch(ctx, conditions, then, otherwise)
	v, err := write(ctx, p)
	if errors.As(err, new(*MultiError)) {
		return p.value.then, err // there was an answer
	}
	fillResults(c, v.items, v.results)
	return v.then, err
}

func (c *Client) branch(ctx context.Context, conditions []Condition, then, otherwise *Multi) *Pending[branchReply] {
	op := &branchOp{Pending: Pending[branchReply]{call: newCall(c, wire.OpBranch)}}
	for _, x := range conditions {
		x.Path = op.fullPath(x.Path)
		if op.size += requestOverhead + len(x.Data); op.err != nil {
			break
		}
		op.path = ""
		op.req.If = append(op.req.If, x)
	}
	for i, m := range []*Multi{then, otherwise} {
		if m == nil {
			continue
		}
		op.size += m.size
		if op.items[i] = m.ops; op.err == nil {
			op.err = m.err
		}
	}
	op.req.Then, op.req.Else = wireOps(op.items[0]), wireOps(op.items[1])
	c.submit(ctx, op)
	return &op.Pending
}

type branchReply struct {
	then    bool
	items   []multiItem // those that were carried out
	results []wire.MultiResult
}

type branchOp struct {
	Pending[branchReply]
	req   wire.BranchRequest
	items [2][]multiItem // then, otherwise
}

func (op *branchOp) request() wire.Request { return &op.req }

func (op *branchOp) decode(r *jute.Reader) {
	start := r.Offset()
	var resp wire.BranchResponse
	if resp.Decode(r); r.Err() != nil {
		return
	}
	op.value = branchReply{resp.Then, op.items[1], resp.Results}
	if resp.Then {
		op.value.items = op.items[0]
	}
	if err := checkResults(op.value.items, resp.Results); err != nil {
		r.Fail(start, "branch", err)
		return
	}
	op.err = blame(op.value.items, resp.Results)
}
