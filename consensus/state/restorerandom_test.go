package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state/backup"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

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

// events are the expected events, in this order.
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
	r := seed.Rand(t)
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

// usageSubject returns the path whose usage a znode records, if it does.
func usageSubject(path string) (string, bool) {
	subject, ok := strings.CutPrefix(path, znode.QuotaPath)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(subject, "/zookeeper_stats")
}
