package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// restoreCommands are the commands of a whole restore, in parts of this many bytes.
func restoreCommands(id uint64, file []byte, size int, replace bool) []Command {
	var cmds []Command
	for part := range slices.Chunk(file, size) {
		cmds = append(cmds, Command{Op: OpRestore, Data: part, Restore: RestoreCommand{
			Upload: id, Part: uint64(len(cmds)),
		}})
	}
	return append(cmds, Command{Op: OpRestore, Restore: RestoreCommand{
		Step: RestoreCommit, Upload: id, Part: uint64(len(cmds)), Sum: xxhash.Sum64(file), Replace: replace,
	}})
}

// dump is every znode of a machine.
func dump(tb testing.TB, m *Machine) map[string]znode.Record {
	tb.Helper()
	all := map[string]znode.Record{}
	s := m.tree.Snapshot()
	defer s.Release()
	if err := s.Walk(func(r *znode.Record) error { all[r.Path] = *r; return nil }); err != nil {
		tb.Fatal(err)
	}
	return all
}

// ephemerals are the paths of a machine's ephemerals.
func ephemerals(m *Machine) map[string]bool {
	all := map[string]bool{}
	m.tree.EphemeralOwners(func(owner znode.SessionID, _ int) {
		for _, path := range m.tree.Ephemerals(owner, "") {
			all[path] = true
		}
	})
	return all
}

// TestMachine_Restore_SequenceGoesOn: a number that was given before the backup,
// or since, is not given again.
// A session's znode that records the usage of a quota stayed as it was, and told of znodes that the
// restore had taken away (found by TestMachine_Restore_Random, in CI).
func TestRegression_Restore_UsageInAnEphemeralIsCounted(t *testing.T) {
	const usage = "/zookeeper/quota/a/zookeeper_stats"
	g := newRig(t)
	for _, path := range []string{"/a", "/zookeeper/quota/a"} {
		g.must(1, create(path))
	}
	file := write(t, g.m)
	g.must(1, create("/a/gone"))
	g.must(1, openSession(7))
	g.must(1, ephemeral(7, usage)) // which counts two
	all := g.do(1, restoreCommands(1, file, 1000, true)...)
	if last := all[len(all)-1]; last.Code != znode.OK || last.Restored.Kept != 1 {
		t.Fatalf("the last step of the restore: %+v, want OK and 1 that was kept", last)
	}
	data, _, _ := g.m.tree.Get("/a", super)
	want := fmt.Sprintf("count=1,bytes=%d", len(data))
	if got, _, _ := g.m.tree.Get(usage, super); string(got) != want {
		t.Errorf("the usage is %q, want %q", got, want)
	}
}

func TestMachine_Restore_SequenceGoesOn(t *testing.T) {
	g := newRig(t)
	sequential := create("/q/n-")
	sequential.Mode = znode.PersistentSequential
	g.must(1, create("/q"))
	g.must(1, sequential)
	file := write(t, g.m)
	for range 4 {
		g.must(1, sequential)
	}
	restore := func(id uint64) backup.Changes {
		t.Helper()
		all := g.do(1, restoreCommands(id, file, 100, true)...)
		if last := all[len(all)-1]; last.Code != znode.OK {
			t.Fatalf("the last step of the restore: %s, want OK", last.Code.Name())
		}
		return all[len(all)-1].Restored
	}
	if got := restore(1); got != (backup.Changes{Deleted: 4}) {
		t.Errorf("changes %+v, want 4 deletions", got)
	}
	if r := g.must(1, sequential); r.Path != "/q/n-0000000005" {
		t.Errorf("after the restore: %s", r.Path)
	}
	// Gone and come again it counts from 0, but not below the backup.
	for _, path := range []string{"/q/n-0000000000", "/q/n-0000000005", "/q"} {
		g.must(1, Command{Op: OpDelete, Path: path, Version: -1})
	}
	g.must(1, create("/q"))
	if got := restore(2); got != (backup.Changes{Created: 1}) {
		t.Errorf("changes %+v, want 1 creation", got)
	}
	if r := g.must(1, sequential); r.Path != "/q/n-0000000002" {
		t.Errorf("after another one: %s", r.Path)
	}
}

// TestMachine_Restore_ConditionsStay: a conditional write, by mzxid or version, of a znode that
// was read before is refused exactly if the znode is another one now.
func TestMachine_Restore_ConditionsStay(t *testing.T) {
	g := newRig(t)
	same, other := g.must(1, create("/same")), g.must(1, create("/other"))
	file := write(t, g.m)
	// The same bytes come back, and the same version, but it was changed twice.
	set := Command{Op: OpSetData, Path: "/other", Data: []byte("y"), Version: -1}
	seen := g.must(1, set)
	all := g.do(1, restoreCommands(1, file, 1000, true)...)
	z := all[len(all)-1].Zxid
	stat, _ := g.m.tree.Exists("/other", super)
	if stat.Version != 2 || stat.Mzxid != z || stat.Czxid != other.Zxid {
		t.Errorf("%+v, restored by %v", stat, z)
	}
	for _, c := range []struct {
		cmd  Command
		want znode.Error
	}{
		{Command{Op: OpSetData, Path: "/same", Mzxid: same.Zxid, Version: 0}, znode.OK},
		{Command{Op: OpSetData, Path: "/other", Mzxid: other.Zxid, Version: -1}, znode.ErrBadVersion},
		{Command{Op: OpSetData, Path: "/other", Mzxid: seen.Zxid, Version: -1}, znode.ErrBadVersion},
		{Command{Op: OpSetData, Path: "/other", Version: 0}, znode.ErrBadVersion},
		{Command{Op: OpSetData, Path: "/other", Version: 1}, znode.ErrBadVersion},
		{Command{Op: OpSetData, Path: "/other", Mzxid: z, Version: 2}, znode.OK},
	} {
		if r := g.do(1, c.cmd)[0]; r.Code != c.want {
			t.Errorf("%+v: %v, want %v", c.cmd, r.Code.Name(), c.want.Name())
		}
	}
}

// TestMachine_Restore_Refusals: whatever is wrong with an upload, nothing changes.
func TestMachine_Restore_Refusals(t *testing.T) {
	g := newRig(t)
	file := write(t, g.m)
	g.must(1, create("/a"))
	zxid := g.m.Zxid()
	cmds := restoreCommands(1, file, 50, true)
	last := len(cmds) - 1
	code := func(what string, from ServerID, want znode.Error, cmds ...Command) {
		t.Helper()
		all := g.do(from, cmds...)
		if got := all[len(all)-1].Code; got != want {
			t.Errorf("%s: %v, want %v", what, got.Name(), want.Name())
		}
		if !strings.HasPrefix(what, "at last") && (g.m.Zxid() != zxid || g.m.Empty()) {
			t.Fatalf("%s: the tree has changed", what)
		}
	}
	code("a commit without an upload", 1, znode.ErrDataInconsistency, cmds[last])
	code("the second part first", 1, znode.ErrDataInconsistency, cmds[1])
	code("the first", 1, znode.OK, cmds[0])
	code("the first twice", 1, znode.OK, cmds[0])
	code("the third", 1, znode.ErrDataInconsistency, cmds[2])
	code("the second of another", 1, znode.ErrDataInconsistency, restoreCommands(2, file, 50, true)[1])
	code("another server", 2, znode.ErrThrottled, restoreCommands(3, file, 50, true)[0])
	g.time += UploadIdle - 1
	code("another server, early", 2, znode.ErrThrottled, restoreCommands(3, file, 50, true)[0])
	g.time++
	code("another server, as the first is idle", 2, znode.OK, restoreCommands(3, file, 50, true)[0])
	code("the first goes on", 1, znode.ErrDataInconsistency, cmds[1])
	code("the same server starts afresh", 2, znode.OK, restoreCommands(4, file, 50, true)[0])
	code("the commit before the end", 2, znode.ErrDataInconsistency, restoreCommands(4, file, 50, true)[last])
	code("an abort of another", 1, znode.OK, Command{Op: OpRestore, Restore: RestoreCommand{Step: RestoreAbort, Upload: 1}})
	code("another server", 1, znode.ErrThrottled, cmds[0])
	code("the abort", 2, znode.OK, Command{Op: OpRestore, Restore: RestoreCommand{Step: RestoreAbort, Upload: 4}})
	code("an empty part", 1, znode.ErrBadArguments, Command{Op: OpRestore})
	code("a large part", 1, znode.ErrBadArguments, Command{Op: OpRestore, Data: make([]byte, MaxBackupPart+1)})
	code("not asked to replace", 1, znode.ErrNotEmpty, restoreCommands(5, file, 50, false)...)
	wrong := restoreCommands(6, file, 50, true)
	wrong[last].Restore.Sum++
	code("another sum", 1, znode.ErrMarshalling, wrong...)
	code("a file cut off", 1, znode.ErrMarshalling, restoreCommands(7, file[:len(file)-1], 50, true)...)
	code("no backup", 1, znode.ErrMarshalling, restoreCommands(8, []byte("hello"), 50, true)...)
	g.m.upload = &upload{id: 9, from: 1, bytes: MaxBackup - 49, parts: [][]byte{{1}}}
	code("too large altogether", 1, znode.ErrBadArguments, restoreCommands(9, file, 50, true)[1])
	code("at last", 1, znode.OK, cmds...)
	if !g.m.Empty() || g.m.upload != nil || g.m.Zxid() != zxid+1 {
		t.Errorf("zxid %v after %v", g.m.Zxid(), zxid)
	}
	code("at last into a bare tree", 1, znode.OK, restoreCommands(10, file, 50, false)...)
}

// TestMachine_Restore_KeyedRetry: a restore that is repeated with its key happens
// once, and the answer is that of the first time; also after a snapshot.
func TestMachine_Restore_KeyedRetry(t *testing.T) {
	g := newRig(t)
	g.must(1, create("/a"))
	file := write(t, g.m)
	g.must(1, Command{Op: OpDelete, Path: "/a", Version: -1})
	keyed := func(id uint64, size int, file []byte) []Command {
		cmds := restoreCommands(id, file, size, true)
		last := &cmds[len(cmds)-1]
		last.Flags, last.Key = FlagKeyed, "k"
		return cmds
	}
	all := g.do(1, keyed(1, 70, file)...)
	first := all[len(all)-1]
	if first.Restored != (backup.Changes{Created: 1}) || first.Key != KeyFresh {
		t.Fatalf("the first restore: %+v, want 1 creation and a fresh key", first)
	}
	g.must(1, create("/b"))
	restored, err := ReadSnapshot(bytes.NewReader(write(t, g.m)))
	if err != nil || restored.Digest() != g.m.Digest() {
		t.Fatalf("restore: error %v, digests equal: %t; want no error, equal digests", err,
			err == nil && restored.Digest() == g.m.Digest())
	}
	s := g.m.Snapshot()
	if s.OnlyState(); len(s.keys) != 0 || len(g.m.keys.queue) != 1 {
		t.Error("a backup has the answer, or the state has lost it")
	}
	s.Release()
	g.m = restored
	all = g.do(2, keyed(2, 50, file)...)
	again := all[len(all)-1]
	if again.Key != KeyRepeated || again.Restored != first.Restored || again.Zxid != first.Zxid || g.m.upload != nil {
		t.Errorf("%+v, want %+v", again, first)
	}
	all = g.do(2, keyed(3, 50, write(t, New()))...)
	if x := all[len(all)-1]; x.Key != KeyMismatch || g.m.upload != nil {
		t.Errorf("another file: %+v", x)
	}
	if _, code := g.m.tree.Exists("/b", nil); code != znode.OK {
		t.Error("it has happened again")
	}
}

// TestMachine_Restore_SnapshotMidway applies one log to two machines, of which one
// is replaced after every entry by one that its snapshot was read into.
func TestMachine_Restore_SnapshotMidway(t *testing.T) {
	file := write(t, busy(t))
	a, b := newRig(t), newRig(t)
	for _, g := range []*rig{a, b} {
		g.must(1, create("/x"))
	}
	cmds := restoreCommands(1, file, len(file)/6+1, true)
	for i, c := range cmds {
		for _, g := range []*rig{a, b} {
			g.do(3, c)
			g.do(1, Command{Op: OpSetData, Path: "/x", Version: -1}) // gone after the commit
		}
		m, err := ReadSnapshot(bytes.NewReader(write(t, b.m)))
		if err != nil {
			t.Fatal(err)
		}
		if b.m = m; m.Digest() != a.m.Digest() {
			t.Fatalf("step %d of %d: another digest", i, len(cmds))
		}
		// A backup that is taken now has nothing of the upload.
		s := b.m.Snapshot()
		s.OnlyState()
		var out bytes.Buffer
		if err := s.Write(&out); err != nil {
			t.Fatal(err)
		}
		s.Release()
		if backup, err := ReadSnapshot(&out); err != nil || backup.upload != nil {
			t.Errorf("step %d: the backup has %+v, %v", i, backup.upload, err)
		}
	}
	if last := a.rec.results; a.m.Tree().Size().Znodes < 10 {
		t.Errorf("a dull run: %+v", last)
	}
}
