package state

import (
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// reuseSequence is a deliberate fault (package fault): the number is that of
// the present children, which comes again when some have been deleted.
func (m *Machine) reuseSequence(r *znode.CreateRequest) {
	names, _, _ := m.tree.Children(r.Path[:max(1, strings.LastIndexByte(r.Path, '/'))], m.txn.Identities)
	path := fmt.Sprintf("%s%010d", r.Path, len(names))
	if _, code := m.tree.Exists(path, m.txn.Identities); code != znode.ErrNoNode {
		return
	}
	ephemeral := r.Mode.Ephemeral()
	r.Path, r.Mode = path, znode.Persistent
	if ephemeral {
		r.Mode = znode.Ephemeral
	}
}
