package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/znode"
)

// A branch is a transaction with conditions: if all of them hold in the state before it, its first operations are
// carried out, all or none, and otherwise the rest. Its reads see what the operations before them have done. Like a
// multi it always takes a place in the log and a zxid, also if it changes nothing: what it reads is the state of that
// moment, at every server.
//
// It needs READ on the znodes that it compares and reads. One that it may not compare fails it, whatever the other
// conditions are.

// Branch is what an OpBranch has besides its operations.
type Branch struct {
	If   []znode.Condition
	Then int // how many of Ops are carried out if all conditions hold
}

// Read is what an OpGet or OpChildren has read, with OpResult.Stat. It is immutable.
type Read struct {
	Data     []byte   // OpGet; nil for null
	Children []string // OpChildren: names, in no particular order
}

// The bounds of what the reads of a branch return, counted as Read.size: enough for a znode of the default
// jute.maxbuffer, and less if the answer is kept for its Key. A read beyond them fails with ErrSystem, as other replies
// do that are too long. They are the same on all servers, because a branch that fails changes nothing.
const (
	MaxReads      = 1 << 20
	MaxKeyedReads = 64 << 10
)

// What reads count at least: more than they take on the wire. A branch so lists 16,000 names at most, in half a
// millisecond, while all other commands wait.
const (
	readBytes  = 96
	childBytes = 64
)

func (r *Read) size() int {
	if r == nil {
		return 0
	}
	n := readBytes + len(r.Data)
	for _, name := range r.Children {
		n += childBytes + len(name)
	}
	return n
}

// ReadBytes bounds about how many bytes the reads in r take in a reply.
func (r *Result) ReadBytes() (n int) {
	for i := range r.Multi {
		n += r.Multi[i].Read.size()
	}
	return n
}

// Branches returns the operations of an OpBranch: those that are carried out if its conditions hold, and the others.
func (c *Command) Branches() (then, otherwise []Command) {
	return c.Ops[:c.Branch.Then], c.Ops[c.Branch.Then:]
}

// Taken returns the operations of an OpBranch that were to be carried out.
func (c *Command) Taken(r *Result) []Command {
	then, otherwise := c.Branches()
	if r.Then {
		return then
	}
	return otherwise
}

// branch carries out an OpBranch.
func (m *Machine) branch(c *Command) {
	r := &m.result
	held := true
	for i := range c.Branch.If {
		x := &c.Branch.If[i]
		holds, code := m.tree.Holds(x, m.txn.Identities)
		if code != znode.OK {
			r.Code, r.Path = code, x.Path
			return
		}
		held = held && holds
	}
	r.Then = held || fault.On(fault.IgnoreConditions)
	m.readRoom = MaxReads
	if c.Flags&FlagKeyed != 0 {
		m.readRoom = MaxKeyedReads
	}
	m.multi(c.Taken(r))
}

// read carries out an OpGet or OpChildren.
func (m *Machine) read(c *Command, out *OpResult) {
	var stat znode.Stat
	if stat, out.Code = m.tree.Exists(c.Path, m.txn.Identities); out.Code != znode.OK {
		return
	}
	read := &Read{}
	switch {
	case c.Op == OpGet:
		read.Data, _, _ = m.tree.Get(c.Path, m.txn.Identities)
	case int(stat.NumChildren) > m.readRoom/childBytes: // not listed in vain
		out.Code = znode.ErrSystem
		return
	default:
		read.Children, _, _ = m.tree.Children(c.Path, m.txn.Identities)
		if m.command.Flags&FlagKeyed != 0 { // the answer is part of the state, and servers have orders of their own
			slices.Sort(read.Children) // 1,000 at most; 60,000 would take 30 ms
		}
	}
	if m.readRoom -= read.size(); m.readRoom < 0 {
		out.Code = znode.ErrSystem
		return
	}
	out.Stat, out.Read = stat, read
}

func (b *Branch) append(out []byte, ops []Command) []byte {
	out = appendUint(out, uint64(len(b.If)))
	for i := range b.If {
		x := &b.If[i]
		out = append(appendString(out, x.Path), byte(x.Of), byte(x.Is))
		out = appendData(appendInt(out, x.Number), x.Data)
	}
	return appendOps(appendUint(out, uint64(b.Then)), ops)
}

// minConditionBytes is the least size of a condition.
const minConditionBytes = 5

func readBranch(r *reader) *Branch {
	b := new(Branch)
	for n := r.count(minConditionBytes); n > 0; n-- {
		x := znode.Condition{Path: r.string(), Of: znode.Attribute(r.byte()), Is: znode.Relation(r.byte())}
		x.Number, x.Data = r.int(), r.data()
		if r.err == nil && !x.Known() {
			r.fail(errCondition(x))
		}
		b.If = append(b.If, x)
	}
	b.Then = int(min(r.uint(), MaxCommand))
	return b
}

type errCondition znode.Condition

func (e errCondition) Error() string {
	return fmt.Sprintf("unknown condition %d with relation %d", e.Of, e.Is)
}

// check returns an error if c, an OpBranch, could not be decoded.
func (b *Branch) check(c *Command) error {
	if b == nil || b.Then < 0 || b.Then > len(c.Ops) {
		return fmt.Errorf("a branch of %d operations without conditions, or with others", len(c.Ops))
	}
	for i := range b.If {
		if !b.If[i].Known() {
			return errCondition(b.If[i])
		}
	}
	return nil
}

// size bounds the bytes of the conditions' encoding.
func (b *Branch) size() (n int) {
	const numbers = 32
	if b != nil {
		for i := range b.If {
			n += numbers + len(b.If[i].Path) + len(b.If[i].Data)
		}
	}
	return n
}

func (r *Read) append(b []byte) []byte {
	if r == nil { // it failed, or another operation did
		return append(b, 0)
	}
	b = appendUint(appendData(append(b, 1), r.Data), uint64(len(r.Children)))
	for _, name := range r.Children {
		b = appendString(b, name)
	}
	return b
}

func readRead(in *reader) *Read {
	if in.byte() == 0 {
		return nil
	}
	r := &Read{Data: in.data()}
	for n := in.count(1); n > 0; n-- {
		r.Children = append(r.Children, in.string())
	}
	return r.clone()
}

// clone returns a copy that shares no memory with the tree or an entry.
func (r *Read) clone() *Read {
	if r == nil {
		return nil
	}
	c := &Read{Data: bytes.Clone(r.Data)}
	for _, name := range r.Children {
		c.Children = append(c.Children, strings.Clone(name))
	}
	return c
}
