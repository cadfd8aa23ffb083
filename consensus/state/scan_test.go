package state

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// ScanSnapshot shows what ReadSnapshot reads, and compares the same digest.
func TestScanSnapshot_ShowsAll(t *testing.T) {
	r := seed.Rand(t)
	g := newRig(t)
	lives := []uint64{1, 1, 1}
	for i := range uint64(300) {
		if err := g.m.Apply(i+1, 1, randomEntry(g, r, lives), g.rec); err != nil {
			t.Fatal(err)
		}
	}
	b := write(t, g.m)
	scan := func(b []byte) (head *Machine, paths []string, err error) {
		err = ScanSnapshot(bytes.NewReader(b),
			func(m *Machine) error { head = m; return nil },
			func(r *znode.Record) error { paths = append(paths, strings.Clone(r.Path)); return nil })
		return head, paths, err
	}
	head, paths, err := scan(b)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	s := g.m.tree.Snapshot()
	defer s.Release()
	_ = s.Walk(func(r *znode.Record) error { want = append(want, r.Path); return nil })
	slices.Sort(paths)
	if slices.Sort(want); !slices.Equal(paths, want) {
		t.Errorf("znodes %q, want %q", paths, want)
	}
	if head.Zxid() != g.m.Zxid() || head.Index() != g.m.Index() || head.Sessions().Len() != g.m.Sessions().Len() {
		t.Errorf("head with zxid %v, index %d, %d sessions, want %v, %d, %d", head.Zxid(), head.Index(),
			head.Sessions().Len(), g.m.Zxid(), g.m.Index(), g.m.Sessions().Len())
	}
	for n := range len(b) {
		if _, _, err := scan(b[:n]); err == nil {
			t.Fatalf("cut off at byte %d of %d: error <nil>, want one", n, len(b))
		}
	}
	_, _, err = scan(withOtherDigest(t, b))
	if err == nil || !strings.Contains(err.Error(), "digest is") {
		t.Errorf("with another digest: %v, want an error that names both", err)
	}
}

// withOtherDigest changes the last byte of a snapshot's content.
func withOtherDigest(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b[len(snapshotMagic):]))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	plain[len(plain)-1] ^= 1
	out := bytes.NewBufferString(snapshotMagic)
	w, err := zstd.NewWriter(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// VisitEntry shows the commands of an entry with their numbers.
func TestVisitEntry_ShowsCommands(t *testing.T) {
	g := newRig(t)
	first := g.batch(Origin{1, 7}, create("/a"), create("/b"))
	second := g.batch(Origin{2, 8}, openSession(5))
	b := AppendEntry(nil, 99, []Batch{first, second})
	var got []string
	visit := func(o Origin, seq uint64, c *Command) error {
		got = append(got, fmt.Sprintf("%d.%d %d %v %s%v", o.Server, o.Incarnation, seq, c.Op, c.Path, c.Session))
		return nil
	}
	at, err := VisitEntry(b, visit)
	want := []string{"1.7 1 create /a0x0", "1.7 2 create /b0x0", "2.8 1 createSession 0x5"}
	if err != nil || at != 99 || !slices.Equal(got, want) {
		t.Errorf("VisitEntry = %d, %v, %q, want 99, nil, %q", at, err, got, want)
	}
	for n := range b {
		if _, err := VisitEntry(b[:n], visit); err == nil {
			t.Errorf("cut off at byte %d of %d: error <nil>, want one", n, len(b))
		}
	}
	if _, err := VisitEntry(append(b, 0), visit); err == nil {
		t.Error("a byte more: error <nil>, want one")
	}
}

// Every operation has a name.
func TestOp_String(t *testing.T) {
	for op := range 1 << 8 {
		if _, named := opNames[Op(op)]; named != Op(op).known() {
			t.Errorf("operation %d is known: %v, has a name: %v", op, Op(op).known(), named)
		}
	}
}
