package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/migration/fence"
	"github.com/zk-lite/zk-lite/migration/replica"
)

// receiptOf is that of a server of the origin's that has all of its transactions but the last few.
func (g *rig) receiptOf(server int64, at fence.Point, less int) *fence.Receipt {
	g.t.Helper()
	tail := g.after(g.mustMirror().Zxid)
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	r := &fence.Receipt{Format: 1, Server: server, Epoch: 5, Zxid: fence.Zxid(g.r.Zxid),
		End: fence.Digest(g.r.Digest()), Point: at}
	if less > 0 {
		tail = tail[:max(len(tail)-less, 0)]
		r.Zxid -= fence.Zxid(less)
	}
	for _, raw := range tail {
		r.Tail = append(r.Tail, slices.Clone(raw))
	}
	r.Seal()
	return r
}

func (g *rig) mustMirror() state.Mirror {
	now, _ := g.mirror()
	return now
}

// away makes the origin unreachable.
func (g *rig) away() {
	g.edit(func() { g.end = func(int) error { return errors.New("connection refused") } })
	g.lead(1) // ends the first server's connection
	g.lead(0)
	clock.Sleep(time.Second)
}

// TestTakeover: with the receipts of a majority the origin's last transactions come over that the mirror has not heard
// of; then the state is our own, and to do it again changes nothing.
func TestTakeover(t *testing.T) {
	mirroring(t, 2, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		m := g.mirrors[0]
		clock.Sleep(time.Second)
		p := m.Plan()
		voters := []int64{1, 2, 3}
		if len(p.Unmet) != 0 || !slices.Equal(p.Point.Voters, voters) || p.Point.After != fence.Zxid(g.zxid()) ||
			len(p.Members) != 3 || p.Members[1].Peers[0] != "zk2:2888" {
			t.Fatalf("plan %+v, want nothing unmet, voters 1 to 3, and zxid %v", p, g.zxid())
		}
		g.away()
		g.origin.write(300)
		a, b := g.receiptOf(1, p.Point, 7), g.receiptOf(3, p.Point, 0)
		if unmet := m.Plan().Unmet; len(unmet) == 0 {
			t.Error("nothing is unmet while the origin is away")
		}
		if _, err := m.Takeover(t.Context(), []*fence.Receipt{b}, false); !errors.Is(err, fence.ErrTooFew) {
			t.Errorf("with one receipt: %v, want ErrTooFew", err)
		}
		if g.mustMirror().Zxid == g.zxid() {
			t.Fatal("refused, it has taken over the tail")
		}
		// The second server is a follower, and does as well.
		done, err := g.mirrors[1].Takeover(t.Context(), []*fence.Receipt{b, a}, false)
		if err != nil || done.Record.Tail != 300 || done.Record.Server != 3 || done.Zxid < g.zxid() || done.Already {
			t.Fatalf("%+v, %v; want 300 transactions of server 3", done, err)
		}
		if _, on := g.mirror(); on {
			t.Error("it still mirrors")
		}
		g.same()
		again, err := m.Takeover(t.Context(), []*fence.Receipt{b, a}, false)
		if err != nil || !again.Already || again.Zxid != done.Zxid || again.Record != done.Record || again.Record.Last != g.zxid() {
			t.Errorf("again: %+v, %v; want that it was done, as %+v", again, err, done.Record)
		}
		if _, err := m.Takeover(t.Context(), []*fence.Receipt{a}, false); !errors.Is(err, ErrOff) || !strings.Contains(err.Error(), fmt.Sprint("up to zxid ", g.zxid(), " of server 3")) {
			t.Errorf("with the receipt of a shorter log: %v, want ErrOff, and what was taken over", err)
		}
		if p := m.Plan(); len(p.Unmet) != 1 || !strings.Contains(p.Unmet[0].What, "nothing is mirrored") || p.Taken != done.Record || m.Status().Taken != done.Record {
			t.Errorf("a plan then is %+v, want one with the record alone", p)
		} else if !strings.Contains(p.Unmet[0].Do, "this ensemble serves") {
			t.Errorf("a plan then says to do %q, want nothing", p.Unmet[0].Do)
		}
		if s := m.Status(); s.Phase != Off || s.Error != "" {
			t.Errorf("the status then is %+v, want none of a connection that no one wants", s)
		}
	})
}

// TestTakeover_LeaderDies: the leader dies between the tail and the end of the mirror; the next one completes it.
func TestTakeover_LeaderDies(t *testing.T) {
	mirroring(t, 2, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		p := g.mirrors[0].Plan()
		g.away()
		g.origin.write(5)
		rs := []*fence.Receipt{g.receiptOf(1, p.Point, 0), g.receiptOf(2, p.Point, 0)}
		for _, raw := range g.after(g.mustMirror().Zxid)[:3] { // what the one that died has brought
			c := &state.Command{Op: state.OpMirror, Mirror: state.MirrorFollow, Term: g.term,
				Data: state.AppendTxn(nil, raw)}
			if _, err := g.mirrors[0].log.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		g.lead(1)
		done, err := g.mirrors[1].Takeover(t.Context(), rs, false)
		if err != nil || done.Record.Tail != 2 {
			t.Fatalf("%+v, %v; want the other 2 transactions", done, err)
		}
		g.same()
	})
}

// TestTakeover_OtherHistory: a log that ends with other znodes, or lacks what was mirrored, is refused, and nothing has
// ended; force takes what is here.
func TestTakeover_OtherHistory(t *testing.T) {
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		m := g.mirrors[0]
		p := m.Plan()
		g.away()
		g.origin.commit(replica.OpCreate, "/b")
		other := g.receiptOf(1, p.Point, 0)
		other.End++
		other.Seal()
		short := g.receiptOf(2, p.Point, 2)
		_, err := m.Takeover(t.Context(), []*fence.Receipt{short, g.receiptOf(3, p.Point, 3)}, false)
		if !errors.Is(err, fence.ErrDiffers) || !strings.Contains(err.Error(), "ends with transaction") {
			t.Errorf("logs that end before the mirror: %v, want ErrDiffers", err)
		}
		if _, err := m.Takeover(t.Context(), []*fence.Receipt{other, short}, false); !errors.Is(err, fence.ErrDiffers) {
			t.Errorf("another digest at the end: %v, want ErrDiffers", err)
		}
		if _, on := g.mirror(); !on {
			t.Fatal("refused, it no longer mirrors")
		}
		if done, err := m.Takeover(t.Context(), nil, true); err != nil || done.Record.Last != 0 || !done.Record.Forced {
			t.Errorf("forced: %+v, %v; want nothing of others", done, err)
		}
		if again, err := m.Takeover(t.Context(), nil, true); err != nil || !again.Already {
			t.Errorf("forced again: %+v, %v; want that it was done", again, err)
		}
		if _, err := m.Takeover(t.Context(), []*fence.Receipt{other, short}, false); !errors.Is(err, ErrOff) {
			t.Errorf("with receipts then: %v, want ErrOff", err)
		}
	})
}

// TestTakeover_NothingMirrored: an ensemble that has mirrored nothing, or has only ended its mirror, does not say that it
// has taken over, although its zxids are above those of the receipts.
func TestTakeover_NothingMirrored(t *testing.T) {
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		m := g.mirrors[0]
		receipts := []*fence.Receipt{{Format: 1, Server: 1, Zxid: 1}, {Format: 1, Server: 2, Zxid: 1}}
		for _, r := range receipts {
			r.Seal()
		}
		refused := func(what string) {
			t.Helper()
			for _, rs := range [][]*fence.Receipt{receipts, nil} {
				done, err := m.Takeover(t.Context(), rs, rs == nil)
				if !errors.Is(err, ErrOff) || !strings.HasSuffix(err.Error(), "no ensemble is mirrored, and nothing was taken over") || done.Already {
					t.Errorf("%s, with %d receipts: %+v, %v; want that nothing was taken over", what, len(rs), done, err)
				}
			}
		}
		refused("nothing was mirrored")
		g.begin(false)
		g.settle()
		if err := m.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := m.log.Held().Zxid; at <= 1 {
			t.Fatalf("zxid %v, want one above that of the receipts", at)
		}
		refused("the mirror has ended")
	})
}
