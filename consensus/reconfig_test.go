package consensus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// published has each server publish where it is. Those that come later know the first three and themselves.
func published(c *Config) {
	c.Servers = slices.DeleteFunc(slices.Clone(c.Servers), func(s membership.Server) bool { return s.ID > 2 && s.ID != c.ID })
	for _, s := range c.Servers {
		if s.ID == c.ID {
			c.Publish = &state.Member{ID: s.ID, Peer: s.Addr + ":0"}
		}
	}
}

// reconfig begins a reconfiguration, to these servers, once all servers have published themselves.
func (e *testEnsemble) reconfig(through int, voters ...int) {
	e.t.Helper()
	x := &state.Reconfig{Version: -1, Complete: true}
	for _, i := range voters {
		x.Servers = append(x.Servers, state.PlannedServer{ID: e.servers[i].ID, Voter: true, Peer: e.servers[i].Addr + ":0"})
	}
	wait.Until(e.t, "a reconfiguration to begin", func() bool {
		code, err := e.nodes[through].queue.Do(e.longContext(), &state.Command{
			Op: state.OpReconfig, Identities: []znode.ID{znode.SuperIDs}, Reconfig: x,
		})
		if err != nil || code != znode.OK && code != znode.ErrUnimplemented {
			e.t.Fatalf("it ends with %v, %v, want it to begin", code, err)
		}
		return code == znode.OK
	})
}

// shown is the servers in /zookeeper/config, each with its role, as server i has applied it; false while a
// reconfiguration is under way there.
func (e *testEnsemble) shown(i int) (lines []string, ended bool) {
	h := e.nodes[i].handler
	h.mu.RLock()
	defer h.mu.RUnlock()
	text, _, _ := h.machine.Tree().Get(znode.ConfigPath, []znode.ID{znode.SuperIDs})
	for line := range strings.Lines(string(text)) {
		if name, rest, is := strings.Cut(line, "="); is && name != "version" {
			lines = append(lines, name+rest[strings.LastIndexByte(rest, ':'):len(rest)-1])
		}
	}
	return lines, h.machine.Reconfiguring() == nil
}

func (e *testEnsemble) waitShown(i int, want ...string) {
	e.t.Helper()
	wait.Until(e.t, fmt.Sprint("the list of servers ", want), func() bool {
		lines, ended := e.shown(i)
		return ended && slices.Equal(lines, want)
	})
}

// Three servers are replaced by three others while a client writes, and leaders are killed at moments that differ from
// round to round: it comes to its end, nothing is lost, and nothing happens twice.
func TestEnsemble_Reconfigure_ThreeByThreeOthers(t *testing.T) {
	tier.Seconds(t)
	for _, kill := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(kill.String(), func(t *testing.T) {
			t.Parallel()
			replaceThree(t, kill)
		})
	}
}

func replaceThree(t *testing.T, kill time.Duration) {
	e := newTestEnsemble(t, 3, published)
	e.waitFormed()
	through := (e.leader() + 1) % 3
	e.must(through, "/load")
	wait.Until(t, "the level", func() bool { return e.nodes[through].applied.Level() == state.MaxLevel })
	for range 3 {
		e.mustStart(e.room())
	}
	stop := make(chan struct{})
	var load sync.WaitGroup
	written := 0
	load.Go(func() {
		for ; ; written++ {
			select {
			case <-stop:
				return
			default:
			}
			path := fmt.Sprint("/load/", written)
			if o := e.await(path, e.propose(through, create(path))); o.lost || o.Code != znode.OK {
				t.Errorf("%s: lost %v, %v", path, o.lost, o.Code)
				return
			}
		}
	})
	e.reconfig(through, 3, 4, 5)
	wait.Until(t, "the new servers", func() bool { return len(e.nodes[through].ensemble.Members()) > 3 })
	if err := e.nodes[through].Ensemble().RemoveServer(e.longContext(), 2, false); kill > 0 && err != nil &&
		!errors.Is(err, membership.ErrReconfiguring) && !strings.Contains(err.Error(), membership.ErrReconfiguring.Error()) {
		t.Errorf("another change meanwhile: %v", err)
	}
	close(stop) // through will be removed, and may be the one that is killed
	load.Wait()
	timer := time.NewTimer(kill)
	defer timer.Stop()
	<-timer.C
	if victim := e.leader(); victim < 3 {
		e.crash(victim)
	}
	e.waitShown(3, "server.3:participant", "server.4:participant", "server.5:participant")
	e.waitVoters(3, 4, 5)
	e.must(4, "/through-another")
	for i := range written {
		if path := fmt.Sprint("/load/", i); !e.nodes[4].handler.exists(path) {
			t.Errorf("%s is lost", path)
		}
	}
	for i := range 3 {
		e.stop(i)
	}
	e.must(5, "/without-the-old-ones")
	e.agree()
	for i := 3; i < 6; i++ { // they find each other again, although no configuration names all of them
		e.stop(i)
	}
	for i := 3; i < 6; i++ {
		e.mustStart(i)
	}
	e.must(4, "/started-again")
	e.agree()
}

// Servers that do not come: everything is as it was before, and the next reconfiguration works.
func TestEnsemble_Reconfigure_NoQuorum(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, published)
	e.waitFormed()
	leader := e.leader()
	wait.Until(t, "the level", func() bool { return e.nodes[leader].applied.Level() == state.MaxLevel })
	x, y, z := e.room(), e.room(), e.room()
	e.reconfig(leader, x, y, z)
	wait.Until(t, "the addition", func() bool { return len(e.nodes[leader].ensemble.Members()) == 6 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := e.nodes[leader].Ensemble().AddServer(ctx, state.Member{ID: 9, Addr: "127.0.0.1:1"}); !errors.Is(err, membership.ErrReconfiguring) {
		t.Errorf("another change meanwhile: %v", err)
	}
	wait.Until(t, "what it waits for", func() bool {
		s, err := e.nodes[leader].Ensemble().Status(e.longContext())
		return err == nil && strings.HasPrefix(s.Reconfiguring, "it waits for the servers that will vote; server 3: ")
	})
	e.waitShown(leader, "server.0:participant", "server.1:participant", "server.2:participant")
	e.waitVoters(0, 1, 2)
	if s, err := e.nodes[leader].Ensemble().Status(e.longContext()); err != nil || s.Reconfiguring != "" {
		t.Errorf("after the end it is %q, %v, want nothing", s.Reconfiguring, err)
	}
	if members := e.nodes[leader].ensemble.Members(); len(members) != 3 {
		t.Errorf("members %v", slices.Sorted(maps.Keys(members)))
	}
	e.mustStart(x)
	e.reconfig(leader, 0, 1, 2, x)
	e.waitShown(leader, "server.0:participant", "server.1:participant", "server.2:participant", "server.3:participant")
	e.must(x, "/through-the-new-one")
	e.agree()
}
