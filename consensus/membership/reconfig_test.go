package membership

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// stage plays a reconfiguration without raft: the moves change the configuration at once.
type stage struct {
	t *testing.T
	scene
	down  map[state.ServerID]bool
	took  time.Duration
	moves []string
	end   move
}

// newStage has voters, and observers with negative numbers, become others.
func newStage(t *testing.T, from, to []int) *stage {
	g := &stage{t: t, down: map[state.ServerID]bool{}}
	x := &state.Reconfiguration{Number: 1, Former: map[state.ServerID]bool{}}
	for _, n := range from {
		x.Former[state.ServerID(max(n, -n))] = n > 0
	}
	for _, n := range to {
		id := state.ServerID(max(n, -n))
		x.Servers = append(x.Servers, state.PlannedServer{ID: id, Voter: n > 0, Peer: peerOf(id)})
	}
	g.scene = scene{Reconfiguration: x, self: state.ServerID(from[0]), now: maps.Clone(x.Former), undo: znode.OK,
		members: map[state.ServerID]state.Member{}}
	for id := range x.Former {
		g.members[id] = state.Member{ID: id, Peer: peerOf(id)}
	}
	return g
}

func peerOf(id state.ServerID) string { return fmt.Sprintf("h%d:1:2", id) }

// look is what the leader sees.
func (g *stage) look() {
	g.sights = map[state.ServerID]sight{}
	for id, votes := range g.now {
		s := sight{votes: votes, joins: !votes, open: !g.down[id]}
		if g.down[id] {
			s.behind = "it is not connected"
		}
		g.sights[id] = s
	}
}

// step makes the next move, and reports whether there is another one. While the leader waits, time passes.
func (g *stage) step() bool {
	g.t.Helper()
	g.look()
	m := g.next()
	if m.kind == moveWait {
		g.waited += time.Second
		g.took += time.Second
		return true
	}
	g.moves = append(g.moves, fmt.Sprint(m.kind, " ", m.server))
	g.waited = 0
	left := maps.Clone(g.now)
	switch m.kind {
	case moveAdd, moveLocate:
		if m.kind == moveAdd {
			g.now[m.server] = false
		}
		g.members[m.server] = state.Member{ID: m.server, Peer: peerOf(m.server), Addr: fmt.Sprintf("h%d:1", m.server)}
	case movePromote:
		g.now[m.server] = true
	case moveDemote, moveRemove:
		if m.server == g.self {
			g.t.Fatalf("%v: the leader takes its own vote", g.moves)
		}
		if m.kind == moveRemove {
			delete(left, m.server)
		} else {
			left[m.server] = false
		}
		if !g.majority(left) { // canSpare refuses it
			g.moves = g.moves[:len(g.moves)-1]
			g.waited = stuckTime
			return true
		}
		g.now = left
	case moveHandOver:
		if !g.now[m.server] || g.down[m.server] {
			g.t.Fatalf("%v: it cannot lead", g.moves)
		}
		g.self = m.server
	case moveUndo:
		g.undo = m.code
	case moveFinish, moveAbort:
		g.end = m
		return false
	}
	if len(g.moves) > 100 {
		g.t.Fatalf("no end: %v", g.moves)
	}
	return true
}

// majority reports that a majority of the voters is connected.
func (g *stage) majority(now map[state.ServerID]bool) bool {
	voters, up := 0, 0
	for id, votes := range now {
		if votes {
			voters++
			if !g.down[id] {
				up++
			}
		}
	}
	return up > voters/2
}

func (g *stage) want(kind moveKind, code znode.Error, servers ...int) {
	g.t.Helper()
	want := map[state.ServerID]bool{}
	for _, n := range servers {
		want[state.ServerID(max(n, -n))] = n > 0
	}
	for id := range g.Former { // it is removed later
		if _, stays := want[id]; !stays {
			want[id] = false
		}
	}
	if g.end.kind != kind || g.end.code != code || !maps.Equal(g.now, want) {
		g.t.Errorf("%v: ends with %+v as %v, want %s %v as %v", g.moves, g.end, g.now, kind, code, want)
	}
}

// Whichever server leads, and whenever another one takes over, the reconfiguration comes to its end.
func TestScene_Next_WithLeadersThatChange(t *testing.T) {
	r := seed.Rand(t)
	for _, x := range []struct{ from, to []int }{
		{[]int{1, 2, 3}, []int{4, 5, 6}},
		{[]int{1, 2, 3}, []int{1, 2, 3, 4, 5}},
		{[]int{1, 2, 3, 4, 5}, []int{1, 2}},
		{[]int{1, 2, 3}, []int{-1, 2, 3, 4}},
		{[]int{1, 2, 3, -4}, []int{1, -2, -3, 4}},
		{[]int{1, 2, 3, -4, -5}, []int{1, 2, 3}},
		{[]int{1, 2, 3}, []int{1, 2, 3}},
		{[]int{1}, []int{2, 3, -4}},
	} {
		for range 50 {
			g := newStage(t, x.from, x.to)
			for g.step() {
				if r.IntN(3) > 0 {
					continue
				}
				var may []state.ServerID // another leader
				for id, votes := range g.now {
					if votes {
						may = append(may, id)
					}
				}
				slices.Sort(may)
				g.self, g.waited = may[r.IntN(len(may))], 0
			}
			g.want(moveFinish, znode.OK, x.to...)
		}
	}
}

func TestScene_Next_Moves(t *testing.T) {
	g := newStage(t, []int{1, 2, 3}, []int{3, 4, -2})
	for g.step() {
	}
	want := []string{"add 4", "promote 4", "demote 2", "hand over 3", "demote 1", "finish 0"}
	if !slices.Equal(g.moves, want) {
		t.Errorf("%v, want %v", g.moves, want)
	}
}

// Servers that do not come: what was added is removed again, also by the next leader, and the client hears why.
func TestScene_Next_NoQuorum_IsUndone(t *testing.T) {
	g := newStage(t, []int{1, 2, 3}, []int{4, 5, 6})
	g.down[4], g.down[5] = true, true
	for g.step() {
		if len(g.moves) == 4 { // half undone
			g.undo = znode.OK
		}
	}
	g.want(moveAbort, znode.ErrNewConfigNoQuorum, 1, 2, 3)

	// Those with votes already lose them again; the leader is one of them.
	g = newStage(t, []int{1, 2, 3}, []int{4, 5, 6})
	for len(g.moves) < 5 { // 3 added, 2 with votes
		g.step()
	}
	g.self, g.undo = 4, znode.ErrNewConfigNoQuorum
	for g.step() {
	}
	g.want(moveAbort, znode.ErrNewConfigNoQuorum, 1, 2, 3)
}

// A majority of the new voters is enough; the one that is missing gets its vote when it comes.
func TestScene_Next_OneIsMissing(t *testing.T) {
	g := newStage(t, []int{1, 2, 3}, []int{4, 5, 6})
	g.down[6] = true
	for g.step() {
	}
	g.want(moveFinish, znode.OK, 4, 5, -6)
}

// A client that waits for its reconfig sends no ping that is answered. Each vote that was taken or given began another
// five seconds for a server that never came, and Curator, cut off after ten, asked again and got BADVERSION.
func TestRegression_Scene_MissingServerIsWaitedForOnce(t *testing.T) {
	for _, to := range [][]int{{1, 2, 4}, {1, 4, 5, 6, 7}} {
		g := newStage(t, []int{1, 2, 3}, to)
		g.down[4] = true
		for g.step() {
		}
		if limit := joinTime + time.Duration(len(g.moves))*settleTime; g.end.kind != moveFinish || g.took > limit {
			t.Errorf("to %v: %v ended with %s after waiting for %v, want finish within %v",
				to, g.moves, g.end.kind, g.took, limit)
		}
	}
}

// After the point of no return an operator must have a way out: it ends as far as it has come.
func TestScene_Next_Stuck_EndsWhereItIs(t *testing.T) {
	g := newStage(t, []int{1, 2, 3}, []int{4, 5, 6})
	for g.mayUndo() {
		g.step()
	}
	g.down[4], g.down[5], g.down[6] = true, true, true
	g.self = 3
	for g.step() {
	}
	if g.end.kind != moveAbort || g.end.code != znode.ErrNewConfigNoQuorum || !g.now[1] || !g.now[3] {
		t.Errorf("%v: ends with %+v as %v", g.moves, g.end, g.now)
	}
}

// A server that is connected is not believed to be at another port; one with another name, and one that is away, is.
func TestScene_Next_OtherAddresses(t *testing.T) {
	for _, x := range []struct {
		peer string
		down bool
		want []string
	}{
		{"other:1:2", false, []string{"finish 0"}},
		{"h2:9:2", false, []string{"undo 0", "abort 0"}},
		{"h2:9:2", true, []string{"locate 2", "finish 0"}},
	} {
		g := newStage(t, []int{1, 2, 3}, []int{1, 2, 3})
		g.Servers[1].Peer, g.down[2] = x.peer, x.down
		for g.step() {
			if m := g.members[2]; m.Addr != "" {
				g.members[2] = state.Member{ID: 2, Addr: g.Servers[1].Addr()}
			}
		}
		if !slices.Equal(g.moves, x.want) {
			t.Errorf("%s: %v, want %v", x.peer, g.moves, x.want)
		}
	}
}
