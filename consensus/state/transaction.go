package state

import (
	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/znode"
)

// begin starts a transaction. Its zxid is the next number; a new term starts a
// new high part. A full counter carries into the high part, which then runs
// ahead of the term: nothing but the order counts.
func (m *Machine) begin(term uint64, timeMillis int64) {
	m.zxid = max(m.zxid+1, znode.Zxid(term<<32|1))
	c := &m.command
	m.txn.Reset()
	m.txn.Zxid, m.txn.TimeMillis = m.zxid, timeMillis
	m.txn.Session, m.txn.Identities = c.Session, rightsOf(c)
	m.txn.ExtendedTypes = c.Flags&FlagExtendedTypes != 0
	m.txn.EnforceQuota = c.Flags&FlagEnforceQuota != 0
	m.txn.FirstRules = m.level < level2
}

// transact runs the transaction's operation.
func (m *Machine) transact(c *Command, from ServerID) {
	r := &m.result
	switch c.Op {
	case OpMulti:
		m.multi(c.Ops)
	case OpCreateSession:
		m.openSession(c, from)
	case OpCloseSession, OpExpireSession:
		m.closed, m.deleted = m.sessions.Get(c.Session), nil
		m.sessions.Remove(c.Session)
		if c.Op == OpExpireSession && fault.On(fault.SkipEphemeral) {
			return
		}
		m.deleted = m.tree.DeleteOwned(&m.txn, c.Session)
	case OpReap:
		r.Code = m.tree.Reap(&m.txn, c.Path)
	case OpDeleteAll:
		m.deleteAll(c)
	case OpMember:
		m.setMember(c.Member)
		m.renderConfig()
	default:
		var out OpResult
		m.edit(c, &out)
		r.Code, r.Path, r.Stat = out.Code, out.Path, out.Stat
	}
}

// edit runs one operation on the tree.
func (m *Machine) edit(c *Command, out *OpResult) {
	x := &m.txn
	out.Op, out.Kind = c.Op, c.Kind
	switch c.Op {
	case OpCreate:
		if c.Mode.Ephemeral() && x.Session == 0 {
			out.Code = znode.ErrBadArguments // no session would own it
			return
		}
		req := znode.CreateRequest{
			Kind: c.Kind, Path: c.Path, Data: c.Data, ACL: c.ACL, Mode: c.Mode, TTL: lifeOf(c),
		}
		if req.Mode.Sequential() && fault.On(fault.ReuseSequence) {
			m.reuseSequence(&req)
		}
		out.Path, out.Stat, out.Code = m.tree.Create(x, &req)
	case OpDelete:
		if out.Code = m.guard(c, znode.Parent(c.Path), znode.PermDelete); out.Code == znode.OK {
			out.Code = m.tree.Delete(x, c.Path, c.Version)
		}
	case OpSetData:
		if out.Code = m.guard(c, c.Path, znode.PermWrite); out.Code == znode.OK {
			out.Stat, out.Code = m.tree.SetData(x, c.Path, c.Data, c.Version)
		}
	case OpSetACL:
		out.Stat, out.Code = m.tree.SetACL(x, c.Path, c.ACL, c.Version)
	case OpCheck:
		if out.Code = m.guard(c, c.Path, znode.PermRead); out.Code == znode.OK {
			out.Code = m.tree.Check(x, c.Path, c.Version)
		}
	case OpCheckAbsent:
		out.Code = m.absent(c.Path)
	}
}

func (m *Machine) absent(path string) znode.Error {
	if znode.ValidatePath(path) != nil {
		return znode.ErrBadArguments
	}
	switch _, code := m.tree.Exists(path, m.txn.Identities); code {
	case znode.OK:
		return znode.ErrNodeExists
	case znode.ErrNoNode:
		return znode.OK
	default:
		return code
	}
}

// guard compares the mzxid that the command requires. It leaves other errors to the tree, also a missing
// permission: otherwise a client would learn the mzxid of a znode that it may not see.
func (m *Machine) guard(c *Command, of string, want znode.Perms) znode.Error {
	if c.Mzxid == 0 || m.level >= level2 && m.tree.Allows(&m.txn, of, want) != znode.OK {
		return znode.OK
	}
	// A client that may change a znode but not read it must not overwrite another
	// version.
	stat, code := m.tree.Exists(c.Path, []znode.ID{znode.SuperIDs})
	if code == znode.OK && stat.Mzxid != c.Mzxid {
		return znode.ErrBadVersion
	}
	return znode.OK
}

// multi runs operations as one transaction: all or none.
func (m *Machine) multi(ops []Command) {
	m.tree.Begin(&m.txn)
	results := m.result.Multi[:0]
	failed := -1
	for i := range ops {
		var out OpResult
		m.edit(&ops[i], &out)
		results = append(results, out)
		if out.Code != znode.OK {
			failed = i
			break
		}
	}
	if failed < 0 || fault.On(fault.HalfMulti) {
		m.tree.Commit(&m.txn)
	} else {
		m.tree.Rollback(&m.txn)
		for i := range results[:failed] {
			results[i] = OpResult{Op: ops[i].Op, Kind: ops[i].Kind}
		}
		for i := failed + 1; i < len(ops); i++ {
			results = append(results, OpResult{
				Op: ops[i].Op, Kind: ops[i].Kind, Code: znode.ErrRuntimeInconsistency,
			})
		}
	}
	m.result.Multi = results
}
