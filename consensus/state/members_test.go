package state

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

func TestServerID_JSON(t *testing.T) {
	for text, id := range map[string]ServerID{"0": 0, "7": 7, "254": 254, "-1": NoServer} {
		var got ServerID
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != id {
			t.Errorf("%s is read as %d, %v", text, got, err)
		}
		if b, err := json.Marshal(id); err != nil || string(b) != text {
			t.Errorf("%d is written as %s, %v", id, b, err)
		}
	}
	for _, text := range []string{"255", "-2", "1.5", `"1"`, "99999999999999999999"} {
		var got ServerID
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %d", text, got)
		}
	}
}

// TestMachine_Configure_RendersMembers: /zookeeper/config in ZooKeeper's
// format, changed when servers publish, join, leave or change their vote.
func TestMachine_Configure_RendersMembers(t *testing.T) {
	g := newRig(t)
	text := func(want string) {
		t.Helper()
		got, st, _ := g.m.Tree().Get(znode.ConfigPath, nil)
		if string(got) != want || st.Version != -1 {
			t.Errorf("%q version %d, want %q", got, st.Version, want)
		}
	}
	configure := func(v map[ServerID]bool) {
		g.index++
		g.rec.lines = nil
		g.m.Configure(g.index, g.term, v, g.rec)
	}
	configure(map[ServerID]bool{1: true, 2: false})
	if data, _, _ := g.m.Tree().Get(znode.ConfigPath, nil); len(data) != 0 || len(g.rec.lines) != 0 {
		t.Errorf("before anybody has published: %q, %v", data, g.rec.lines)
	}
	g.must(2, Command{Op: OpMember, Member: Member{ID: 2, Peer: "h2:2888:3888", Client: "h2:2181"}})
	g.must(1, Command{Op: OpMember, Member: Member{ID: 1, Peer: "h1:2888:3888", HTTP: "h1:8080"}})
	text("server.1=h1:2888:3888:participant\nserver.2=h2:2888:3888:observer;h2:2181\nversion=100000002")
	// Who adds a server again does not know all that it has published, and takes nothing away.
	g.must(1, Command{Op: OpMember, Member: Member{ID: 2, Peer: "h2:2888:2888", Addr: "h2:2888"}})
	g.must(1, Command{Op: OpMember, Member: Member{ID: 1, Peer: "h1:2888:3888", Addr: "h1:2888"}})
	if m := g.m.Members(); m[2].Client != "h2:2181" || m[1].HTTP != "h1:8080" {
		t.Errorf("members %+v", m)
	}
	// The server itself may withdraw what it has published.
	g.must(2, Command{Op: OpMember, Member: Member{ID: 2, Peer: "h2:2888:3888", Client: "h2:2181"}})
	if m := g.m.Members(); m[2].Addr != "h2:2888" {
		t.Errorf("members %+v", m)
	}
	configure(map[ServerID]bool{1: true, 2: true})
	text("server.1=h1:2888:3888:participant\nserver.2=h2:2888:3888:participant;h2:2181\nversion=100000006")
	if len(g.rec.lines) != 1 || !strings.HasPrefix(g.rec.lines[0], "event NodeDataChanged /zookeeper/config") {
		t.Errorf("told %v", g.rec.lines)
	}
	configure(map[ServerID]bool{1: true, 2: true})
	if len(g.rec.lines) != 0 {
		t.Errorf("nothing changed, told %v", g.rec.lines)
	}
	if !slices.Equal(g.m.Voters(), []ServerID{1, 2}) {
		t.Errorf("voters %v", g.m.Voters())
	}
	configure(map[ServerID]bool{1: true})
	text("server.1=h1:2888:3888:participant\nversion=100000007")
	if m := g.m.Members(); len(m) != 1 || !m[1].Voter || m[1].HTTP != "h1:8080" {
		t.Errorf("members %+v", m)
	}
	if g.m.Index() != g.index {
		t.Errorf("index %d, want %d", g.m.Index(), g.index)
	}
}

// A server that publishes what is known changes nothing, also when the configuration
// has made it a voter meanwhile; what was set when it was added stays.
func TestMachine_Member_Merged(t *testing.T) {
	g := newRig(t)
	publish := func(m Member) znode.Zxid {
		g.must(1, Command{Op: OpMember, Member: m})
		return g.m.Zxid()
	}
	changed := g.m.MembersChanged()
	g.index++
	g.m.Configure(g.index, g.term, map[ServerID]bool{1: true, 2: true}, g.rec)
	if g.m.MembersChanged() == changed {
		t.Error("a configuration does not count as a change of the members")
	}
	full := Member{ID: 1, Peer: "h:1:2", Client: "h:3", HTTP: "h:4"}
	first := publish(full)
	if !g.m.Members()[1].Voter {
		t.Error("no voter")
	}
	if again := publish(full); again != first {
		t.Errorf("the same member is a transaction: %v after %v", again, first)
	}
	publish(Member{ID: 1, Peer: "h:1:2", Addr: "h:1", Vote: true}) // as one that is added
	want := Member{ID: 1, Peer: "h:1:2", Client: "h:3", HTTP: "h:4", Addr: "h:1", Vote: true, Voter: true}
	if got := g.m.Members()[1]; got != want {
		t.Errorf("added: %+v", got)
	}
	publish(full)
	if got := g.m.Members()[1]; got != want {
		t.Errorf("published: %+v", got)
	}
	publish(Member{ID: 1})
	if got := g.m.Members()[1]; got != want {
		t.Errorf("published without addresses: %+v", got)
	}
	want.Client, want.HTTP = "", ""
	publish(Member{ID: 1, Peer: "h:1:2"})
	if got := g.m.Members()[1]; got != want {
		t.Errorf("published without client addresses: %+v", got)
	}
	if one := publish(Member{ID: 1, HTTP: "h:9"}); one == first || g.m.Members()[1].HTTP != "h:9" {
		t.Errorf("published a new HTTP address: %+v, want h:9 and a change", g.m.Members()[1])
	}
}
