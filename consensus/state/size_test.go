package state

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// A command that is longer than what admits it believes would pass no stream.
func TestCommand_MaxSize_IsNoLess(t *testing.T) {
	long := strings.Repeat("x", 300)
	id := znode.ID{Scheme: "digest", ID: long}
	acl := []znode.ACL{{Perms: ^znode.Perms(0), ID: id}, {Perms: znode.PermAll}}
	ops := []Command{
		{Op: OpCreate, Path: long, Data: []byte(long), ACL: acl, TTL: 1<<63 - 1, Mode: -1},
		{Op: OpSetData, Path: long, Version: -1 << 31, Mzxid: -1 << 63, Data: []byte(long)},
		{Op: OpDelete}, {Op: OpCheck, Path: long}, {Op: OpCheckAbsent}, {Op: OpSetACL, ACL: acl},
	}
	for _, c := range append(ops, Command{Op: OpMulti, Ops: ops}, Command{Op: OpRestore, Data: []byte(long)}) {
		c.Session, c.Identities = -1<<63, []znode.ID{id, {}, id}
		c.Flags, c.Key = FlagKeyed, long
		if size, bytes := c.MaxSize(), len(AppendCommand(nil, &c)); size < bytes || size > bytes+256+64*20 {
			t.Errorf("operation %d: %d bytes, MaxSize %d", c.Op, bytes, size)
		}
	}
}
