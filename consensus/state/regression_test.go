package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/znode"
)

// A reader of snapshots stopped at the last block, so that zstd never compared
// its checksum, which comes behind it: a snapshot cut off there was accepted,
// and one whose index or time was damaged, which the digest does not cover.
func TestRegression_Restore_ChecksumIsCompared(t *testing.T) {
	good := write(t, busy(t))
	if _, err := ReadSnapshot(bytes.NewReader(good[:len(good)-4])); err == nil {
		t.Error("a snapshot without zstd's checksum was accepted")
	}
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	if _, err := ReadSnapshot(bytes.NewReader(bad)); err == nil {
		t.Error("a snapshot with a wrong checksum was accepted")
	}
}

// Blocks after the last one were not checked either.
func TestRegression_Restore_NothingBehindTheEnd(t *testing.T) {
	good := write(t, New())
	z, err := zstd.NewReader(bytes.NewReader(good[len(snapshotMagic):]))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var plain, out bytes.Buffer
	if _, err := plain.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	out.WriteString(snapshotMagic)
	w, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append(plain.Bytes(), 0)); err != nil || w.Close() != nil {
		t.Fatalf("compressing: error %v, want none, and none from Close", err)
	}
	if _, err := ReadSnapshot(&out); err == nil {
		t.Error("a byte behind the last block was ignored")
	}
}

// CheckBatch, which keeps what cannot be applied out of the log, was stricter
// than Apply about bytes behind the last command, and neither minded bytes
// behind one command. Apply did not mind bytes behind the last batch.
func TestRegression_Apply_NothingBehindCommands(t *testing.T) {
	c := create("/a")
	body := c.Append(nil)
	for name, commands := range map[string][]byte{
		"behind the command": append(binary.AppendUvarint(nil, uint64(len(body)+1)), append(body, 0)...),
		"behind the batch":   append(AppendCommand(nil, &c), 0),
	} {
		g := Batch{Origin: Origin{1, 1}, First: 1, Count: 1, Commands: commands}
		if CheckBatch(&g) == nil {
			t.Errorf("%s: CheckBatch accepts it", name)
		}
		if New().Apply(1, 1, AppendEntry(nil, 1, []Batch{g}), &recorder{}) == nil {
			t.Errorf("%s: Apply accepts it", name)
		}
	}
}

// A count of 1<<63 and more became negative, which passed for a batch without
// commands in CheckBatch and for one without an end in Apply.
func TestRegression_Batch_CountBeyondInt(t *testing.T) {
	for _, count := range []int{-1, -1 << 63} {
		batch := Batch{Origin: Origin{1, 1}, First: 0, Count: count}
		if CheckBatch(&batch) == nil {
			t.Errorf("count %d: CheckBatch accepts it, want an error", count)
		}
		if New().Apply(1, 1, AppendEntry(nil, 1, []Batch{batch}), &recorder{}) == nil {
			t.Errorf("count %d: Apply accepts it, want an error", count)
		}
	}
}

// atLevel is a rig of one server whose ensemble has a level, with a session 5.
func atLevel(t *testing.T, level Level) *rig {
	g := newRig(t)
	g.m.Configure(1, 1, map[ServerID]bool{1: true}, g.rec)
	g.must(1, publishing(1, MinLevel, level))
	g.must(1, openSession(5))
	return g
}

// What a client must not send was refused by the server that accepts it alone; what a server of release 1.0 had
// accepted was applied by all. From level 2 on no server applies it, and logs of level 1 are applied as they were.
func TestRegression_WhatNoClientMaySend_IsNotApplied(t *testing.T) {
	long := make([]znode.ACL, znode.MaxACL+1)
	for i := range long {
		long[i] = znode.ACL{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: fmt.Sprint(i, ":x")}}
	}
	for level, want := range map[Level][]znode.Error{
		1: {znode.OK, znode.OK, znode.OK, znode.ErrNoNode},
		2: {znode.ErrInvalidACL, znode.ErrInvalidACL, znode.OK, znode.ErrUnimplemented},
	} {
		g := atLevel(t, level)
		container := create("/c")
		container.Kind, container.Mode = znode.CreateContainer, znode.Container
		g.must(1, container)
		many := create("/many")
		many.ACL = long
		auth := create("/auth") // 30 entries for 40 identities
		for i := range 30 {
			auth.Identities = append(auth.Identities, long[i].ID)
			auth.ACL = append(auth.ACL, znode.ACL{Perms: znode.Perms(i + 1), ID: znode.AuthIDs})
		}
		for i := range 10 {
			auth.Identities = append(auth.Identities, long[100+i].ID)
		}
		const reap = OpReap
		got := g.do(1, many, auth, Command{Op: reap, Path: "/c"}, Command{Op: reap, Session: 5, Path: "/c"})
		for i := range want {
			if got[i].Code != want[i] {
				t.Errorf("level %d, command %d: %v, want %v", level, i, got[i].Code, want[i])
			}
		}
	}
}

// A znode that got its long ACL at level 1 keeps it, and may be given another one that is no longer.
func TestRegression_LongACL_StaysUsable(t *testing.T) {
	g := atLevel(t, 1)
	c := create("/long")
	for i := range znode.MaxACL + 5 {
		c.ACL = append(c.ACL, znode.ACL{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: fmt.Sprint(i, ":x")}})
	}
	c.Identities = []znode.ID{c.ACL[0].ID}
	g.must(1, c)
	g.must(1, publishing(1, MinLevel, 2))
	g.must(1, Command{Op: OpLevel, Level: 2})
	set := Command{Op: OpSetACL, Path: "/long", Version: znode.AnyVersion, ACL: c.ACL, Identities: c.Identities}
	g.must(1, set)
	set.ACL = append(set.ACL, znode.ACL{Perms: 1, ID: znode.ID{Scheme: "digest", ID: "more:x"}})
	if code := g.do(1, set)[0].Code; code != znode.ErrInvalidACL {
		t.Errorf("a longer one: %v", code)
	}
}

// A server of release 1.0 in an ensemble that is being upgraded forwarded everything that its clients sent.
func TestRegression_CheckBatch_ReplacesWhatHarms(t *testing.T) {
	g := newRig(t)
	g.must(1, openSession(5))
	bomb := create("/bomb")
	bomb.Session, bomb.Flags, bomb.Key = 5, FlagKeyed, "key"
	for i := range 440 {
		bomb.Identities = append(bomb.Identities, znode.ID{Scheme: "digest", ID: fmt.Sprint(i, ":x")})
	}
	for i := range 3600 {
		bomb.ACL = append(bomb.ACL, znode.ACL{Perms: znode.Perms(i), ID: znode.AuthIDs})
	}
	multi := Command{Op: OpMulti, Session: 5, Identities: bomb.Identities, Ops: []Command{create("/m"), bomb}}
	b := g.batch(Origin{1, 1}, create("/a"), bomb, create("/b"), multi, Command{Op: OpReap, Session: 5, Path: "/c"}, create("/d"))
	if err := CheckBatch(&b); err != nil || b.Count != 6 {
		t.Fatalf("the batch has %d commands (%v), want 6 and no error", b.Count, err)
	}
	g.apply(b)
	for i, want := range []znode.Error{0, znode.ErrInvalidACL, 0, znode.ErrInvalidACL, znode.ErrInvalidACL, 0} {
		if got := g.rec.results[i].Code; got != want {
			t.Errorf("command %d: %v, want %v", i, got, want)
		}
	}
	if bytes := g.m.Memory(); bytes > 1<<20 {
		t.Errorf("%d bytes of memory", bytes)
	}
}

// A condition on the mzxid was checked before the permission, so that a client that may not see a znode learned
// when it was changed.
func TestRegression_Guard_PermissionComesFirst(t *testing.T) {
	for level, want := range map[Level]znode.Error{1: znode.ErrBadVersion, 2: znode.ErrNoAuth} {
		g := atLevel(t, level)
		secret := create("/secret")
		secret.ACL = []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "u:h"}}}
		secret.Identities = []znode.ID{secret.ACL[0].ID}
		g.must(1, secret)
		parent := create("/secret/child")
		parent.Identities = secret.Identities
		g.must(1, parent)
		for _, c := range []Command{
			{Op: OpSetData, Path: "/secret", Version: znode.AnyVersion, Mzxid: 1 << 40},
			{Op: OpDelete, Path: "/secret/child", Version: znode.AnyVersion, Mzxid: 1 << 40},
			{Op: OpMulti, Ops: []Command{{Op: OpCheck, Path: "/secret", Version: znode.AnyVersion, Mzxid: 1 << 40}}},
		} {
			r := g.do(1, c)[0]
			if len(r.Multi) > 0 {
				r.Code = r.Multi[0].Code
			}
			if r.Code != want {
				t.Errorf("level %d, operation %d: %v, want %v", level, c.Op, r.Code, want)
			}
		}
	}
}
