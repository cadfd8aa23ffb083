package state

import "github.com/zk-lite/zk-lite/znode"

// sessionMemory is what a session takes of the heap, in bytes, with its place in the leader's clock.
const sessionMemory = 512

// Memory estimates how much of the heap the state takes, in bytes, in constant time.
func (m *Machine) Memory() int64 {
	bytes := m.tree.Memory() + int64(m.sessions.Len())*sessionMemory + int64(m.keys.bytes)
	if m.upload != nil {
		bytes += m.upload.bytes
	}
	return bytes
}

// MaxGrowth is about how much c adds to Memory at most: 0 for a command that adds nothing, and for the end and
// the beginning of sessions, without which no client could make room.
func (c *Command) MaxGrowth() (bytes int64) {
	switch c.Op {
	case OpCreate:
		return znode.CreateMemory(c.Path, len(c.Data))
	case OpSetData:
		return znode.DataMemory(int64(len(c.Data)))
	case OpSetACL:
		return znode.ACLMemory(c.ACL)
	case OpMulti:
		for i := range c.Ops {
			bytes += c.Ops[i].MaxGrowth()
		}
	case OpRestore:
		return int64(len(c.Data))
	}
	return bytes
}

// Growth is how much c adds in the present state; it may be negative. A command that will fail, or will get an
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
			bytes += m.growthInMulti(&c.Ops[i])
		}
		return bytes
	case OpSetData:
		return m.growthInMulti(c)
	}
	return c.MaxGrowth()
}

// growthInMulti is Growth for an operation that others may precede in its transaction.
func (m *Machine) growthInMulti(c *Command) int64 {
	switch c.Op {
	case OpSetData:
		have, _ := m.dataLength(c.Path)
		return znode.DataMemory(int64(len(c.Data))) - znode.DataMemory(int64(have))
	case OpDelete:
		if have, there := m.dataLength(c.Path); there {
			return -znode.CreateMemory(c.Path, have)
		}
	}
	return c.MaxGrowth()
}

func (m *Machine) dataLength(path string) (bytes int, there bool) {
	stat, code := m.tree.Exists(path, super)
	return int(stat.DataLength), code == znode.OK
}
