package state

// MaxCommand bounds a client's command, in bytes as it is encoded, on all servers alike, whatever jute.maxbuffer each
// has: what one server has accepted, every other one must read from its stream, and keep in one segment of its log, of
// 64 MiB (raftlog.DefaultSegmentSize).
const MaxCommand = 60 << 20

// MaxSize is at least as many bytes as c's encoding has, and hardly more.
func (c *Command) MaxSize() int {
	const numbers, identity = 256, 16
	n := numbers + len(c.Key) + c.maxBodySize()
	for _, id := range c.Identities {
		n += identity + len(id.Scheme) + len(id.ID)
	}
	for i := range c.Ops {
		n += c.Ops[i].maxBodySize()
	}
	return n
}

func (c *Command) maxBodySize() int {
	const numbers, entry = 64, 32
	n := numbers + len(c.Path) + len(c.Data)
	for _, a := range c.ACL {
		n += entry + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return n
}
