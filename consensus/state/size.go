package state

// MaxCommand bounds a client's encoded command, in bytes, on all servers alike, whatever their jute.maxbuffer: every
// server must be able to read a command that another has accepted, and keep it in one segment of its log, of 64 MiB
// (raftlog.DefaultSegmentSize).
const MaxCommand = 60 << 20

// MaxSize is an upper bound of the bytes of c's encoding, and close to it.
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
