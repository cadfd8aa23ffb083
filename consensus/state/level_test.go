package state

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// publishing is the Member that a server of a release with these levels publishes.
func publishing(id ServerID, lowest, highest Level) Command {
	return Command{Op: OpMember, Member: Member{
		ID: id, Peer: "h:1:2", Version: "v", MinLevel: lowest, MaxLevel: highest,
	}}
}

// The first level is the highest that all servers speak, as soon as all have published; then only OpLevel raises it, to
// what all speak, and nothing lowers it.
func TestMachine_Level(t *testing.T) {
	g := newRig(t)
	g.m.Configure(1, 1, map[ServerID]bool{1: true, 2: true, 3: false}, g.rec)
	raise := func(to Level) znode.Error { return g.do(1, Command{Op: OpLevel, Level: to})[0].Code }
	level := func(want Level) {
		t.Helper()
		if got := g.m.Level(); got != want {
			t.Errorf("level %d, want %d", got, want)
		}
	}
	g.must(1, publishing(1, MinLevel, MaxLevel+1))
	g.must(2, publishing(2, MinLevel, MaxLevel))
	level(0)
	if code := raise(MaxLevel); code != znode.ErrBadArguments {
		t.Errorf("a server has not published its levels: %v", code)
	}
	g.must(3, publishing(3, MinLevel, MaxLevel))
	level(MaxLevel)
	for to, want := range map[Level]znode.Error{MaxLevel: znode.OK, MaxLevel + 1: znode.ErrBadArguments} {
		if code := raise(to); code != want {
			t.Errorf("to %d: %v, want %v", to, code, want)
		}
	}
	level(MaxLevel)
	zxid := g.m.Zxid()
	g.must(2, publishing(2, MinLevel, MaxLevel+1)) // upgraded
	if g.m.Zxid() != zxid {
		t.Error("an upgrade has changed /zookeeper/config")
	}
	g.must(3, Command{Op: OpMember, Member: Member{ID: 3, Peer: "h:1:2", Addr: "h:1"}}) // added again
	if m := g.m.Members()[3]; m.MaxLevel != MaxLevel || m.Version != "v" {
		t.Errorf("the release of a server was forgotten: %+v", m)
	}
	if m, err := ReadSnapshot(bytes.NewReader(write(t, g.m))); err != nil || m.Level() != MaxLevel || m.Digest() != g.m.Digest() {
		t.Errorf("the snapshot is read with error %v, want the machine that was written", err)
	}
	g.must(3, publishing(3, MinLevel, MaxLevel+1))
	g.must(1, publishing(1, MaxLevel+1, MaxLevel+2))
	c := Command{Op: OpLevel, Level: MaxLevel + 1}
	err := g.m.Apply(g.index+1, 1, AppendEntry(nil, 5, []Batch{g.batch(Origin{1, 1}, c)}), g.rec)
	if err == nil || !strings.Contains(err.Error(), "run the newer release that the other servers run") {
		t.Errorf("a level that this build does not speak: %v", err)
	}
}

// A standalone server has no line in /zookeeper/config, but a level.
func TestMachine_Level_Standalone(t *testing.T) {
	g := newRig(t)
	g.m.Configure(1, 1, map[ServerID]bool{0: true}, g.rec)
	g.must(0, Command{Op: OpMember, Member: Member{Version: "v", MinLevel: 1, MaxLevel: 1}})
	if data, _, _ := g.m.Tree().Get(znode.ConfigPath, nil); len(data) != 0 || g.m.Zxid() != 0 || g.m.Level() != 1 {
		t.Errorf("%q, zxid %v, level %d", data, g.m.Zxid(), g.m.Level())
	}
}

func TestLevel_Spoken(t *testing.T) {
	for level, want := range map[Level]string{0: "", MaxLevel: "", MaxLevel + 1: "the newer release", MaxLevel + 9: "the newer release"} {
		if err := level.Spoken(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v, want %q", level, err, want)
		}
	}
}

// An operation of a later level is refused with both levels, also inside a multi.
func TestCommand_CheckLevel(t *testing.T) {
	defer func(was Level) { opLevels[OpCheckAbsent] = was }(opLevels[OpCheckAbsent])
	opLevels[OpCheckAbsent] = 7
	c := Command{Op: OpMulti, Ops: []Command{{Op: OpCreate}, {Op: OpCheckAbsent}}}
	var e *LevelError
	if err := c.CheckLevel(6); !errors.As(err, &e) || *e != (LevelError{7, 6}) {
		t.Errorf("CheckLevel(6): error %v, want a LevelError of 7 and 6", err)
	}
	c.Ops = c.Ops[:1]
	c.SetTrace("00-aa-bb-01", 1)
	if err := errors.Join(c.CheckLevel(0), (&Command{Op: OpSync}).CheckLevel(0)); err != nil {
		t.Error(err)
	}
	branch := Command{Op: OpBranch, Branch: &Branch{}}
	if err := branch.CheckLevel(1); !errors.As(err, &e) || *e != (LevelError{level2, 1}) {
		t.Errorf("CheckLevel(1) of a branch: error %v, want a LevelError of 2 and 1", err)
	}
	if err := (&Command{Op: OpPurge}).CheckLevel(1); !errors.As(err, &e) || *e != (LevelError{level2, 1}) {
		t.Errorf("CheckLevel(1) of a purge: error %v, want a LevelError of 2 and 1", err)
	}
	c.SetTrace("00-aa-bb-01", level2)
	if err := c.CheckLevel(1); !errors.As(err, &e) || *e != (LevelError{level2, 1}) {
		t.Errorf("CheckLevel(1) of a command with a trace: error %v, want a LevelError of 2 and 1", err)
	}
}
