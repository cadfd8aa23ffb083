package state

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/golden"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// taken is the record of a take-over, as the end of a mirror brings it.
var taken = Takeover{Server: 3, Last: 5<<32 | 9, Digest: 1 << 63, Tail: 7, Forced: true}

// After its end the state is the ensemble's own: sessions that a client can take over, zxids above the source's, and
// no ephemeral without a session.
func TestMirror_Stop(t *testing.T) {
	s, g := mirroring(t)
	e := replica.Change{Op: replica.OpCreate, Path: "/a/e", ACL: znode.OpenACL, Ephemeral: true, Creates: -1}
	of := func(path string) replica.Change { e.Path = path; return e }
	g.must(1, follow(1, s.commit(0x77, of("/a/e")), s.commit(0x99, of("/a/ownerless"))))
	reported := strings.Join(func() []string { g.must(3, Command{Op: OpMirror, Mirror: MirrorStop}); return g.rec.lines }(), "\n")
	if _, is := g.m.Mirror(); is || g.m.Zxid() != s.r.Zxid+1 || !strings.Contains(reported, "/a/ownerless") {
		t.Errorf("mirrors: %v, zxid %v, want no and %v; reported %s", is, g.m.Zxid(), s.r.Zxid+1, reported)
	}
	if got := g.m.Tree().Ephemerals(0x99, ""); len(got) > 0 {
		t.Errorf("ephemerals without a session: %q", got)
	}
	x := *g.m.Sessions().Get(0x77)
	if x.Owner != uint64(NoServer) {
		t.Errorf("session %+v, want one of no server", x)
	}
	g.must(2, Command{Op: OpAttach, Session: 0x77, Password: x.Password, Timeout: x.Timeout})
	g.must(2, Command{Op: OpDelete, Session: 0x77, Path: "/a/e", Version: -1})
	if r := g.must(1, create("/mine")); r.Zxid != s.r.Zxid+3 {
		t.Errorf("zxid %v, want %v", r.Zxid, s.r.Zxid+3)
	}
	var b bytes.Buffer
	snap := g.m.Snapshot()
	defer snap.Release()
	if err := snap.WriteBackup(&b, [16]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadBackup(&b); err != nil {
		t.Errorf("a backup of what was mirrored: %v", err)
	}
}

// What was taken over is part of the state, and of its snapshots, until another mirror is begun; a mirror that has only
// ended leaves no record, and a backup has none.
func TestMirror_Stop_Record(t *testing.T) {
	_, g := mirroring(t)
	g.must(3, Command{Op: OpMirror, Mirror: MirrorStop, Data: taken.Append(nil)})
	want := taken
	want.Source, want.Time = "source", g.m.Time().UnixMilli()
	if got, on := g.m.Mirror(); on || got != (Mirror{Taken: want}) || got.Taken.Time == 0 {
		t.Errorf("%+v, mirrors %v; want no mirror, and the record %+v", got, on, want)
	}
	_, other := mirroring(t)
	other.must(3, Command{Op: OpMirror, Mirror: MirrorStop})
	if got, on := other.m.Mirror(); on || got != (Mirror{}) {
		t.Errorf("after a plain end: %+v, mirrors %v; want nothing", got, on)
	}
	if g.m.Digest() == other.m.Digest() {
		t.Error("the digest does not cover the record")
	}
	g.m = reread(t, g.m)
	if got, _ := g.m.Mirror(); got.Taken != want {
		t.Errorf("read again: %+v, want %+v", got.Taken, want)
	}
	m, err := ReadSnapshot(bytes.NewReader(golden.Read(t, "takeover-snapshot.bin", write(t, g.m))))
	if err != nil || m.Digest() != g.m.Digest() || m.takeover != want {
		t.Errorf("the record in a snapshot has another format (%v): give it another version, and see docs/formats.md", err)
	}
	var b bytes.Buffer
	snap := g.m.Snapshot()
	defer snap.Release()
	if err := snap.WriteBackup(&b, [16]byte{1}); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadSnapshot(&b); err != nil || m.takeover != (Takeover{}) {
		t.Errorf("a backup has the record %+v, error %v; want none", m.takeover, err)
	}
}

// Data that are no record end no mirror.
func TestMirror_Stop_BadRecord(t *testing.T) {
	whole := taken.Append(nil)
	for i := range whole[:len(whole)-1] {
		for _, data := range [][]byte{whole[:i+1], append([]byte{whole[0] - 1}, whole[1:]...), append(whole[:len(whole):len(whole)], 0)} {
			_, g := mirroring(t)
			got := g.do(1, Command{Op: OpMirror, Mirror: MirrorStop, Data: data})[0].Code
			if now, on := g.m.Mirror(); got != znode.ErrMarshalling || !on || !now.Loaded || now.Taken != (Takeover{}) {
				t.Fatalf("%x: %v, %+v; want %v, and the mirror", data, got, now, znode.ErrMarshalling)
			}
		}
	}
}

// A record that can be read is written as it was.
func FuzzTakeover(f *testing.F) {
	f.Add(taken.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ParseTakeover(b)
		if err != nil || len(b) == 0 {
			return
		}
		if again, err := ParseTakeover(x.Append(nil)); err != nil || again != x {
			t.Errorf("%+v, %v; want %+v", again, err, x)
		}
	})
}

// The text of a record says what an operator asks.
func TestTakeover_String(t *testing.T) {
	x := taken
	x.Source = "zk1:2888"
	want := "taken over from zk1:2888, up to zxid 0x500000009 of server 3, whose log alone had 7 of the transactions, by force"
	if got := x.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&Takeover{Source: "zk1:2888"}).String(); !strings.HasSuffix(got, ", without a log") {
		t.Errorf("%q, want that no log was read", got)
	}
}
