package state

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/znode"
)

// restoreCommands are those of a whole restore, in parts of so many bytes.
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

// restoreCase is a restore and what there was before it.
type restoreCase struct {
	t                          *testing.T
	m                          *Machine // restored
	zxid                       znode.Zxid
	time                       int64
	now, then, after           map[string]znode.Record
	live, over                 map[string]bool // ephemerals of now, and of the backup
	createdBelow, deletedBelow map[string]int
	created, changed           []string
	deleted                    []string
}

// place says whether there must be a znode, and whether it is new. It is written
// from the rules alone.
func (c *restoreCase) place(path string) (there, fresh bool) {
	_, wasThere := c.now[path]
	_, inBackup := c.then[path]
	if inBackup && !c.over[path] {
		return true, !wasThere || c.live[path]
	}
	parent := znode.Parent(path)
	_, parentInBackup := c.then[parent]
	return c.live[path] && parentInBackup && !c.over[parent], false
}

// diff finds what must have been created and deleted.
func (c *restoreCase) diff() {
	for path := range c.then {
		if there, fresh := c.place(path); there && fresh {
			c.created = append(c.created, path)
			c.createdBelow[znode.Parent(path)]++
		}
	}
	for path := range c.now {
		if there, fresh := c.place(path); !there || fresh {
			c.deleted = append(c.deleted, path)
			c.deletedBelow[znode.Parent(path)]++
		}
	}
}

// check compares a znode of the result with the rules.
func (c *restoreCase) check(path string) {
	r, now, then := c.after[path], c.now[path], c.then[path]
	there, fresh := c.place(path)
	want := now
	switch {
	case !there:
		c.t.Errorf("%s should have gone", path)
		return
	case c.live[path] && !fresh: // an ephemeral that stays
	case fresh:
		want = then
		s := &want.Stat
		s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime = c.zxid, c.zxid, c.zxid, c.time, c.time
		s.Cversion = max(s.Cversion, znode.Version(c.createdBelow[path]))
	default:
		want = c.changedOf(path, now, then)
	}
	if subject, ok := usageSubject(path); ok {
		want.Data = c.usage(subject)
	}
	if !sameData(r.Data, want.Data) || !slices.Equal(r.ACL, want.ACL) || r.Stat != want.Stat {
		c.t.Errorf("%s: %+v\nis not    %+v", path, r, want)
	}
}

func (c *restoreCase) changedOf(path string, now, then znode.Record) znode.Record {
	want := now
	s := &want.Stat
	s.Cversion = max(s.Cversion, then.Stat.Cversion) + znode.Version(c.createdBelow[path])
	if c.createdBelow[path]+c.deletedBelow[path] > 0 {
		s.Pzxid = c.zxid
	}
	_, usage := usageSubject(path)
	kind := now.Stat.EphemeralOwner == then.Stat.EphemeralOwner
	if !usage && path != znode.ConfigPath && (!sameData(now.Data, then.Data) || !kind) {
		want.Data, s.EphemeralOwner, s.Mzxid, s.Mtime = then.Data, then.Stat.EphemeralOwner, c.zxid, c.time
		s.Version = max(now.Stat.Version, then.Stat.Version) + 1
		c.changed = append(c.changed, path)
	}
	if !slices.Equal(now.ACL, then.ACL) {
		want.ACL, s.Aversion = then.ACL, max(now.Stat.Aversion, then.Stat.Aversion)+1
	}
	return want
}

func (c *restoreCase) usage(subject string) []byte {
	count, size := 0, 0
	for path, r := range c.after {
		if path == subject || strings.HasPrefix(path, subject+"/") {
			count++
			size += len(r.Data)
		}
	}
	return fmt.Appendf(nil, "count=%d,bytes=%d", count, size)
}

func sameData(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// events are what the observers must be told, in this order.
func (c *restoreCase) events() []string {
	var want []string
	say := func(t znode.EventType, path string, of, parents map[string]znode.Record) {
		var parent []znode.ACL
		if t != znode.EventDataChanged {
			parent = parents[znode.Parent(path)].ACL
		}
		want = append(want, fmt.Sprintf("event %v %s %v %v %v", t, path, c.zxid, of[path].ACL, parent))
	}
	slices.Sort(c.deleted)
	for _, path := range slices.Backward(c.deleted) {
		say(znode.EventDeleted, path, c.now, c.now)
	}
	rest := slices.Concat(c.created, c.changed)
	slices.Sort(rest)
	for _, path := range rest {
		t := znode.EventDataChanged
		if slices.Contains(c.created, path) {
			t = znode.EventCreated
		}
		say(t, path, c.after, c.after)
	}
	return want
}

// TestMachine_Restore_Random restores random trees in the place of others, and
// compares every znode, event and number with the rules.
func TestMachine_Restore_Random(t *testing.T) {
	r := newRand(t)
	var sum backup.Changes
	defer func() {
		for _, n := range sum.Counts() {
			if *n < 5 {
				t.Errorf("a dull run: %+v", sum)
			}
		}
	}()
	for range 40 {
		g, lives := newRig(t), []uint64{1, 1, 1}
		run := func(n int) {
			for range n {
				g.index++
				if err := g.m.Apply(g.index, g.term, randomEntry(g, r, lives), g.rec); err != nil {
					t.Fatal(err)
				}
			}
		}
		enrich := func() {
			for range 6 {
				s := znode.SessionID(11 + r.IntN(3))
				path := fmt.Sprintf("/%c/e%d", 'a'+r.IntN(3), r.IntN(3))
				if r.IntN(3) == 0 {
					path = path[2:]
				}
				g.do(8, openSession(s), ephemeral(s, path))
				g.do(8, create(path[:2]), Command{Op: OpSetData, Path: path[:2], Data: []byte{byte(r.IntN(2))}, Version: -1})
			}
		}
		run(5 + r.IntN(60))
		enrich()
		file := write(t, g.m)
		if r.IntN(3) == 0 { // of another ensemble, which may be ahead
			g.m, lives, g.next = New(), []uint64{1, 1, 1}, map[Origin]uint64{}
			run(5)
		}
		run(r.IntN(40))
		enrich()
		from, err := ReadBackup(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		was, err := ReadSnapshot(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		c := &restoreCase{
			t: t, now: dump(t, g.m), live: ephemerals(g.m), createdBelow: map[string]int{}, deletedBelow: map[string]int{},
			then: dump(t, was), over: ephemerals(was),
		}
		before, sessions := g.m.Zxid(), g.m.sessions.Len()
		g.time++
		snapshot := g.m.Snapshot()
		preview, err := snapshot.Preview(from)
		snapshot.Release()
		if err != nil {
			t.Fatal(err)
		}
		got := g.do(9, restoreCommands(7, file, 1+r.IntN(2000), true)...)
		done := got[len(got)-1]
		c.m, c.zxid, c.time, c.after = g.m, done.Zxid, g.time, dump(t, g.m)
		if done.Code != znode.OK || done.Zxid <= before || done.Zxid <= from.Zxid() || g.m.Zxid() != done.Zxid ||
			g.m.sessions.Len() != sessions || done.Restored != preview {
			t.Fatalf("%+v, before %v, the backup's %v, preview %+v", done, before, from.Zxid(), preview)
		}
		c.diff()
		for path := range c.after {
			c.check(path)
		}
		for path := range c.then {
			if _, ok := c.after[path]; !ok && !c.over[path] {
				t.Errorf("%s is missing", path)
			}
		}
		events := slices.DeleteFunc(slices.Clone(g.rec.lines), func(l string) bool { return !strings.HasPrefix(l, "event") })
		if want := c.events(); !slices.Equal(events, want) {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
		}
		if x := done.Restored; x.Created != len(c.created) || x.Deleted != len(c.deleted) {
			t.Errorf("%+v, want %d created, %d deleted", x, len(c.created), len(c.deleted))
		}
		for i, n := range sum.Counts() {
			*n += *done.Restored.Counts()[i]
		}
		// Once more changes nothing, and what follows works on the new tree.
		again := g.do(9, restoreCommands(8, file, 1<<16, true)...)
		if x := again[len(again)-1].Restored; x.Created+x.Changed+x.Deleted != 0 {
			t.Errorf("the second time: %+v", x)
		}
		run(20)
		if m, err := ReadSnapshot(bytes.NewReader(write(t, g.m))); err != nil || m.Digest() != g.m.Digest() {
			t.Errorf("after it: %v", err)
		}
		if t.Failed() {
			return
		}
	}
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
		t.Fatalf("%+v", last)
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
			t.Fatal(last.Code.Name())
		}
		return all[len(all)-1].Restored
	}
	if got := restore(1); got != (backup.Changes{Deleted: 4}) {
		t.Errorf("%+v", got)
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
		t.Errorf("%+v", got)
	}
	if r := g.must(1, sequential); r.Path != "/q/n-0000000002" {
		t.Errorf("after another one: %s", r.Path)
	}
}

// TestMachine_Restore_ConditionsStay: who has read a znode and writes it on
// condition, by mzxid or version, is refused exactly if it is another one now.
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
		t.Fatalf("%+v", first)
	}
	g.must(1, create("/b"))
	restored, err := ReadSnapshot(bytes.NewReader(write(t, g.m)))
	if err != nil || restored.Digest() != g.m.Digest() {
		t.Fatal(err)
	}
	s := g.m.Snapshot()
	if version := s.magic(); version != snapshotMagic2 {
		t.Errorf("the snapshot has version %q", version)
	}
	if s.OnlyState(); s.magic() != snapshotMagic || len(g.m.keys.queue) != 1 {
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
		s := b.m.Snapshot()
		if (s.magic() == snapshotMagic2) != (i < len(cmds)-1) {
			t.Errorf("step %d: version %q", i, s.magic())
		}
		s.Release()
		m, err := ReadSnapshot(bytes.NewReader(write(t, b.m)))
		if err != nil {
			t.Fatal(err)
		}
		if b.m = m; m.Digest() != a.m.Digest() {
			t.Fatalf("step %d of %d: another digest", i, len(cmds))
		}
		// A backup that is taken now has nothing of the upload.
		s = b.m.Snapshot()
		s.OnlyState()
		var out bytes.Buffer
		if err := s.Write(&out); err != nil {
			t.Fatal(err)
		}
		s.Release()
		if !strings.HasPrefix(out.String(), snapshotMagic) {
			t.Errorf("step %d: the backup has %q", i, out.Bytes()[:6])
		}
	}
	if last := a.rec.results; a.m.Tree().Size().Znodes < 10 {
		t.Errorf("a dull run: %+v", last)
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

// usageSubject returns the path whose usage a znode records, if it does.
func usageSubject(path string) (string, bool) {
	subject, ok := strings.CutPrefix(path, znode.QuotaPath)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(subject, "/zookeeper_stats")
}
