package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// newEnsembleRig has the voters 1 to n, which have published where they are.
func newEnsembleRig(t *testing.T, n ServerID) *rig {
	g := newRig(t)
	voters := map[ServerID]bool{}
	for id := ServerID(1); id <= n; id++ {
		voters[id] = true
	}
	g.configure(voters)
	for id := range n {
		g.must(id+1, Command{Op: OpMember, Member: Member{ID: id + 1, Peer: planned(id+1, true).Peer,
			Client: planned(id+1, true).Client, MinLevel: 1, MaxLevel: MaxLevel}})
	}
	return g
}

func (g *rig) configure(voters map[ServerID]bool) {
	g.index++
	g.rec.lines = nil
	g.m.Configure(g.index, g.term, voters, g.rec)
}

func planned(id ServerID, voter bool) PlannedServer {
	return PlannedServer{ID: id, Voter: voter, Peer: fmt.Sprintf("h%d:2888:3888", id), Client: fmt.Sprintf("0.0.0.0:%d", 2180+id)}
}

func (g *rig) configText() string {
	text, _, _ := g.m.Tree().Get(znode.ConfigPath, nil)
	return string(text)
}

// reconfig is the super user's.
func reconfig(x Reconfig) Command {
	return Command{Op: OpReconfig, Identities: []znode.ID{znode.SuperIDs}, Reconfig: &x}
}

// end is the leader's command.
func (g *rig) end(step ReconfigStep, code znode.Error) Command {
	return Command{Op: OpReconfig, Term: g.term, Reconfig: &Reconfig{Step: step, Number: g.m.Reconfiguring().Number, Code: code}}
}

// The codes, in ZooKeeper's order. Nothing has begun after any of them.
func TestMachine_Reconfig_Refused(t *testing.T) {
	g := newEnsembleRig(t, 3)
	joins := []PlannedServer{planned(4, true)}
	for name, x := range map[string]struct {
		c    Command
		want znode.Error
	}{
		"another version":                      {reconfig(Reconfig{Version: 5, Servers: joins}), znode.ErrBadVersion},
		"fewer voters than standaloneEnabled":  {reconfig(Reconfig{Version: -1, Leaving: []ServerID{2, 3}, MinVoters: 2}), znode.ErrBadArguments},
		"no voter":                             {reconfig(Reconfig{Version: -1, Leaving: []ServerID{1, 2, 3}}), znode.ErrBadArguments},
		"observers alone":                      {reconfig(Reconfig{Version: -1, Complete: true, Servers: []PlannedServer{planned(1, false)}}), znode.ErrBadArguments},
		"a server twice":                       {reconfig(Reconfig{Version: -1, Servers: []PlannedServer{{ID: 4, Voter: true, Peer: "h1:2888:1"}}}), znode.ErrBadArguments},
		"an impossible number":                 {reconfig(Reconfig{Version: -1, Servers: []PlannedServer{planned(255, true)}}), znode.ErrBadArguments},
		"may not write /zookeeper/config":      {Command{Op: OpReconfig, Reconfig: &Reconfig{Version: -1, Servers: joins}}, znode.ErrNoAuth},
		"the arguments before the permissions": {Command{Op: OpReconfig, Reconfig: &Reconfig{Version: 5, Servers: joins}}, znode.ErrBadVersion},
		"the end of none":                      {Command{Op: OpReconfig, Term: g.term, Reconfig: &Reconfig{Step: ReconfigFinish, Number: 1}}, znode.ErrNoNode},
	} {
		if r := g.do(1, x.c)[0]; r.Code != x.want || r.Relay != 0 || g.m.Reconfiguring() != nil {
			t.Errorf("%s: %v, relay %d, %+v, want %v", name, r.Code.Name(), r.Relay, g.m.Reconfiguring(), x.want.Name())
		}
	}
	// Those whom the ACL lets write may.
	op := znode.ID{Scheme: "digest", ID: "op:x"}
	g.must(1, Command{Op: OpSetACL, Path: znode.ConfigPath, Version: -1, Identities: []znode.ID{znode.SuperIDs},
		ACL: []znode.ACL{{Perms: znode.PermRead, ID: znode.Anyone}, {Perms: znode.PermWrite, ID: op}}})
	r := g.must(1, Command{Op: OpReconfig, Identities: []znode.ID{op}, Reconfig: &Reconfig{Version: g.m.configVersion(), Servers: joins}})
	if r.Relay == 0 {
		t.Errorf("%+v, want a number", r)
	}
	if r := g.do(1, reconfig(Reconfig{Version: 5}))[0]; r.Code != znode.ErrReconfigInProgress {
		t.Errorf("%v, want one to be in progress, whatever the arguments are", r.Code.Name())
	}
	alone := newRig(t)
	alone.configure(map[ServerID]bool{0: true})
	alone.must(0, Command{Op: OpMember, Member: Member{MinLevel: 1, MaxLevel: MaxLevel}})
	if r := alone.do(0, reconfig(Reconfig{Version: -1, Servers: joins}))[0]; r.Code != znode.ErrUnimplemented {
		t.Errorf("standalone: %v", r.Code.Name())
	}
}

// Three servers are replaced by three others, raft changing one at a time: /zookeeper/config changes once, at the end,
// and then the client has its answer, also if the state has been through a snapshot meanwhile.
func TestMachine_Reconfig_ChangesTheTextOnce(t *testing.T) {
	g := newEnsembleRig(t, 3)
	g.must(1, Command{Op: OpMember, Member: Member{ID: 3, Peer: "h3:2888:3888", Addr: "h3:2888", Vote: true}}) // added once
	before := g.configText()
	number := g.must(1, reconfig(Reconfig{Version: -1, Complete: true,
		Servers: []PlannedServer{planned(4, true), planned(5, true), planned(6, true), planned(7, false)}})).Relay
	quiet := func() {
		t.Helper()
		if text := g.configText(); text != before || slices.ContainsFunc(g.rec.lines, func(l string) bool { return strings.HasPrefix(l, "event") }) {
			t.Fatalf("%q, told %v, want no change yet", text, g.rec.lines)
		}
	}
	voters := map[ServerID]bool{1: true, 2: true, 3: true}
	for id := ServerID(4); id <= 7; id++ {
		voters[id] = false
		g.configure(voters)
		quiet()
		x := planned(id, true)
		g.must(1, Command{Op: OpMember, Member: Member{ID: id, Peer: x.Peer, Client: x.Client, Addr: x.Addr(), Vote: id < 7}})
		quiet()
		g.must(id, Command{Op: OpMember, Member: Member{ID: id, Peer: "other:1:2", HTTP: "h:80", MinLevel: 1, MaxLevel: MaxLevel}})
		quiet()
	}
	m, err := ReadSnapshot(bytes.NewReader(write(t, g.m)))
	if err != nil || m.Digest() != g.m.Digest() {
		t.Fatalf("the snapshot in the middle: %v", err)
	}
	g.m = m
	for id := ServerID(4); id <= 6; id++ {
		voters[id] = true
		g.configure(voters)
		voters[id-3] = false
		g.configure(voters)
		quiet()
	}
	stale := g.end(ReconfigFinish, znode.OK)
	g.term++
	if r := g.do(4, stale)[0]; r.Code != znode.ErrSessionMoved || g.m.Reconfiguring() == nil {
		t.Errorf("by a leader that has been replaced: %v", r.Code.Name())
	}
	zxid := g.m.Zxid()
	g.must(4, g.end(ReconfigFinish, znode.OK))
	want := "server.4=h4:2888:3888:participant;0.0.0.0:2184\nserver.5=h5:2888:3888:participant;0.0.0.0:2185\n" +
		"server.6=h6:2888:3888:participant;0.0.0.0:2186\nserver.7=h7:2888:3888:observer;0.0.0.0:2187\n" +
		fmt.Sprintf("version=%x", int64(g.m.Zxid()))
	if text := g.configText(); text != want || g.m.Zxid() <= zxid || g.m.configVersion() != g.m.Zxid() {
		t.Errorf("%q, want %q", text, want)
	}
	if len(g.rec.answers) != 1 || g.rec.answers[0].number != number || g.rec.answers[0].Code != znode.OK ||
		g.rec.answers[0].Stat.Mzxid != g.m.Zxid() || !strings.HasPrefix(g.rec.lines[0], "event NodeDataChanged /zookeeper/config") {
		t.Errorf("told %v", g.rec.lines)
	}
	if g.m.Members()[3].Vote {
		t.Error("a server that leaves would get its vote back")
	}
	for id := ServerID(1); id <= 3; id++ { // the leader removes those that leave
		if !g.m.Leaving()[id] || len(g.m.Leaving()) != int(4-id) {
			t.Errorf("leaving %v", g.m.Leaving())
		}
		if m, err := ReadSnapshot(bytes.NewReader(write(t, g.m))); err != nil || m.Digest() != g.m.Digest() || len(m.Leaving()) != int(4-id) {
			t.Errorf("the snapshot while servers leave: %v", err)
		}
		delete(voters, id)
		g.configure(voters)
		if text := g.configText(); text != want || len(g.rec.lines) > 0 {
			t.Errorf("%q, told %v, want no other version", text, g.rec.lines)
		}
	}
	if x := g.m.Members()[5]; x.HTTP != "h:80" || !x.Voter || !x.Vote || g.m.Reconfiguring() != nil {
		t.Errorf("member %+v", x)
	}
}

// What is undone leaves the text as it was; what ends in the middle shows what has become of the servers.
func TestMachine_Reconfig_Aborted(t *testing.T) {
	g := newEnsembleRig(t, 3)
	before := g.configText()
	start := func() {
		g.must(1, reconfig(Reconfig{Version: -1, Servers: []PlannedServer{planned(4, true)}, Leaving: []ServerID{1}}))
	}
	start()
	g.configure(map[ServerID]bool{1: true, 2: true, 3: true, 4: false})
	g.configure(map[ServerID]bool{1: true, 2: true, 3: true})
	g.must(2, g.end(ReconfigAbort, znode.ErrNewConfigNoQuorum))
	if text := g.configText(); text != before || len(g.rec.answers) != 1 || g.rec.answers[0].Code != znode.ErrNewConfigNoQuorum {
		t.Errorf("%q, told %v", text, g.rec.lines)
	}
	start()
	g.configure(map[ServerID]bool{2: true, 3: true})
	g.must(2, g.end(ReconfigAbort, znode.ErrNewConfigNoQuorum))
	if text := g.configText(); !strings.HasPrefix(text, "server.2=") || g.m.configVersion() != g.m.Zxid() {
		t.Errorf("%q, want it without server 1", text)
	}
	start()
	g.m.Recover(2, g.index+1, 9) // an ensemble that goes on alone has none
	if text := g.configText(); g.m.Reconfiguring() != nil || strings.Contains(text, "server.3=") {
		t.Errorf("recovered with %q and %+v", text, g.m.Reconfiguring())
	}
}

// A voter becomes an observer, and does not get its vote back by itself; another one's client address changes.
func TestMachine_Reconfig_RolesAndAddresses(t *testing.T) {
	g := newEnsembleRig(t, 3)
	g.must(1, Command{Op: OpMember, Member: Member{ID: 3, Peer: "h3:2888:3888", Addr: "h3:2888", Vote: true}}) // added once
	moved := planned(2, true)
	moved.Client = "h2:9999"
	g.must(1, reconfig(Reconfig{Version: -1, Servers: []PlannedServer{planned(3, false), moved}}))
	g.configure(map[ServerID]bool{1: true, 2: true, 3: false})
	g.must(1, g.end(ReconfigFinish, znode.OK))
	if m := g.m.Members(); m[3].Vote || m[3].Voter || m[3].Addr != "h3:2888" || m[2].Client != "h2:9999" || m[1].Client != "0.0.0.0:2181" {
		t.Errorf("members %+v", m)
	}
}

func TestParseServer(t *testing.T) {
	for text, want := range map[string]PlannedServer{
		"h:1:2":                      {Voter: true, Peer: "h:1:2"},
		"h:1:2:participant;3":        {Voter: true, Peer: "h:1:2", Client: "0.0.0.0:3"},
		" h:1:2:OBSERVER ; c:3 ":     {Peer: "h:1:2", Client: "c:3"},
		"[::1]:1:2:observer;[::2]:3": {Peer: "[::1]:1:2", Client: "[::2]:3"},
	} {
		got, err := ParseServer(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if got.Addr() != got.Peer[:len(got.Peer)-2] {
			t.Errorf("%q: address %q", text, got.Addr())
		}
	}
	for text, want := range map[string]string{
		"":                                "is not host:peerPort",
		"h:1":                             "is not host:peerPort",
		"h:1:2:3:4":                       "is not host:peerPort",
		"h:0:2":                           "is not host:peerPort",
		":1:2":                            "is not host:peerPort",
		"::1:1:2":                         "is not host:peerPort",
		"h\x00:1:2":                       "is not host:peerPort",
		strings.Repeat("h", 256) + ":1:2": "is not host:peerPort",
		"h:1:2:leader":                    "is no role",
		"h:1:2;":                          "what follows the semicolon",
		"h:1:2;c:x":                       "what follows the semicolon",
		"h:1:2|i:1:2":                     "several addresses",
	} {
		if got, err := ParseServer(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzParseServer(f *testing.F) {
	f.Add("h:1:2:participant;c:3")
	f.Add("[::1]:1:2;3")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ParseServer(text)
		if err != nil {
			return
		}
		again := x.Peer
		if !x.Voter {
			again += ":observer"
		}
		if x.Client != "" {
			again += ";" + x.Client
		}
		if y, err := ParseServer(again); err != nil || x != y || strings.ContainsAny(again, "\n\r=,") {
			t.Errorf("%q is %+v, which is %q: %+v, %v", text, x, again, y, err)
		}
	})
}
