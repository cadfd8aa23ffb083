package state

import (
	"fmt"
	"io"
	"strings"

	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// SessionMemory is the memory of a session, in bytes, with its place in the leader's clock.
const SessionMemory = 512

// relayMemory is that of a relay besides its command, in bytes.
const relayMemory = 256

// Memory estimates how much of the heap the state takes, in bytes, in constant time.
func (m *Machine) Memory() int64 {
	bytes := m.tree.Memory() + int64(m.sessions.Len())*SessionMemory + int64(m.keys.bytes)
	if m.upload != nil {
		bytes += m.upload.bytes
	}
	if m.mirror != nil {
		bytes += int64(m.mirror.relays.bytes) + int64(len(m.mirror.relays.all))*relayMemory
	}
	return bytes
}

// MaxGrowth bounds, approximately, how much c adds to Memory: 0 for a command that adds nothing, and for
// opening and closing sessions, without which no client could make room.
func (c *Command) MaxGrowth() int64 { return c.growth(nil, c.Identities) }

// growth is MaxGrowth for a client with these identities. An ACL that a znode of t has adds nothing.
func (c *Command) growth(t *znode.Tree, ids []znode.ID) (bytes int64) {
	switch c.Op {
	case OpCreate:
		return znode.CreateMemory(c.Path, len(c.Data)) + growthOfACL(t, c.ACL, ids)
	case OpSetData:
		return znode.DataMemory(int64(len(c.Data)))
	case OpSetACL:
		return growthOfACL(t, c.ACL, ids)
	case OpMulti:
		for i := range c.Ops {
			bytes += c.Ops[i].growth(t, ids)
		}
	case OpBranch:
		then, otherwise := c.asMultis()
		return max(then.growth(t, ids), otherwise.growth(t, ids))
	case OpRestore:
		return int64(len(c.Data))
	case OpMirror:
		return c.growthOfMirror(t)
	}
	return bytes
}

// growthOfMirror is growth of a step of a mirror. A transaction that cannot be decoded ends it.
func (c *Command) growthOfMirror(t *znode.Tree) (bytes int64) {
	if c.Mirror != MirrorFollow {
		return int64(len(c.Data))
	}
	for in := (reader{b: c.Data}); in.off < len(in.b); {
		txn, err := replica.ParseTxn(in.take(in.count(1)))
		if in.err != nil || err != nil {
			break
		}
		bytes += growthOfChange(t, &txn.Change)
	}
	return bytes
}

// growthOfChange is how much a change adds to t, or at most to any tree.
func growthOfChange(t *znode.Tree, c *replica.Change) (bytes int64) {
	var have znode.Stat
	code := znode.ErrNoNode
	if t != nil {
		have, code = t.Exists(c.Path, super)
	}
	switch c.Op {
	case replica.OpCreate, replica.OpCreate2, replica.OpCreateContainer, replica.OpCreateTTL:
		return znode.CreateMemory(c.Path, len(c.Data)) + growthOfACL(t, c.ACL, nil)
	case replica.OpDelete, replica.OpDeleteContainer:
		if code == znode.OK {
			return -znode.CreateMemory(c.Path, int(have.DataLength))
		}
	case replica.OpSetData:
		return znode.DataMemory(int64(len(c.Data))) - znode.DataMemory(int64(have.DataLength))
	case replica.OpSetACL:
		return growthOfACL(t, c.ACL, nil)
	case replica.OpMulti:
		if c.Failed() {
			return 0
		}
		for i := range c.Multi {
			bytes += growthOfChange(t, &c.Multi[i])
		}
	}
	return bytes
}

func growthOfACL(t *znode.Tree, list []znode.ACL, ids []znode.ID) int64 {
	if t != nil {
		return t.ACLGrowth(list, ids)
	}
	_, memory := znode.CompletedACL(list, ids)
	return memory
}

// Growth is how much c adds in the current state; it may be negative. A command that will fail, or will get an
// earlier result by its key, adds nothing.
func (m *Machine) Growth(c *Command) (bytes int64) {
	if c.Flags&FlagKeyed != 0 && m.Answered(c.Key) {
		return 0
	}
	switch c.Op {
	case OpCreate:
		_, there := m.dataLength(c.Path)
		if _, parent := m.dataLength(znode.Parent(c.Path)); !parent || there && !c.Mode.Sequential() {
			return 0
		}
	case OpMulti:
		for i := range c.Ops {
			bytes += m.growthInMulti(&c.Ops[i], c.Identities)
		}
		return bytes
	case OpBranch:
		then, otherwise := c.asMultis()
		return max(m.Growth(&then), m.Growth(&otherwise))
	case OpSetData:
		return m.growthInMulti(c, c.Identities)
	}
	return c.growth(m.tree, c.Identities)
}

// asMultis are the transactions of which an OpBranch carries out one.
func (c *Command) asMultis() (then, otherwise Command) {
	a, b := c.Branches()
	then = Command{Op: OpMulti, Identities: c.Identities, Ops: a}
	otherwise = Command{Op: OpMulti, Identities: c.Identities, Ops: b}
	return then, otherwise
}

// growthInMulti is Growth for an operation that others may precede in its transaction.
func (m *Machine) growthInMulti(c *Command, ids []znode.ID) int64 {
	switch c.Op {
	case OpSetData:
		have, _ := m.dataLength(c.Path)
		return znode.DataMemory(int64(len(c.Data))) - znode.DataMemory(int64(have))
	case OpDelete:
		if have, there := m.dataLength(c.Path); there {
			return -znode.CreateMemory(c.Path, have)
		}
	}
	return c.growth(m.tree, ids)
}

func (m *Machine) dataLength(path string) (bytes int, there bool) {
	stat, code := m.tree.Exists(path, super)
	return int(stat.DataLength), code == znode.OK
}

// super is an identity with all permissions.
var super = []znode.ID{znode.SuperIDs}

// maxACLMemory bounds the memory of all ACLs of one command, in bytes, with "auth" replaced by the client's identities.
const maxACLMemory = 16 << 20

// forbids returns why no client may send c, through any server: ErrUnimplemented for a command that only the leader
// may send, ErrInvalidACL for a list that is too long. Below level2 such commands in the log are applied
// (docs/adr/0032).
func (m *Machine) forbids(c *Command) znode.Error {
	switch {
	case (c.Op == OpReap || c.Op == OpMirror) && c.Session != 0:
		return znode.ErrUnimplemented
	case c.HasLongACL() && !m.KeepsACL(c):
		return znode.ErrInvalidACL
	}
	return znode.OK
}

// harms reports whether c is forbidden in any state. A server of release 1.0 may send it.
func (c *Command) harms() bool {
	_, memory := c.completedACLs(c.Identities)
	return memory > maxACLMemory || (c.Op == OpReap || c.Op == OpMirror) && c.Session != 0
}

// HasLongACL reports whether c may not be proposed because of its ACLs: one has more than znode.MaxACL entries, or
// all of them take more than maxACLMemory. A client chooses both entries and identities, and could multiply them.
func (c *Command) HasLongACL() bool {
	longest, memory := c.completedACLs(c.Identities)
	return longest > znode.MaxACL || memory > maxACLMemory
}

// completedACLs is the number of entries of c's longest ACL, and the memory of all, in bytes.
func (c *Command) completedACLs(ids []znode.ID) (longest int, memory int64) {
	for i := range c.Ops {
		n, m := c.Ops[i].completedACLs(ids)
		longest, memory = max(longest, n), memory+m
	}
	if len(c.ACL) > 0 {
		n, m := znode.CompletedACL(c.ACL, ids)
		longest, memory = max(longest, n), memory+m
	}
	return longest, memory
}

// KeepsACL reports whether c gives a znode an ACL not longer than its current one, which is never refused.
func (m *Machine) KeepsACL(c *Command) bool {
	have, _, _ := m.tree.ACLOf(c.Path, super)
	entries, _ := znode.CompletedACL(c.ACL, c.Identities)
	return c.Op == OpSetACL && entries <= len(have)
}

// LongACL is a list that no client can set today: a znode of release 1.0 has it, or a command in its log sets it.
type LongACL struct {
	Index   uint64 // of the log's entry; 0: in the snapshot
	Path    string // of the znode
	Entries int    // with "auth" replaced by the client's identities
	Memory  int64  // bytes, about
}

// String describes where the list is and how long it is.
func (l LongACL) String() string {
	where := "in the snapshot"
	if l.Index > 0 {
		where = fmt.Sprintf("set by entry %d of the log", l.Index)
	}
	return fmt.Sprintf("the ACL of %.200q, %s: %d entries, %d MiB", l.Path, where, l.Entries, l.Memory>>20)
}

// LongACLsOf returns the long lists of a snapshot's znodes.
func LongACLsOf(snapshot io.Reader) (found []LongACL, err error) {
	err = VisitSnapshot(snapshot, func(z *znode.Record) error {
		if memory := znode.ACLMemory(z.ACL); len(z.ACL) > znode.MaxACL || memory > maxACLMemory {
			found = append(found, LongACL{Path: strings.Clone(z.Path), Entries: len(z.ACL), Memory: memory})
		}
		return nil
	})
	return found, err
}

// LongACLsIn returns the long lists of the commands in an entry of the log. It applies nothing.
func LongACLsIn(index uint64, entry []byte) (found []LongACL, err error) {
	_, err = rewrite(entry, func(c *Command) bool {
		found = c.longACLs(index, c.Identities, found)
		return false
	})
	return found, err
}

func (c *Command) longACLs(index uint64, ids []znode.ID, found []LongACL) []LongACL {
	for i := range c.Ops {
		found = c.Ops[i].longACLs(index, ids, found)
	}
	if len(c.ACL) > 0 {
		if n, m := znode.CompletedACL(c.ACL, ids); n > znode.MaxACL || m > maxACLMemory {
			found = append(found, LongACL{index, strings.Clone(c.Path), n, m})
		}
	}
	return found
}

// WithoutACLs returns an entry in which commands whose ACLs take more than limit bytes are replaced by others that
// fail, and the lists of those. It makes a log readable that cannot be applied in the available memory.
func WithoutACLs(index uint64, entry []byte, limit int64) (without []byte, skipped []LongACL, err error) {
	without, err = rewrite(entry, func(c *Command) bool {
		longest, memory := c.completedACLs(c.Identities)
		if memory > limit {
			skipped = append(skipped, LongACL{index, strings.Clone(c.pathOfACL()), longest, memory})
		}
		return memory > limit
	})
	return without, skipped, err
}

// pathOfACL is the first path to which c gives an ACL.
func (c *Command) pathOfACL() string {
	for i := range c.Ops {
		if len(c.Ops[i].ACL) > 0 {
			return c.Ops[i].Path
		}
	}
	return c.Path
}
