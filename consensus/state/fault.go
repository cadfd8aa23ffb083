package state

import (
	"strings"

	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/znode"
)

// The rest of the file is for deliberate faults (package fault).

// rightsOf returns the identities of a command's client.
func rightsOf(c *Command) []znode.ID {
	if fault.On(fault.ForgetRights) {
		return []znode.ID{znode.SuperIDs}
	}
	return c.Identities
}

// lifeOf is the TTL that a command asks for, in milliseconds.
func lifeOf(c *Command) int64 {
	if fault.On(fault.ShortLife) {
		return c.TTL / 4
	}
	return c.TTL
}

// reuseSequence is a deliberate fault (package fault): it numbers by the
// current children, so that numbers recur after deletions.
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
