package zk_test

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func enabled(_ *serverConfig, z *zkConfig) { z.Reconfig, z.MinVoters = true, 2 }

// 2.O. Without reconfigEnabled nothing is looked at.
func TestZKP_Reconfig_IsDisabled(t *testing.T) {
	c := start(t).connect()
	c.want(znode.ErrReconfigDisabled, wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: -1})
	c.fence()
}

// A standalone server has no members, and one of an ensemble that has not been upgraded must not send it.
func TestZKP_Reconfig_IsUnimplemented(t *testing.T) {
	k := start(t, enabled)
	c := k.connect()
	c.want(znode.ErrUnimplemented, wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: -1})
	k.publish(state.Member{MinLevel: 1, MaxLevel: state.MaxLevel})
	c.want(znode.ErrUnimplemented, wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: -1})
	c.fence()
}

// publish has servers publish themselves.
func (k *kit) publish(members ...state.Member) {
	k.t.Helper()
	for _, m := range members {
		if _, err := k.srv.Do(k.t.Context(), &state.Command{Op: state.OpMember, Member: m}); err != nil {
			k.t.Fatal(err)
		}
	}
}

// newReconfigurable has an ensemble of the servers 1 and 2.
func newReconfigurable(t *testing.T) *kit {
	k := start(t, enabled)
	k.log.BeginApply()
	k.log.machine.Configure(1, 1, map[state.ServerID]bool{1: true, 2: true}, k.log)
	k.log.EndApply()
	k.publish(state.Member{ID: 1, Peer: "h1:1:2", MinLevel: 1, MaxLevel: state.MaxLevel},
		state.Member{ID: 2, Peer: "h2:1:2", MinLevel: 1, MaxLevel: state.MaxLevel})
	return k
}

// The answer comes with the end, which the leader sends, and has the new configuration. What the client sent behind it
// waits.
func TestZKP_Reconfig_AnsweredAtTheEnd(t *testing.T) {
	k := newReconfigurable(t)
	c := k.connect()
	c.auth("digest", "super:test")
	joining := "server.3=h3:1:2;3, server.2=h2:1:2:observer;[::1]:4"
	first := c.send(wire.OpReconfig, &wire.ReconfigRequest{JoiningServers: &joining, CurConfigID: -1})
	second := c.send(wire.OpExists, &wire.ExistsRequest{Path: znode.ConfigPath})
	var x *state.Reconfiguration
	k.eventually("a reconfiguration", func() bool {
		k.log.BeginApply()
		defer k.log.EndApply()
		x = k.log.machine.Reconfiguring()
		return x != nil
	})
	other := k.connect()
	other.auth("digest", "super:test")
	other.want(znode.ErrReconfigInProgress, wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: 7})
	k.log.BeginApply()
	k.log.machine.Configure(1, 1, map[state.ServerID]bool{1: true, 2: false, 3: true}, k.log)
	k.log.EndApply()
	k.publish(state.Member{ID: 3, Peer: "h3:1:2", Addr: "h3:1"})
	end := &state.Command{Op: state.OpReconfig, Term: 1, Reconfig: &state.Reconfig{Step: state.ReconfigFinish, Number: x.Number}}
	if r, err := k.srv.Do(t.Context(), end); err != nil || r.Code != znode.OK {
		t.Fatalf("the end gets %v, %v, want OK", r.Code, err)
	}
	h, body := c.reply(first, wire.OpReconfig)
	if h.Err != znode.OK {
		t.Fatalf("the reply has %v, want none", h.Err)
	}
	got := body.(*wire.ReconfigResponse)
	want := "server.1=h1:1:2:participant\nserver.2=h2:1:2:observer;[::1]:4\nserver.3=h3:1:2:participant;0.0.0.0:3\nversion="
	if !strings.HasPrefix(string(got.Data), want) || got.Stat.Mzxid != h.Zxid || got.Stat.DataLength != int32(len(got.Data)) {
		t.Errorf("%q, %+v with zxid %v, want %q", got.Data, got.Stat, h.Zxid, want)
	}
	if _, body := c.reply(second, wire.OpExists); body.(*wire.ExistsResponse).Stat.Mzxid != h.Zxid {
		t.Errorf("a later request sees %+v", body)
	}
}

// Lists that make no sense.
func TestZKP_Reconfig_BadArguments(t *testing.T) {
	k := newReconfigurable(t)
	c := k.connect()
	c.auth("digest", "super:test")
	for _, x := range []struct{ joining, leaving, members string }{
		{joining: "server.3=h:1:2"}, // no client port
		{joining: "server.3"},
		{joining: "3=h:1:2;3"},
		{joining: "server.255=h:1:2;3"},
		{joining: "server.3=h:1:2;3;4"},
		{leaving: "x"},
		{leaving: "2"}, // one voter would be left
		{members: "server.1=h1:1:2\nserver.2=h2:1:2:observer"},
		{members: "server.1=h1:1:2,server.2=h2:1:2,group.1=1:2"},
		{members: "server.1=h1:1:2,server.2=h2:1:2,weight.1=2"},
		{members: "server.1=h1:1:2,server.2=h2:1:2,clientPort=5"},
		{members: "server.1=h1:1:2,server.2=h1:1:3"},
	} {
		q := &wire.ReconfigRequest{CurConfigID: -1}
		for _, list := range []struct {
			to   **string
			text string
		}{{&q.JoiningServers, x.joining}, {&q.LeavingServers, x.leaving}, {&q.NewMembers, x.members}} {
			if list.text != "" {
				*list.to = &list.text
			}
		}
		h, _ := c.call(wire.OpReconfig, q)
		if h.Err != znode.ErrBadArguments {
			t.Errorf("%+v: %v, want %v", x, h.Err, znode.ErrBadArguments)
		}
	}
	c.fence()
}
