package state

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// examples holds a command of every operation, with every field it has.
func examples() []Command {
	return slices.Concat(firstExamples(), mirrorExamples(), reconfigExamples(), tracedExamples(), branchExamples(),
		purgeExamples())
}

// reconfigExamples are those of feature level 2, too.
func reconfigExamples() []Command {
	return []Command{
		{Op: OpReconfig, Session: 5, Reconfig: &Reconfig{Version: -1, MinVoters: 2, Leaving: []ServerID{1, 254},
			Servers: []PlannedServer{{ID: 4, Voter: true, Peer: "h:1:2", Client: "h:3"}, {ID: 5, Peer: "i:1:2"}}}},
		{Op: OpReconfig, Reconfig: &Reconfig{Version: 1 << 33, Complete: true}},
		{Op: OpReconfig, Term: 1<<64 - 1, Reconfig: &Reconfig{Step: ReconfigFinish, Number: 1<<64 - 1}},
		{Op: OpReconfig, Term: 7, Reconfig: &Reconfig{Step: ReconfigAbort, Number: 7, Code: znode.ErrNewConfigNoQuorum}},
	}
}

func purgeExamples() []Command {
	return []Command{{Op: OpPurge, Session: 5, Path: "/a"}, {Op: OpPurge, Path: "/", Below: true}}
}

func tracedExamples() []Command {
	return []Command{
		{Op: OpSetData, Flags: FlagKeyed | FlagTraced, Key: "key", Trace: "00-aa-bb-01", Path: "/a", Data: []byte("x"), Version: -1},
	}
}

func branchExamples() []Command {
	all := []znode.Condition{
		{Path: "/a", Of: znode.OfMzxid, Is: znode.Equal, Number: 1 << 40}, {Path: "/\xff", Of: znode.OfExistence, Is: znode.NotEqual, Number: 1},
		{Path: "/a", Of: znode.OfData, Is: znode.Less, Data: []byte("m")}, {Of: znode.OfOwner, Is: znode.Greater, Number: -1 << 63, Data: []byte{}},
	}
	ops := []Command{{Op: OpGet, Path: "/a"}, {Op: OpSetData, Path: "/a", Data: []byte("x"), Version: -1}, {Op: OpChildren, Path: "/"}}
	return []Command{
		{Op: OpBranch, Session: 5, Branch: &Branch{If: all, Then: 1}, Ops: ops},
		{Op: OpBranch, Flags: FlagKeyed, Key: "key", Branch: &Branch{If: all[:1], Then: 3}, Ops: ops},
		{Op: OpBranch, Branch: &Branch{}},
	}
}

// mirrorExamples are those of feature level 2.
func mirrorExamples() []Command {
	return []Command{
		{Op: OpMirror, Mirror: MirrorStart, Data: []byte("source")},
		{Op: OpMirror, Mirror: MirrorPart, Term: 1<<64 - 1, Data: []byte("part"), Restore: RestoreCommand{Upload: 1<<64 - 1, Part: 3}},
		{Op: OpMirror, Mirror: MirrorLoad, Term: 7, Restore: RestoreCommand{Upload: 5, Part: 4, Sum: 1 << 63}},
		{Op: OpMirror, Mirror: MirrorFollow, Term: 7, Data: AppendTxn(nil, []byte("transaction"))},
		{Op: OpMirror, Mirror: MirrorStop},
		{Op: OpMirror, Mirror: MirrorStop, Data: taken.Append(nil)},
		{Op: OpMirror, Mirror: MirrorAgain},
		{Op: OpMirror, Mirror: MirrorLost, Term: 7},
		{Op: OpMirror, Mirror: MirrorOnline, Term: 7},
		{Op: OpMirror, Mirror: MirrorAnswer, Term: 7, Data: AppendAnswer(nil, 300, znode.ErrSessionExpired)},
		{Op: OpMirror, Mirror: MirrorFault, Data: AppendFault(nil, 300, "reason")},
	}
}

// firstExamples are those of feature level 1.
func firstExamples() []Command {
	ids := []znode.ID{{Scheme: "ip", ID: "::1"}, {Scheme: "digest", ID: "u:h"}}
	acl := []znode.ACL{{Perms: -1, ID: znode.Anyone}, {Perms: 31, ID: ids[1]}}
	edits := []Command{
		{Op: OpCreate, Path: "/a", Data: []byte{}, ACL: acl, Mode: -3, Kind: znode.CreateTTL, TTL: -1},
		{Op: OpDelete, Path: "/a", Version: -1},
		{Op: OpSetData, Path: "", Data: []byte("data"), Version: 1<<31 - 1},
		{Op: OpSetACL, Path: "/\xff", ACL: acl, Version: -1 << 31},
		{Op: OpCheck, Path: "/a", Version: 7, Mzxid: 1 << 40},
		{Op: OpCheckAbsent, Path: "/a"},
	}
	return append([]Command{
		{Op: OpMulti, Ops: edits, Identities: ids},
		{Op: OpMulti, Flags: FlagKeyed | FlagAnyServer, Key: "key", Ops: edits},
		{Op: OpMulti},
		{Op: OpSync, Session: -1 << 63},
		{Op: OpCreateSession, Session: 5, Timeout: 4 * time.Second, Password: session.Password{1, 15: 2}},
		{Op: OpCloseSession, Session: 5, Identities: ids, Flags: FlagEnforceQuota},
		{Op: OpAttach, Session: 5, Timeout: time.Hour, Password: session.Password{3}},
		{Op: OpExpireSession, Session: 5, Term: 1<<64 - 1},
		{Op: OpReap, Path: "/c"},
		{Op: OpDeleteAll, Path: "/c", Version: 3, Mzxid: 1 << 33},
		{Op: OpRestore, Data: []byte("part"), Restore: RestoreCommand{Upload: 1<<64 - 1, Part: 3}},
		{Op: OpRestore, Restore: RestoreCommand{Step: RestoreCommit, Sum: 1 << 63, Replace: true}},
		{Op: OpMember, Member: Member{ID: 254, Peer: "h:1:2", Client: "h:3", HTTP: "h:4", Version: "1", Commit: "c", MinLevel: 1, MaxLevel: 2}},
		{Op: OpLevel, Level: 1<<32 - 1},
	}, edits...)
}

// normal makes null and empty lists equal, which decoding cannot distinguish.
func normal(c Command) Command {
	if len(c.Identities) == 0 {
		c.Identities = nil
	}
	if len(c.Ops) == 0 {
		c.Ops = nil
	}
	if len(c.ACL) == 0 {
		c.ACL = nil
	}
	ops := c.Ops
	c.Ops = nil
	for _, o := range ops {
		c.Ops = append(c.Ops, normal(o))
	}
	return c
}

func TestCommand_Append_RoundTrip(t *testing.T) {
	var got Command // used again, as Apply does: nothing of the last may stay
	for _, c := range examples() {
		b := c.Append([]byte("in front"))[8:]
		r := reader{b: b}
		got.decode(&r)
		if r.err != nil || !reflect.DeepEqual(normal(got), normal(c)) {
			t.Errorf("%+v came back as %+v, %v", c, got, r.err)
		}
		if (got.Data == nil) != (c.Data == nil) {
			t.Errorf("%+v: null and empty data are confused", c)
		}
		for n := range len(b) {
			short := reader{b: b[:n]}
			if got.decode(&short); short.err == nil {
				t.Errorf("%+v: %d of %d bytes were enough", c, n, len(b))
			}
		}
		if err := c.Check(); err != nil {
			t.Errorf("%+v is refused: %v; want no error", c, err)
		}
	}
	for _, c := range []Command{{}, {Op: 250}, {Op: OpLevel}, {Op: OpRestore, Restore: RestoreCommand{Step: 3}}, {Op: OpMirror, Mirror: lastMirrorStep + 1}, {Op: OpAttach, Timeout: -1}, {Op: OpMulti, Ops: []Command{{Op: OpSync}}}, {Op: OpMulti, Ops: []Command{{Op: OpMulti}}},
		{Op: OpMulti, Ops: []Command{{Op: OpGet}}}, {Op: OpBranch}, {Op: OpBranch, Branch: &Branch{Then: 1}}, {Op: OpBranch, Branch: &Branch{Then: -1}},
		{Op: OpBranch, Branch: &Branch{}, Ops: []Command{{Op: OpBranch}}}, {Op: OpBranch, Branch: &Branch{If: []znode.Condition{{Of: 99, Is: 1}}}}} {
		if c.Check() == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

// TestAppendCommand_LengthLimits: the length in front has two bytes below
// 1<<14 and more from there.
func TestAppendCommand_LengthLimits(t *testing.T) {
	base := Command{Op: OpSetData, Path: "/p"}
	empty := len(base.Append(nil))
	for _, size := range []int{0, 1, 100, 127, 128, 1<<14 - 3, 1<<14 - 2, 1<<14 - 1, 1 << 14, 1<<14 + 1, 1<<14 + 2, 1<<21 - 1, 1 << 21, 1<<21 + 1} {
		c := base
		// The data's own length grows with it; some sizes cannot be had exactly.
		c.Data = bytes.Repeat([]byte{7}, max(0, size-empty))
		for len(c.Append(nil)) > size && len(c.Data) > 0 {
			c.Data = c.Data[1:]
		}
		b := AppendCommand([]byte("before"), &c)
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatalf("size %d: what was there is damaged", size)
		}
		r := reader{b: b[6:]}
		body := reader{b: r.take(r.count(1))}
		if r.err != nil || r.off != len(r.b) || !bytes.Equal(body.b, c.Append(nil)) {
			t.Errorf("size %d: %v, %d bytes of %d", size, r.err, r.off, len(r.b))
		}
	}
}

func FuzzCommand(f *testing.F) {
	for _, c := range examples() {
		f.Add(c.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, again Command
		r := reader{b: b}
		if c.decode(&r); r.err != nil {
			return
		}
		r = reader{b: c.Append(nil)}
		again.decode(&r)
		if r.err != nil || !reflect.DeepEqual(normal(again), normal(c)) {
			t.Errorf("%x decodes to %+v, which decodes to %+v, %v", b, c, again, r.err)
		}
	})
}

// FuzzApply feeds bytes as an entry. Nothing may panic, two machines must end
// alike, and a batch's bytes must be acceptable to CheckBatch, which protects
// the log, exactly if Apply accepts them.
func FuzzApply(f *testing.F) {
	var batch []byte
	for _, c := range examples() {
		f.Add(AppendCommand(nil, &c), 1)
		batch = AppendCommand(batch, &c)
	}
	f.Add(batch, len(examples()))
	f.Add(AppendEntry(nil, 5, []Batch{{Origin: Origin{1, 1}, First: 1, Count: len(examples()), Commands: batch}}), -1)
	f.Fuzz(func(t *testing.T, b []byte, count int) {
		var digest [2]uint64
		for i := range digest {
			m := New()
			_ = m.Apply(1, 1, b, &recorder{})
			digest[i] = m.Digest()
		}
		if digest[0] != digest[1] {
			t.Error("two machines differ")
		}
		g := Batch{Origin: Origin{1, 1}, First: 1, Count: count, Commands: b}
		check := CheckBatch(&g)
		apply := New().Apply(1, 1, AppendEntry(nil, 5, []Batch{g}), &recorder{})
		if (check == nil) != (apply == nil) {
			t.Errorf("CheckBatch: %v; Apply: %v", check, apply)
		}
	})
}

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
	for _, c := range append(ops, Command{Op: OpMulti, Ops: ops}, Command{Op: OpRestore, Data: []byte(long)},
		Command{Op: OpMirror, Term: 1<<64 - 1, Data: []byte(long), Restore: RestoreCommand{Upload: 1 << 63, Sum: 1 << 63}},
		Command{Op: OpReconfig, Reconfig: &Reconfig{Version: -1 << 63, Leaving: []ServerID{254},
			Servers: []PlannedServer{{ID: 254, Voter: true, Peer: long, Client: long}}}},
		Command{Op: OpBranch, Ops: ops, Branch: &Branch{Then: 5, If: []znode.Condition{{Path: long, Data: []byte(long), Of: znode.OfMzxid, Is: znode.Less, Number: -1 << 63}}}}) {
		c.Session, c.Identities = -1<<63, []znode.ID{id, {}, id}
		c.Flags, c.Key = FlagKeyed, long
		if size, bytes := c.MaxSize(), len(AppendCommand(nil, &c)); size < bytes || size > bytes+256+64*20 {
			t.Errorf("operation %d: %d bytes, MaxSize %d", c.Op, bytes, size)
		}
	}
}
