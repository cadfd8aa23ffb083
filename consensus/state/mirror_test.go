package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

// Two machines that get the same transactions have the same state, whatever pieces these come in, however often, and
// whether one was written and read in between; and it is the source's.
func TestMirror_Random(t *testing.T) {
	r := seed.Rand(t)
	for round := range 20 {
		s, one := mirroring(t)
		two := newRig(t)
		two.prepares = true
		two.must(1, start("source"))
		for _, c := range s.upload(1, 9, 1+r.IntN(300)) {
			two.must(1, c)
		}
		for range 200 {
			s.random(r)
		}
		for i := 0; i < len(s.sent); {
			n := min(1+r.IntN(20), len(s.sent)-i)
			one.must(1, follow(1, s.sent[i:i+n]...))
			i += n
		}
		for i := 0; i < len(s.sent); {
			n := min(1+r.IntN(20), len(s.sent)-i)
			from := max(0, i-r.IntN(30)) // some have been applied
			two.must(1, follow(1, s.sent[from:i+n]...))
			if i += n; r.IntN(4) == 0 {
				m, err := ReadSnapshot(bytes.NewReader(write(t, two.m)))
				if err != nil {
					t.Fatalf("round %d: reading the snapshot of a mirror: %v", round, err)
				}
				two.m = m
			}
		}
		s.same(one.m)
		// What differs is how many commands brought them.
		one.m.origins, two.m.origins = nil, nil
		if a, b := one.m.Digest(), two.m.Digest(); a != b {
			t.Fatalf("round %d: digests %x and %x, want the same; mirrors %+v and %+v", round, a, b, one.m.mirror.Mirror, two.m.mirror.Mirror)
		}
		x, _ := one.m.Mirror()
		if x.Compared == 0 || x.Differing != 0 || x.Zxid != s.r.Zxid || x.Time != s.time {
			t.Fatalf("round %d: %+v, want digests, all equal, up to %v at %d", round, x, s.r.Zxid, s.time)
		}
	}
}

func TestMirror_Start_Refusals(t *testing.T) {
	for name, tt := range map[string]struct {
		before []Command
		text   string
		want   znode.Error
	}{
		"a znode":        {[]Command{create("/a")}, "source", znode.ErrNotEmpty},
		"a quota":        {[]Command{create("/zookeeper/quota/a")}, "source", znode.ErrNotEmpty},
		"a session":      {[]Command{openSession(5)}, "source", znode.ErrNotEmpty},
		"no text":        {nil, "", znode.ErrBadArguments},
		"a long text":    {nil, strings.Repeat("x", MaxMirrorSource+1), znode.ErrBadArguments},
		"another source": {[]Command{start("other")}, "source", znode.ErrNodeExists},
		"the same again": {[]Command{start("source")}, "source", znode.OK},
		"after an end":   {[]Command{start("other"), {Op: OpMirror, Mirror: MirrorStop}}, "source", znode.OK},
		"a take-over":    {[]Command{start("other"), {Op: OpMirror, Mirror: MirrorStop, Data: taken.Append(nil)}}, "source", znode.OK},
	} {
		g := newRig(t)
		for _, c := range tt.before {
			g.must(1, c)
		}
		before, zxid := write(t, g.m), g.m.Zxid()
		if got := g.do(1, start(tt.text))[0].Code; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		g.m.origins, g.m.index = nil, 0
		if have, is := g.m.Mirror(); tt.want == znode.OK && (!is || have != Mirror{Source: "source", Begun: 1}) {
			t.Errorf("%s: %+v, %v, want the source without a state", name, have, is)
		}
		if g.m.Zxid() != zxid || len(before) == 0 {
			t.Errorf("%s: zxid %v, want %v as before", name, g.m.Zxid(), zxid)
		}
	}
}

// While it mirrors, the machine draws no zxid, and refuses what would change znodes or sessions.
func TestMirror_RefusesOtherChanges(t *testing.T) {
	s, g := mirroring(t)
	g.m.level = level2
	g.must(1, follow(1, s.commit(0x77, replica.Change{Op: replica.OpCreate, Path: "/a/e", ACL: znode.OpenACL, Ephemeral: true, Creates: 1})))
	state := func() string { return fmt.Sprint(g.m.Zxid(), g.m.Tree().Size().Znodes, g.m.Sessions().Len()) }
	before := state()
	fullyMirrored, _ := g.m.Mirror()
	for _, c := range []Command{
		create("/b"), {Op: OpDelete, Path: "/a", Version: -1}, {Op: OpSetData, Path: "/a", Version: -1},
		{Op: OpSetACL, Path: "/a", ACL: znode.OpenACL, Version: -1}, {Op: OpMulti, Ops: []Command{create("/b")}},
		{Op: OpDeleteAll, Path: "/a", Version: -1}, {Op: OpExpireSession, Session: 0x77, Term: 1},
		{Op: OpReap, Path: "/a"}, {Op: OpRestore, Data: []byte("part")},
	} {
		if got := g.do(1, c)[0]; got.Code != znode.ErrNotReadOnly || got.Zxid != g.m.Zxid() {
			t.Errorf("operation %d: %v at %v, want %v at %v", c.Op, got.Code, got.Zxid, znode.ErrNotReadOnly, g.m.Zxid())
		}
	}
	for _, c := range []Command{{Op: OpSync}, {Op: OpDigest}, publishing(1, MinLevel, MaxLevel)} {
		g.must(1, c)
	}
	g.m.Configure(g.index+1, 1, map[ServerID]bool{1: true}, g.rec)
	g.m.Recover(1, g.index+2, 9)
	if got := g.do(1, Command{Op: OpMirror, Mirror: MirrorStop, Session: 0x77})[0].Code; got != znode.ErrUnimplemented {
		t.Errorf("a client's step: %v, want %v", got, znode.ErrUnimplemented)
	}
	if got := state(); got != before {
		t.Errorf("zxid, znodes, sessions: %s, want %s as before", got, before)
	}
	if data, stat, _ := g.m.Tree().Get(znode.ConfigPath, super); !strings.Contains(string(data), "server.1=h:1:2") || stat.Mzxid != s.r.Zxid {
		t.Errorf("the members are %q as of %v, want server 1 as of %v", data, stat.Mzxid, s.r.Zxid)
	}
	if got, _ := g.m.Mirror(); got != fullyMirrored {
		t.Errorf("%+v, want %+v", got, fullyMirrored)
	}
	g.must(1, follow(1, s.commit(1, replica.Change{Op: replica.OpDelete, Path: "/a/e"})))
	s.same(g.m)
}

// Steps of a leader that has been replaced change nothing, and neither do those that do not fit.
func TestMirror_Steps_Refusals(t *testing.T) {
	s, g := mirroring(t)
	load := s.upload(1, 10, 100)
	next := s.commit(1, replica.Change{Op: replica.OpCreate, Path: "/next", ACL: znode.OpenACL, Creates: -1})
	after := s.commit(1, replica.Change{Op: replica.OpSetData, Path: "/next", Version: 1})
	later := s.elect(replica.Change{Op: replica.OpSetData, Path: "/next", Version: 2})
	s.r.Zxid++ // one that is lost
	gap := s.commit(1, replica.Change{Op: replica.OpDelete, Path: "/next"})
	commit := load[len(load)-1]
	wrongSum := commit
	wrongSum.Restore.Sum++
	g.term = 2
	for name, tt := range map[string]struct {
		commands []Command
		want     znode.Error
	}{
		"a part of another term":     {[]Command{load[0]}, znode.ErrSessionMoved},
		"a load of another term":     {[]Command{commit}, znode.ErrSessionMoved},
		"transactions of another":    {[]Command{follow(1, next)}, znode.ErrSessionMoved},
		"a load without parts":       {[]Command{inTerm(2, commit)}, znode.ErrDataInconsistency},
		"a load without one":         {inTerms(2, slices.Delete(slices.Clone(load), 1, 2)), znode.ErrDataInconsistency},
		"another sum":                {inTerms(2, append(slices.Clone(load[:len(load)-1]), wrongSum)), znode.ErrMarshalling},
		"not a state":                {inTerms(2, notAState()), znode.ErrMarshalling},
		"a gap":                      {[]Command{follow(2, after)}, znode.ErrDataInconsistency},
		"a gap in another epoch":     {[]Command{follow(2, gap)}, znode.ErrDataInconsistency},
		"bytes that are none":        {[]Command{follow(2, []byte("nonsense"))}, znode.ErrMarshalling},
		"a length that is too large": {[]Command{{Op: OpMirror, Mirror: MirrorFollow, Term: 2, Data: []byte{9, 1}}}, znode.ErrMarshalling},
	} {
		before, zxid := g.m.Tree().Size(), g.m.Zxid()
		results := g.do(1, tt.commands...)
		if got := results[len(results)-1].Code; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if x, _ := g.m.Mirror(); g.m.Tree().Size() != before || g.m.Zxid() != zxid || !x.Loaded {
			t.Errorf("%s: %+v at %v, %+v; want %+v at %v, loaded", name, g.m.Tree().Size(), g.m.Zxid(), x, before, zxid)
		}
	}
	if got := g.do(1, follow(2, next, after, later, gap))[0].Code; got != znode.ErrDataInconsistency || g.m.Zxid() != 6<<32|1 {
		t.Errorf("a gap after three: %v at %v, want %v at 0x600000001", got, g.m.Zxid(), znode.ErrDataInconsistency)
	}
	for _, step := range []MirrorStep{MirrorPart, MirrorLoad, MirrorFollow, MirrorStop} {
		if got := newRig(t).do(1, Command{Op: OpMirror, Mirror: step, Term: 1})[0].Code; got != znode.ErrNoNode {
			t.Errorf("step %d without a mirror: %v, want %v", step, got, znode.ErrNoNode)
		}
	}
}

// A state is decoded before its entry is applied. Parts or a sum that come after that are not taken for others, and the
// outcome is that of a machine that decodes it later.
func TestMachine_Prepare(t *testing.T) {
	s := newSource(t)
	load := s.upload(1, 10, 100)
	last := len(load) - 1
	wrongSum, missing := load[last], load[last]
	wrongSum.Restore.Sum++
	missing.Restore.Part--
	for name, tt := range map[string]struct {
		entries [][]Command
		early   bool // the last entry's state was decoded before
		want    znode.Error
	}{
		"alone":               {[][]Command{load[:last], {load[last]}}, true, znode.OK},
		"with all parts":      {[][]Command{load}, false, znode.OK},
		"with the last part":  {[][]Command{load[:last-1], load[last-1:]}, false, znode.OK},
		"after a wrong sum":   {[][]Command{load[:last], {wrongSum, load[last]}}, true, znode.ErrDataInconsistency},
		"after a wrong load":  {[][]Command{load[:last], {missing, load[last]}}, true, znode.OK},
		"after another state": {[][]Command{load[:last], {load[last]}, load[:last], {load[last]}}, true, znode.OK},
		"of no state":         {[][]Command{notAState()[:1], notAState()[1:]}, false, znode.ErrMarshalling},
		"with garbage":        {[][]Command{load[:last], {create("/x"), {Op: OpSync}}, {load[last], load[0], load[last]}}, true, znode.ErrDataInconsistency},
	} {
		var digests [2]uint64
		for i := range digests {
			g := newRig(t)
			g.must(1, start("source"))
			g.prepares = i == 0
			var got znode.Error
			for n, commands := range tt.entries {
				commands = inTerms(1, commands)
				if g.prepares && n == len(tt.entries)-1 {
					g.m.Prepare(AppendEntry(nil, 1, []Batch{(&rig{next: map[Origin]uint64{}}).batch(Origin{9, 1}, commands...)}))
					if early := g.m.prepared.state != nil; early != tt.early {
						t.Errorf("%s: decoded before: %v, want %v", name, early, tt.early)
					}
				}
				results := g.do(1, commands...)
				got = results[len(results)-1].Code
			}
			if got != tt.want || g.m.prepared != (decoded{}) && tt.want == znode.OK {
				t.Errorf("%s: %v, prepared %+v; want %v, and nothing that stays in memory", name, got, g.m.prepared, tt.want)
			}
			digests[i] = g.m.Digest()
		}
		if digests[0] != digests[1] {
			t.Errorf("%s: digests %x and %x, want the same", name, digests[0], digests[1])
		}
	}
}

func inTerm(term uint64, c Command) Command {
	c.Term = term
	return c
}

func inTerms(term uint64, all []Command) []Command {
	all = slices.Clone(all)
	for i := range all {
		all[i].Term = term
	}
	return all
}

func notAState() []Command {
	x := RestoreCommand{Upload: 77, Part: 1}
	u := upload{parts: [][]byte{[]byte("not a state that a source can have")}}
	x.Sum = u.sum()
	return []Command{
		{Op: OpMirror, Mirror: MirrorPart, Data: u.parts[0], Restore: RestoreCommand{Upload: 77}},
		{Op: OpMirror, Mirror: MirrorLoad, Restore: x},
	}
}

// A transaction that does not fit the state ends following until the state is loaded again, with events of what differs.
func TestMirror_Lost_AndLoadedAgain(t *testing.T) {
	s, g := mirroring(t)
	bad := appendChange(appendHeader(1, 1, s.r.Zxid+1, 5, replica.OpDelete), &replica.Change{Op: replica.OpDelete, Path: "/none"})
	if got := g.do(1, follow(1, bad))[0].Code; got != znode.ErrMarshalling {
		t.Errorf("a transaction that does not fit: %v, want %v", got, znode.ErrMarshalling)
	}
	x, _ := g.m.Mirror()
	if x.Loaded || x.LostAt != s.r.Zxid+1 || x.Zxid != 0 {
		t.Errorf("%+v, want no state since %v", x, s.r.Zxid+1)
	}
	g.m = reread(t, g.m)
	next := s.commit(1, replica.Change{Op: replica.OpCreate, Path: "/b", ACL: znode.OpenACL, Creates: -1})
	if got := g.do(1, follow(1, next))[0].Code; got != znode.ErrDataInconsistency {
		t.Errorf("a transaction without a state: %v, want %v", got, znode.ErrDataInconsistency)
	}
	s.commit(1, replica.Change{Op: replica.OpDelete, Path: "/a"})
	s.commit(0x77, replica.Change{Op: replica.OpCloseSession})
	s.commit(0x78, replica.Change{Op: replica.OpCreateSession, Timeout: 5})
	g.term = 2
	var reported []string
	for _, c := range s.upload(2, 11, 100) {
		g.must(2, c) // at once, although another server's upload was not finished
		reported = g.rec.lines
	}
	if x, _ := g.m.Mirror(); !x.Loaded || x.LostAt != 0 || x.Loads != 2 {
		t.Errorf("%+v, want the second state", x)
	}
	s.same(g.m)
	got := strings.Join(reported, "\n")
	for _, want := range []string{"event nodedeleted /a 0x500000006", "event nodecreated /b 0x500000006", "closed 0x77 false", "opened {ID:0x78"} {
		if !strings.Contains(strings.ToLower(got), strings.ToLower(want)) {
			t.Errorf("reported\n%s\nwant also %q", got, want)
		}
	}
}

func reread(t *testing.T, m *Machine) *Machine {
	t.Helper()
	again, err := ReadSnapshot(bytes.NewReader(write(t, m)))
	if err != nil || again.Digest() != m.Digest() {
		t.Fatalf("reading the snapshot of a mirror: %v, want the same state", err)
	}
	return again
}

// A digest that differs is counted, and whether the last one did is known.
func TestMirror_Digests(t *testing.T) {
	s, g := mirroring(t)
	spoil := func(b []byte) []byte { return appendDigest(b[:len(b)-12:len(b)-12], 5) }
	set := func(version znode.Version) []byte {
		return s.commit(1, replica.Change{Op: replica.OpSetData, Path: "/a", Version: version})
	}
	first := s.r.Zxid
	g.must(1, follow(1, set(1), spoil(set(2)), spoil(set(3))))
	want := Mirror{Source: "source", Begun: 1, Loaded: true, Loads: 1, Zxid: first + 3, Time: s.time, Compared: 3,
		Differing: 2, FirstDiffering: first + 2, LastDiffering: first + 3, DiffersSince: first + 2}
	if got, _ := g.m.Mirror(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	g.must(1, follow(1, set(4)))
	want.Zxid, want.Time, want.Compared, want.DiffersSince = first+4, s.time, 4, 0
	if got, _ := reread(t, g.m).Mirror(); got != want {
		t.Errorf("after an equal one: %+v, want %+v", got, want)
	}
}

// What transactions add to the memory is known before they are in the log.
func TestMirror_Growth(t *testing.T) {
	s, g := mirroring(t)
	big := replica.Change{Op: replica.OpCreate, Path: "/big", Data: make([]byte, 1<<20), ACL: znode.OpenACL, Creates: -1}
	more := follow(1, s.commit(1, big))
	if got := more.MaxGrowth(); got < 1<<20 || got > 2<<20 {
		t.Errorf("MaxGrowth is %d, want about %d", got, 1<<20)
	}
	before := g.m.Memory()
	want := g.m.Growth(&more)
	g.must(1, more)
	if got := g.m.Memory() - before; got > want+1000 || got < want/2 {
		t.Errorf("the state grew by %d, want about %d", got, want)
	}
	less := follow(1, s.commit(1, replica.Change{Op: replica.OpMulti, Multi: []replica.Change{
		{Op: replica.OpDelete, Path: "/big"}, {Op: replica.OpSetData, Path: "/a", Data: []byte("y"), Version: 1},
	}}))
	if got := g.m.Growth(&less); got > -1<<20 {
		t.Errorf("Growth of a delete is %d, want at most %d", got, -1<<20)
	}
	g.must(1, less)
	s.same(g.m)
}

// Whatever a leader sends, no machine panics, and two of them stay the same.
func FuzzMirror_Follow(f *testing.F) {
	s, _ := mirroring(f)
	r := seed.Rand(f)
	for range 60 {
		s.random(r)
		f.Add(follow(1, s.sent[max(0, len(s.sent)-9):]...).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var digest [2]uint64
		for i := range digest {
			_, g := mirroring(t)
			c := Command{Op: OpMirror, Mirror: MirrorFollow, Term: 1, Data: data}
			_ = c.MaxGrowth()
			g.do(1, c)
			digest[i] = g.m.Digest()
		}
		if digest[0] != digest[1] {
			t.Errorf("digests %x and %x, want the same", digest[0], digest[1])
		}
	})
}

// A state that can be read can be written, and is then the same.
func FuzzMirrored(f *testing.F) {
	s, _ := mirroring(f)
	var b bytes.Buffer
	if err := WriteMirrored(&b, s.r); err != nil {
		f.Fatal(err)
	}
	whole := b.Bytes()
	f.Add(whole)
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		f.Add(damaged)
		f.Add(whole[:i])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readMirrored(bytes.NewReader(b))
		if bytes.Equal(b, whole) && err != nil {
			t.Errorf("reading what was written: %v, want no error", err)
		}
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := WriteMirrored(&again, r); err != nil {
			t.Fatalf("writing what was read: %v, want no error", err)
		}
		back, err := readMirrored(&again)
		if err != nil || back.Digest() != r.Digest() || back.Zxid != r.Zxid {
			t.Errorf("read again: %v, want the same state", err)
		}
	})
}

// A mirror that is begun again must be loaded again, and counts digests from 0; the znodes stay until then.
// A mirror that is begun again must be loaded again, and counts digests from 0; the znodes stay until then.
func TestMirror_Again(t *testing.T) {
	s, g := mirroring(t)
	g.must(1, follow(1, s.commit(0x77, replica.Change{Op: replica.OpCreate, Path: "/a/e", ACL: znode.OpenACL, Creates: 1})))
	before, _ := g.m.Mirror()
	size := g.m.Tree().Size()
	g.must(1, Command{Op: OpMirror, Mirror: MirrorAgain})
	want := Mirror{Source: before.Source, Begun: before.Begun + 1, Loads: before.Loads, Time: before.Time}
	if now, _ := g.m.Mirror(); now != want || before.Begun != 1 || before.Compared == 0 {
		t.Errorf("%+v after %+v, want %+v", now, before, want)
	}
	if g.m.Tree().Size() != size {
		t.Errorf("%+v, want the znodes as before, %+v", g.m.Tree().Size(), size)
	}
	if got := g.do(1, follow(1, s.commit(0x77, replica.Change{Op: replica.OpDelete, Path: "/a/e"})))[0].Code; got != znode.ErrDataInconsistency {
		t.Errorf("a transaction: %v, want %v", got, znode.ErrDataInconsistency)
	}
	for _, c := range s.upload(1, 10, 100) {
		g.must(1, c)
	}
	if now, _ := g.m.Mirror(); !now.Loaded || now.Zxid != s.r.Zxid {
		t.Errorf("%+v, want the state of %v", now, s.r.Zxid)
	}
}
