package state

import (
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// begin starts a transaction. Its zxid is the next number; a new term starts a
// new high part. A full counter carries into the high part, which then runs
// ahead of the term: nothing but the order counts. A mirror's zxids are its source's, and what it does besides, such as
// a change of /zookeeper/config, has the last one.
func (m *Machine) begin(term uint64, timeMillis int64) {
	if m.mirror == nil {
		m.zxid = max(m.zxid+1, znode.Zxid(term<<32|1))
	}
	c := &m.command
	m.txn.Reset()
	m.txn.Zxid, m.txn.TimeMillis = m.zxid, timeMillis
	m.txn.Session, m.txn.Identities, m.txn.Trace = c.Session, rightsOf(c), c.Trace
	m.txn.ExtendedTypes = c.Flags&FlagExtendedTypes != 0
	m.txn.EnforceQuota = c.Flags&FlagEnforceQuota != 0
	m.txn.FirstRules = m.level < level2
}

// applyApart carries out a command that is no transaction, or makes its own.
func (m *Machine) applyApart(c *Command, from ServerID, term uint64, timeMillis int64, obs Observer) {
	switch c.Op {
	case OpLevel:
		m.raiseLevel(c.Level)
	case OpMirror:
		m.applyMirror(c, from, term, timeMillis, obs)
	case OpReconfig:
		m.reconfigure(c, term, timeMillis, obs)
	case OpAttach:
		m.attach(c, from, obs)
	case OpPurge:
		m.purge(c, obs)
	}
}

// purge has the servers forget the values of a znode, and with Below of those below it. It requires WRITE; of a znode
// that is gone, DELETE on the nearest one above, and who remembers its ACL checks that, too. The state has no values
// but the present ones, which stay.
func (m *Machine) purge(c *Command, obs Observer) {
	x, at, want := &m.txn, c.Path, znode.PermWrite
	if znode.ValidatePath(at) != nil {
		m.result.Code = znode.ErrBadArguments
		return
	}
	x.Reset()
	x.Session, x.Identities = c.Session, rightsOf(c)
	for m.result.Code = m.tree.Allows(x, at, want); m.result.Code == znode.ErrNoNode; {
		at, want = znode.Parent(at), znode.PermDelete
		m.result.Code = m.tree.Allows(x, at, want)
	}
	if m.result.Code != znode.OK {
		return
	}
	e := znode.Event{Type: znode.EventPurged, Path: c.Path, Zxid: m.zxid, Txn: x}
	if c.Below {
		e.Type = znode.EventPurgedBelow
	}
	obs.Event(&e)
}

// transact runs the transaction's operation.
func (m *Machine) transact(c *Command, from ServerID) {
	r := &m.result
	switch c.Op {
	case OpMulti:
		m.multi(c.Ops)
	case OpBranch:
		m.branch(c)
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

// rightsOf returns the identities of a command's client.
func rightsOf(c *Command) []znode.ID {
	if fault.On(fault.ForgetRights) {
		return []znode.ID{znode.SuperIDs}
	}
	return c.Identities
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
	case OpGet, OpChildren:
		m.read(c, out)
	}
}

// lifeOf is the TTL that a command asks for, in milliseconds.
func lifeOf(c *Command) int64 {
	if fault.On(fault.ShortLife) {
		return c.TTL / 4
	}
	return c.TTL
}

// reuseSequence implements the deliberate fault ReuseSequence (package fault): it numbers by the current children, so
// that numbers recur after deletions.
func (m *Machine) reuseSequence(r *znode.CreateRequest) {
	names, _, _ := m.tree.Children(r.Path[:max(1, strings.LastIndexByte(r.Path, '/'))], m.txn.Identities)
	path := r.Path + znode.FormatSequence(int32(len(names)))
	if _, code := m.tree.Exists(path, m.txn.Identities); code != znode.ErrNoNode {
		return
	}
	ephemeral := r.Mode.Ephemeral()
	r.Path, r.Mode = path, znode.Persistent
	if ephemeral {
		r.Mode = znode.Ephemeral
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

// openSession adds a new session, owned by the server that accepted the client.
// ErrNodeExists means that the id is taken and another must be tried.
func (m *Machine) openSession(c *Command, from ServerID) {
	s := session.Session{
		ID: c.Session, Timeout: c.Timeout, Password: c.Password, Owner: uint64(from),
	}
	if !m.sessions.Add(s) {
		m.result.Code = znode.ErrNodeExists
		return
	}
	m.result.Session = m.sessions.Get(c.Session)
}

// attach moves a session to the server to which its client has connected. It is
// not a transaction: clients expect consecutive zxids on a quiet server.
func (m *Machine) attach(c *Command, from ServerID, obs Observer) {
	former, ok := m.sessions.Attach(c.Session, c.Password, c.Timeout, uint64(from))
	if !ok {
		m.result.Code = znode.ErrSessionExpired
		return
	}
	m.result.Session = m.sessions.Get(c.Session)
	obs.SessionAttached(m.result.Session, ServerID(former))
}

// MaxSubtree bounds the znodes that OpDeleteAll deletes: all other commands wait while it
// is applied, about a microsecond per znode.
const MaxSubtree = 10_000

// deleteAll deletes a znode and all below it, or nothing. It finds the znodes below when the command is applied, so
// that the effect and the result of the command follow from it and its place in the log alone: a repetition with the
// same Key is the same command.
//
// It requires permission to read every znode and to delete below each parent, as does a
// client that lists and deletes one by one. ErrNotEmpty means that there are more than
// MaxSubtree; with ErrNoAuth the result's Path is the znode whose ACL forbids it.
func (m *Machine) deleteAll(c *Command) {
	r := &m.result
	r.Path = c.Path
	below, path, code := m.below(c.Path)
	if code != znode.OK {
		r.Code, r.Path = code, path
		return
	}
	m.tree.Begin(&m.txn)
	for _, path := range slices.Backward(below) {
		if r.Path, r.Code = path, m.tree.Delete(&m.txn, path, znode.AnyVersion); r.Code != znode.OK {
			break
		}
	}
	if r.Code == znode.OK {
		if r.Path, r.Code = c.Path, m.guard(c, znode.Parent(c.Path), znode.PermDelete); r.Code == znode.OK {
			r.Code = m.tree.Delete(&m.txn, c.Path, c.Version)
		}
	}
	switch r.Code {
	case znode.OK:
		m.tree.Commit(&m.txn)
		return
	case znode.ErrNoAuth:
		r.Path = znode.Parent(r.Path)
	}
	m.tree.Rollback(&m.txn)
}

// below lists the znodes below a znode, parents before their children, or returns the
// path at which it failed. There are none below a znode that does not exist.
func (m *Machine) below(path string) (paths []string, failed string, code znode.Error) {
	if znode.ValidatePath(path) != nil {
		return nil, path, znode.ErrBadArguments
	}
	pending := []string{path}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		st, code := m.tree.Exists(at, m.txn.Identities)
		switch {
		case code == znode.ErrNoNode && len(paths) == 0:
			return nil, "", znode.OK // deleting it will fail
		case code != znode.OK:
			return nil, at, code
		case len(paths)+int(st.NumChildren) >= MaxSubtree:
			return nil, path, znode.ErrNotEmpty
		case st.NumChildren == 0:
			continue
		}
		names, _, code := m.tree.Children(at, m.txn.Identities)
		if code != znode.OK {
			return nil, at, code
		}
		for _, name := range names {
			child := znode.Join(at, name)
			paths, pending = append(paths, child), append(pending, child)
		}
	}
	return paths, "", znode.OK
}
