package state

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/internal/testkit/golden"
	"github.com/zk-lite/zk-lite/znode"
)

// A backup names its ensemble, and other readers read it as a snapshot.
func TestBackup_Label(t *testing.T) {
	m, ensemble := busy(t), [16]byte([]byte("0123456789abcdef"))
	s := m.Snapshot()
	defer s.Release()
	var b bytes.Buffer
	if err := s.WriteBackup(&b, ensemble); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	golden.Check(t, "backup.bin", good[:BackupHead])
	if got, err := BackupEnsemble(good); got != ensemble || err != nil {
		t.Errorf("the ensemble is %x (%v), want %x", got, err, ensemble)
	}
	if from, err := ReadBackup(bytes.NewReader(good)); err != nil || from.Size() != m.tree.Size() {
		t.Errorf("the backup is read with error %v, want all znodes", err)
	}
	if got, err := BackupEnsemble(write(t, m)); got != [16]byte{} || err != nil {
		t.Errorf("without a label: %x, %v", got, err)
	}
	for n := len(snapshotMagic); n < BackupHead; n++ {
		bad := bytes.Clone(good)
		bad[n] ^= 1
		if _, err := BackupEnsemble(bad); err == nil {
			t.Errorf("byte %d is changed: no error", n)
		}
		if _, err := ReadSnapshot(bytes.NewReader(bad)); err == nil {
			t.Errorf("byte %d is changed, but zstd skips it: it is read", n)
		}
		if _, err := BackupEnsemble(good[:n]); err == nil {
			t.Errorf("cut off at %d: no error", n)
		}
	}
	next := bytes.Clone(good)
	next[len(snapshotMagic+labelFrame)]++
	if _, err := BackupEnsemble(next); err == nil || !strings.Contains(err.Error(), "version 2; this build reads version 1") {
		t.Errorf("a newer version: error %v, want one with both versions", err)
	}
	if err := s.WriteBackup(&brokenWriter{BackupHead - 1}, ensemble); err == nil {
		t.Error("the label does not fit: no error")
	}
}

// TestReadBackup_Impossible_IsRefused: trees that no server writes, with a digest
// that is right.
func TestReadBackup_Impossible_IsRefused(t *testing.T) {
	tree := func(records ...znode.Record) *znode.Tree {
		t.Helper()
		b := znode.NewBuilder()
		for _, r := range dump(t, New()) {
			if !slices.ContainsFunc(records, func(x znode.Record) bool { return x.Path == r.Path }) {
				records = append(records, r)
			}
		}
		for i := range records {
			if records[i].ACL == nil {
				records[i].ACL = znode.OpenACL
			}
			if err := b.Add(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
		made, err := b.Tree()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	owned := func(path string) znode.Record {
		return znode.Record{Path: path, Stat: znode.Stat{EphemeralOwner: 7}}
	}
	for want, m := range map[string]*Machine{
		"\"/e/x\" is below":    {tree: tree(owned("/e"), znode.Record{Path: "/e/x"})},
		"config is not":        {tree: tree(owned(znode.ConfigPath))},
		"has had -1 children":  {tree: tree(znode.Record{Path: "/a", Stat: znode.Stat{Cversion: -1}})},
		"zxid 0x2000000000000": {tree: tree(), zxid: 1<<61 + 1},
		"out of range":         {tree: tree(), zxid: -1},
	} {
		m.sessions = New().sessions
		if _, err := ReadBackup(bytes.NewReader(write(t, m))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := readSnapshot(bytes.NewReader(write(t, busy(t))), 500); err == nil || !strings.Contains(err.Error(), "more than 500 bytes") {
		t.Errorf("beyond the limit: %v", err)
	}
	full := &Machine{tree: tree(znode.Record{Path: "/a", Stat: znode.Stat{Cversion: math.MaxInt32}}), sessions: New().sessions}
	g := newRig(t)
	g.must(1, create("/a"))
	g.must(1, create("/a/b"))
	all := g.do(1, restoreCommands(1, write(t, full), 1000, true)...)
	if r := dump(t, g.m)["/a"]; r.Stat.Cversion != math.MaxInt32 || all[len(all)-1].Code != znode.OK {
		t.Errorf("a full counter: %+v", r)
	}
}

// FuzzMerge reads records of a tree, as a snapshot has them, and restores them in
// the place of another, if they make a backup: nothing may panic, and doing it again
// must change nothing.
func FuzzMerge(f *testing.F) {
	var seed []byte
	m := busy(f)
	acls := map[*znode.ACL]int{}
	for _, r := range dump(f, m) {
		b := appendRecord(nil, &r, acls)
		seed = append(appendUint(seed, uint64(len(b))), b...)
	}
	f.Add(seed)
	f.Add([]byte{})
	now := m.tree // which is never changed
	f.Fuzz(func(t *testing.T, b []byte) {
		r := reader{b: b}
		builder, known := znode.NewBuilder(), [][]znode.ACL(nil)
		for r.off < len(r.b) {
			rec, err := readRecord(r.take(r.count(1)), &known)
			if r.err != nil || err != nil {
				break
			}
			_ = builder.Add(&rec) // some are refused; the others may do
		}
		for _, x := range dump(t, New()) {
			_ = builder.Add(&x)
		}
		tree, err := builder.Tree()
		if err != nil {
			return
		}
		from, err := backup.New(tree, 0, 0)
		if err != nil {
			return
		}
		result, _ := backup.Merge(&znode.Txn{Zxid: 1 << 40}, now, from)
		again, done := backup.Merge(&znode.Txn{Zxid: 1 << 41}, result, from)
		if done.Created+done.Changed+done.Deleted != 0 || again != result {
			t.Errorf("the second time: %+v", done)
		}
	})
}

// FuzzReadBackup feeds bytes as a file; what is accepted can be restored.
func FuzzReadBackup(f *testing.F) {
	good := write(f, busy(f))
	f.Add(good)
	f.Add(good[:len(good)/2])
	midway := busy(f)
	midway.upload = &upload{id: 1, from: 2, parts: [][]byte{[]byte("part")}, bytes: 4}
	f.Add(write(f, midway))
	f.Fuzz(func(t *testing.T, b []byte) {
		from, err := ReadBackup(bytes.NewReader(b))
		if err != nil {
			return
		}
		backup.Merge(&znode.Txn{Zxid: 1}, New().tree, from)
	})
}
