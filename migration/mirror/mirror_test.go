package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/migration/learner"
)

// A mirror takes a snapshot, and then each transaction; the servers that do not lead do nothing.
func TestMirror_Follows(t *testing.T) {
	mirroring(t, 3, nil, func(t *testing.T, g *rig) {
		g.write(100)
		g.begin(false)
		g.settle()
		g.write(1000)
		g.settle()
		if got, want := g.positions(), "0x0"; got != want {
			t.Errorf("followed from %s, want once, from %s", got, want)
		}
		s := g.mirrors[0].Status()
		if s.Phase != Following || s.Applied != 1000 || s.Snapshots != 1 || s.Origin.Server != "zk1:2888" ||
			s.Compared != 1000 || s.Differing != 0 || s.Received != g.zxid() || s.Lags.Quantile(1) == 0 {
			t.Errorf("%+v, want it to follow, with 1000 transactions compared", s)
		}
		if len(s.Findings) != 1 || s.Findings[0].Setting != "jute.maxbuffer" || s.Findings[0].Some[0] != "/a" ||
			strings.Count(g.log.String(), "exceeds a setting") != 1 {
			t.Errorf("findings %+v, want that /a has more than 500 bytes; log:\n%v", s.Findings, &g.log)
		}
		if s := g.mirrors[1].Status(); s.Phase != Waiting || s.Zxid != g.zxid() {
			t.Errorf("a follower: %+v, want it to wait, with the zxid", s)
		}
		g.begin(false) // again
		if err := g.mirrors[1].Begin(t.Context(), []string{"other:2888"}, false); !errors.Is(err, ErrOther) {
			t.Errorf("another origin: %v, want %v", err, ErrOther)
		}
		if err := g.mirrors[2].End(t.Context()); err != nil {
			t.Errorf("the end: %v, want nil", err)
		}
		clock.Sleep(time.Second)
		if s := g.mirrors[0].Status(); s.Phase != Off || s.Origin.Server != "" {
			t.Errorf("after the end: %+v, want it off", s)
		}
		if err := g.mirrors[0].End(t.Context()); !errors.Is(err, ErrOff) {
			t.Errorf("another end: %v, want %v", err, ErrOff)
		}
		if err := g.mirrors[0].Begin(t.Context(), []string{"zk1:2888"}, false); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("another mirror: %v, want %v", err, ErrNotEmpty)
		}
	})
}

// Whatever a leader is doing when it is deposed, it stops and changes nothing, and the next one goes on.
func TestMirror_LeaderChanges(t *testing.T) {
	for _, step := range []state.MirrorStep{state.MirrorStart, state.MirrorPart, state.MirrorLoad, state.MirrorFollow} {
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
			mirroring(t, 2, nil, func(t *testing.T, g *rig) {
				changed := false
				g.gate = func(c *state.Command) {
					if c.Op == state.OpMirror && c.Mirror == step && !changed {
						changed = true
						g.lead(1) // before the command is applied
						clock.Sleep(5 * time.Second)
					}
				}
				g.write(50)
				g.begin(false)
				clock.Sleep(time.Second)
				g.write(500)
				g.settle()
				if s := g.mirrors[0].Status(); s.Phase != Waiting || s.Fault != "" {
					t.Errorf("the deposed leader: %+v, want it to wait", s)
				}
				if s := g.mirrors[1].Status(); s.Phase != Following {
					t.Errorf("the leader: %+v, want it to follow", s)
				}
				g.lead(0)
				g.write(10)
				g.settle()
				if now, _ := g.mirror(); now.Loads != 1 || now.Differing != 0 || !changed {
					t.Errorf("%+v, want one load, and no digest to differ", now)
				}
			})
		})
	}
}

// Transactions wait for the log in few large commands, and the origin when there are too many.
func TestMirror_SlowLog(t *testing.T) {
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.edit(func() { g.gate = func(*state.Command) { clock.Sleep(100 * time.Millisecond) } })
		g.write(5000)
		g.settle()
		g.ensemble.mu.Lock()
		defer g.ensemble.mu.Unlock()
		large := 0
		for _, n := range g.bytes {
			if n > maxBatch+2000 {
				t.Errorf("a command with %d bytes, want %d at most", n, maxBatch)
			}
			if n > maxBatch/2 {
				large++
			}
		}
		if n := g.most[state.MirrorFollow]; n != maxBatches || large < 15 {
			t.Errorf("%d in flight, %d of %d large; want %d, and most large", n, large, len(g.bytes), maxBatches)
		}
	})
}

// What the learner reports as a lost place, and what does not fit the state, has the mirror begin again with a snapshot.
func TestMirror_LosesItsPlace(t *testing.T) {
	for _, lost := range []error{learner.ErrGap, learner.ErrFar, errLost} {
		mirroring(t, 1, nil, func(t *testing.T, g *rig) {
			g.end = func(n int) error {
				switch n {
				case 2:
					return errors.New("connection lost")
				case 3:
					return fmt.Errorf("zk1: %w", lost)
				}
				return nil
			}
			g.begin(false)
			g.settle()
			at := g.zxid()
			g.lead(0) // in another term: the connection ends
			clock.Sleep(time.Second)
			g.write(10)
			g.settle()
			if got, want := g.positions(), fmt.Sprintf("0x0 %v %v 0x0", at, at); got != want {
				t.Errorf("%v: followed from %s, want %s", lost, got, want)
			}
			if now, _ := g.mirror(); now.Loads != 2 || strings.Count(g.log.String(), "has lost its place, and begins again") != 1 {
				t.Errorf("%v: %+v, want two loads, and one message in the log:\n%v", lost, now, &g.log)
			}
		})
	}
}

// A transaction that the state machine cannot apply costs a snapshot.
func TestMirror_TransactionDoesNotFit(t *testing.T) {
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.edit(func() {
			raw := bytes.Clone(g.sent[1]) // creates /a once more
			copy(raw[12:20], []byte{0, 0, 0, 5, 0, 0, 0, 3})
			g.sent = append(g.sent, raw)
			g.r.Zxid++
		})
		g.write(10)
		g.settle()
		if now, _ := g.mirror(); now.Loads != 2 || now.Differing != 0 {
			t.Errorf("%+v, want two loads, and no digest to differ", now)
		}
		if !strings.Contains(g.log.String(), "a transaction did not fit the state: zxid 0x500000003") {
			t.Errorf("the log lacks the zxid:\n%v", &g.log)
		}
	})
}

// A mirror stops for what an operator has to decide, on every server and under every later leader, until it is begun
// again.
func TestMirror_Stops(t *testing.T) {
	for _, tt := range []struct {
		name, fault string
		end         error
		room        int64
	}{
		{"truncated", "the leader has only transactions up to 0x500000001 of those that were committed up to 0x500000002",
			&learner.TruncatedError{To: firstZxid, Have: firstZxid + 1}, 1 << 40},
		{"no room", "limits.treeBytes: it takes about", nil, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mirroring(t, 2, nil, func(t *testing.T, g *rig) {
				g.edit(func() { g.room = tt.room })
				g.end = func(n int) error {
					if n < 2 {
						return tt.end
					}
					return nil
				}
				g.begin(false)
				clock.Sleep(time.Hour)
				s := g.mirrors[0].Status()
				if s.Phase != Stopped || !strings.Contains(s.Fault, tt.fault) || s.Fault != g.mirrors[0].Fault() || g.parts != 0 {
					t.Errorf("%+v, and %d parts; want it to have stopped: %s", s, g.parts, tt.fault)
				}
				if s := g.mirrors[1].Status(); s.Phase != Stopped || !strings.Contains(g.mirrors[1].Fault(), tt.fault) {
					t.Errorf("a follower: %+v; want that it knows of it", s)
				}
				g.lead(1)
				clock.Sleep(time.Hour)
				if got := g.positions(); got != "0x0" {
					t.Errorf("followed from %s, want once", got)
				}
				if n := strings.Count(g.log.String(), "the mirror of ZooKeeper has stopped, and waits for zk-lite mirror --restart"); n != 1 {
					t.Errorf("%d messages, want 1, in the log:\n%v", n, &g.log)
				}
				g.begin(false)
				clock.Sleep(time.Minute)
				if got := g.mirrors[0].Fault(); got == "" {
					t.Errorf("after the same request once more: %q, want the fault", got)
				}
				g.edit(func() { g.room = 1 << 40 })
				g.begin(true)
				g.settle()
				if got := g.mirrors[0].Fault(); got != "" {
					t.Errorf("begun again: %q, want no fault", got)
				}
			})
		})
	}
}

// What a leader has seen counts although it is deposed before it could report it: the origin may send a snapshot to the
// next one, as if nothing had been lost.
func TestMirror_Stops_LeaderDeposed(t *testing.T) {
	mirroring(t, 2, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.edit(func() {
			g.gate = func(c *state.Command) {
				if c.Op == state.OpMirror && c.Mirror == state.MirrorFault {
					g.lead(1)
				}
			}
			g.end = func(int) error {
				return &learner.TruncatedError{To: firstZxid, Have: firstZxid + 1}
			}
		})
		g.cut.Store(true)
		g.until("a fault", func() bool { now, _ := g.mirror(); return now.Fault != "" })
		g.edit(func() { g.end = nil })
		n := len(strings.Fields(g.positions()))
		clock.Sleep(time.Hour)
		s := g.mirrors[1].Status()
		if got := len(strings.Fields(g.positions())); got > n || s.Phase != Stopped || !s.Leads {
			t.Errorf("%d connections, and then %d, of the next leader: %+v; want it to have stopped", n, got, s)
		}
		g.begin(true)
		g.settle()
	})
}

// Digests that differ are a fault only if they stay so: ZooKeeper sends wrong ones after writes of the root.
func TestMirror_DigestsDiffer(t *testing.T) {
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		g.begin(false)
		g.settle()
		g.write(1)
		differ := func(length time.Duration) {
			g.edit(func() { g.spoil = true })
			for range length / time.Second {
				g.write(1)
				clock.Sleep(time.Second)
			}
			g.edit(func() { g.spoil = false })
		}
		for range 3 {
			differ(patience - 5*time.Second)
			g.write(1)
			g.settle()
		}
		if s := g.mirrors[0].Status(); s.Phase != Following || s.Differing != 165 || s.DiffersSince != 0 {
			t.Errorf("%+v, want it to follow, with 165 digests that have differed", s)
		}
		since := g.zxid() + 1
		differ(patience + 5*time.Second)
		s := g.mirrors[0].Status()
		if s.Phase != Stopped || !strings.Contains(s.Fault, fmt.Sprintf("since zxid %v no digest has fitted, for 1m0s", since)) {
			t.Errorf("%+v, want it to have stopped since %v", s, since)
		}
		g.begin(true)
		g.settle()
		g.write(3)
		g.settle()
		if now, _ := g.mirror(); now.Compared != 3 || now.Differing != 0 {
			t.Errorf("begun again: %+v, want three digests, all equal", now)
		}
	})
}

// An origin that is down is asked again, less and less often; an id that its configuration has is not used again.
func TestMirror_ConnectsAgain(t *testing.T) {
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		down := true
		g.end = func(n int) error {
			switch {
			case n == 1:
				return fmt.Errorf("%w: 7", learner.ErrListed)
			case down:
				return fmt.Errorf("%w; zk1:2888: connection refused", learner.ErrNoLeader)
			}
			return nil
		}
		g.begin(false)
		clock.Sleep(10 * time.Minute)
		g.edit(func() {
			if n := len(g.follows); n < 55 || n > 75 {
				t.Errorf("%d attempts in ten minutes, want about one in ten seconds", n)
			}
			if g.ids[1] != g.ids[0]+1 || g.ids[2] != g.ids[1] || g.ids[0] != 1<<62|0x3f07<<48 {
				t.Errorf("ids %x, want another one after the first, and that one again", g.ids[:3])
			}
		})
		if got := g.mirrors[0].Fault(); !strings.Contains(got, "not connected: no leader was found; zk1:2888: connection refused") {
			t.Errorf("fault %q, want why it is not connected", got)
		}
		g.edit(func() { down = false })
		g.settle()
		if got := g.mirrors[0].Fault(); got != "" {
			t.Errorf("connected, with the fault %q", got)
		}
	})
}

func TestMirror_Begin_Refusals(t *testing.T) {
	long := make([]string, 255)
	for i := range long {
		long[i] = strings.Repeat("x", 100) + ":1"
	}
	mirroring(t, 1, nil, func(t *testing.T, g *rig) {
		for _, from := range [][]string{
			nil, {""}, {"zk1"}, {"zk1:0"}, {"zk1:99999"}, {":2888"}, {"zk1:2888", "zk2:x"}, {"zk1:2888,zk2:2888"},
			{"zk1:2888:3888"}, {"zk 1:2888"}, make([]string, 256), long,
		} {
			if err := g.mirrors[0].Begin(t.Context(), from, false); !errors.Is(err, ErrAddress) {
				t.Errorf("%.200q: %v, want %v", from, err, ErrAddress)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.mirrors[0].Begin(ctx, []string{"[::1]:2888"}, false); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want nothing, or %v", err, context.Canceled)
		}
	})
}

// The setting begins a mirror in an empty ensemble, and has no effect where there are znodes.
func TestMirror_Setting(t *testing.T) {
	mirroring(t, 2, []string{"zk1:2888"}, func(t *testing.T, g *rig) {
		g.settle()
		if now, _ := g.mirror(); now.Source != "zk1:2888" {
			t.Errorf("%+v, want the setting's origin", now)
		}
		if err := g.mirrors[0].End(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.lead(1)
		clock.Sleep(time.Minute)
		if _, on := g.mirror(); on {
			t.Error("it mirrors again, want it to stay ended")
		}
		if n := strings.Count(g.log.String(), `mirror.from has no effect" reason="there are znodes`); n != 1 {
			t.Errorf("%d messages, want one, of the second leader:\n%v", n, &g.log)
		}
		if stat, _ := g.machine.Tree().Exists("/a", nil); stat.Czxid != firstZxid+1 {
			t.Errorf("/a has %+v, want the origin's", stat)
		}
	})
}
