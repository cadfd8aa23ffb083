package transport

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/pipenet"
)

// Goal: after a leader's process died a new one is there within milliseconds; switched off, it
// takes raft's timeouts. Method: its connections end and its address refuses, which is all that
// the others can see of it.
func TestFailover_ProcessDeath_ElectsAtOnce(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, off := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, clusterOptions{n: n, options: Options{NoFailover: off}})
				l := c.leader()
				c.apply(l, "x")
				clock.Sleep(2 * time.Second)
				term := l.raft().CurrentTerm()
				start := time.Now()
				c.f.Vanish(l.addr)
				next := c.leader(l)
				c.apply(next, "y")
				d := time.Since(start)
				t.Logf("servers %d, off=%v: first commit after %v", n, off, d)
				if off != (d > 200*time.Millisecond) {
					t.Fatalf("servers %d, off=%v: first commit after %v", n, off, d)
				}
				if !off && next.raft().CurrentTerm() != term+1 {
					t.Fatalf("term %d after %d: more than one election",
						next.raft().CurrentTerm(), term)
				}
			})
		}
	}
}

// Goal: one follower that is refused by a healthy leader changes nothing.
func TestFailover_FalseAlarm_NoElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(time.Second)
		term := l.raft().CurrentTerm()
		f := c.others(l)[0]
		c.f.Refuse(f.addr, l.addr)
		f.t.failover.look()
		clock.Sleep(3 * time.Second)
		st := f.t.Stats()
		if st.Deaths != 1 || st.Asks == 0 || st.Elections != 0 {
			t.Fatalf("the follower did not come to the finding, or acted on it: %+v", st)
		}
		if l.raft().State() != raft.Leader || l.raft().CurrentTerm() != term {
			t.Fatalf("the leader changed: %v, term %d after %d",
				l.raft().State(), l.raft().CurrentTerm(), term)
		}
		for _, s := range c.servers {
			if got := s.t.Stats(); got.Grants != 0 {
				t.Fatalf("server %d granted a pre-vote: %+v", s.id, got)
			}
		}
	})
}

// Goal: a connection of the leader that ends while it lives is worth a look and no more.
func TestFailover_ConnectionEnds_OnlyProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(time.Second)
		term := l.raft().CurrentTerm()
		c.f.Drop(l.addr)
		clock.Sleep(3 * time.Second)
		probes := int64(0)
		for _, s := range c.others(l) {
			st := s.t.Stats()
			probes += st.Probes
			if st.Deaths != 0 || st.Asks != 0 {
				t.Fatalf("a living leader was taken for dead: %+v", st)
			}
		}
		if probes == 0 {
			t.Fatal("nobody looked")
		}
		if l.raft().State() != raft.Leader || l.raft().CurrentTerm() != term {
			t.Fatal("the leader changed")
		}
	})
}

// Goal: without a vote, no campaign: TimeoutNow would make even a non-voter campaign.
func TestFailover_NonVoter_NeverCampaigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		f := c.others(l)[0]
		if err := l.raft().DemoteVoter(RaftID(f.id), 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		c.apply(l, "x")
		clock.Sleep(time.Second)
		c.f.Vanish(l.addr)
		clock.Sleep(300 * time.Millisecond)
		if st := f.t.Stats(); st.Deaths == 0 || st.Elections != 0 || f.raft().State() != raft.Follower {
			t.Fatalf("non-voter: %+v, %v", st, f.raft().State())
		}
	})
}

// Goal: the watchdog's cut makes a healthy majority elect although the leader's heartbeats would go
// on; once restored the old leader follows.
func TestFailover_CutRaft_OthersElect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(time.Second)
		start := time.Now()
		l.mux.CutRaft()
		n := c.leader(l)
		c.apply(n, "y")
		if d := time.Since(start); d > 3*time.Second {
			t.Fatalf("it took %v", d)
		}
		l.mux.RestoreRaft()
		c.await("the old leader has caught up", func() bool {
			_, ok := l.fsm.has("y")
			return ok && l.raft().State() == raft.Follower
		})
	})
}

// Goal: an early election is by raft's rules: of two followers only the one with the longer log can
// win, although the other ranks first.
func TestFailover_ShorterLog_DoesNotWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(time.Second)
		o := c.others(l)
		behind, ahead := o[0], o[1]
		if behind.id > ahead.id {
			behind, ahead = ahead, behind
		}
		// The leader no longer reaches the first in rank, whose log falls behind.
		c.f.Deafen(l.addr, behind.addr)
		c.apply(l, "y")
		start := time.Now()
		c.f.Vanish(l.addr)
		n := c.leader(l)
		if d := time.Since(start); n != ahead || d > 100*time.Millisecond {
			t.Fatalf("server %d won after %v, want %d; behind %+v, ahead %+v",
				n.id, d, ahead.id, behind.t.Stats(), ahead.t.Stats())
		}
		if behind.t.Stats().Elections != 0 {
			t.Fatal("the shorter log campaigned")
		}
		c.apply(n, "z")
	})
}

// One of two survivors granted a pre-vote by the log that raft knew, while an entry was being written, and refused
// the vote that followed. The candidate, which could no longer win, kept its promise to itself for 250 ms. Method:
// the leader dies while the second in rank writes an entry that the first does not have.
func TestRegression_EntryBeingWritten_IsNewer(t *testing.T) {
	for _, sync := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, clusterOptions{})
			l := c.leader()
			c.apply(l, "x")
			clock.Sleep(time.Second)
			first, second := c.others(l)[0], c.others(l)[1]
			second.disk.setSlow(sync)
			c.f.Deafen(l.addr, first.addr)
			clock.Sleep(100 * time.Millisecond)
			l.raft().Apply([]byte("y"), 0)
			clock.Sleep(sync / 2)
			start := time.Now()
			c.f.Vanish(l.addr)
			next := c.leader(l)
			c.apply(next, "z")
			campaigns := first.t.Stats().Elections + second.t.Stats().Elections
			if took := time.Since(start); next != second || campaigns != 1 || took > 12*sync+50*time.Millisecond {
				t.Errorf("sync %v: server %d leads after %v and %d campaigns, want server %d",
					sync, next.id, took, campaigns, second.id)
			}
		})
	}
}

// A paused leader was replaced after 2.6 s once: a server granted a pre-vote, because its leader had been silent, to a
// candidate of raft's own timer, and its raft refused the vote that followed, because it still had that leader.
func TestRegression_SuspectedLeader_VoteIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silence = 300 * time.Millisecond
		c := newCluster(t, clusterOptions{options: Options{Silence: silence}, config: func(_ uint64, c *raft.Config) {
			c.HeartbeatTimeout, c.ElectionTimeout = time.Second, time.Second
		}})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(2 * time.Second)
		voter, candidate := c.others(l)[0], c.others(l)[1]
		c.f.Deafen(l.addr, voter.addr)
		clock.Sleep(silence + silence/2)
		if addr, _ := voter.raft().LeaderWithID(); addr != rafts(l.addr) {
			t.Fatalf("the voter's raft has the leader %q: the test is wrong", addr)
		}
		req := &raft.RequestVoteRequest{RPCHeader: candidate.t.failover.header(), Term: l.raft().CurrentTerm() + 1}
		req.LastLogIndex, req.LastLogTerm = lastEntry(candidate.raft())
		var resp raft.RequestVoteResponse
		if err := candidate.t.RequestVote(RaftID(voter.id), rafts(voter.addr), req, &resp); err != nil || !resp.Granted {
			t.Errorf("%+v, %v", resp, err)
		}
	})
}

// A candidate that can no longer win must not keep the others from campaigning.
func TestPromise_VoteRefused_IsReleased(t *testing.T) {
	for _, x := range []struct{ spare, refusals, granted int }{{1, 2, 0}, {2, 3, 1}, {1, 1, 1}, {2, 2, 2}} {
		d := &detector{id: "1", syncs: func() time.Duration { return 0 }}
		d.promise.give(d.id, time.Minute)
		d.promise.campaigning, d.promise.spare = true, x.spare
		for range x.granted {
			d.noteAnswer(true)
		}
		for range x.refusals {
			d.noteAnswer(false)
		}
		if kept := d.promise.to == d.id; kept != (x.refusals <= x.spare) {
			t.Errorf("%+v: kept %v", x, kept)
		}
	}
}

// Goal: a leader that falls silent without any sign, as a paused process or a host behind a cut cable, is replaced
// after the silence, by one campaign. raft's own timers take up to twice as long, and another round if the
// two followers' timers are far apart.
func TestFailover_Silence_OneCampaign(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			silence := testConfig(1).HeartbeatTimeout
			c := newCluster(t, clusterOptions{seed: 10 * seed, options: Options{Silence: silence}})
			l := c.leader()
			c.apply(l, "x")
			clock.Sleep(2*time.Second + time.Duration(seed)*17*time.Millisecond)
			start, campaigns := time.Now(), int64(0)
			for _, s := range c.others(l) {
				c.f.Deafen(l.addr, s.addr)
			}
			next := c.leader(l)
			c.apply(next, "y")
			took := time.Since(start)
			for _, s := range c.servers {
				campaigns += s.t.Stats().Elections
			}
			if campaigns > 1 || took > silence+silence/4 { // 0: raft's own timer was first
				t.Errorf("seed %d: %d campaigns, first commit after %v", seed, campaigns, took)
			}
		})
	}
}

func BenchmarkLastEntry(b *testing.B) {
	f := pipenet.New()
	d := newDisk(1, nil)
	v := d.open()
	m := mux.New(mux.Config{Listener: f.Listen("a"), Dial: f.Dialer("a")})
	tr := New(Config{Mux: m, LocalID: "1"})
	r, err := raft.NewRaft(testConfig(1), &machine{t: tr, store: v}, v, v, v, tr)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		lastEntry(r)
	}
	r.Shutdown().Error()
	m.Close()
	v.close()
}

// Goal: however slow the disks, and whichever server dies, one server campaigns and wins. Method: the leader's
// process ends, in some runs another one's at the same moment, in others the first in rank lacks an entry; disks
// take the same time, or the first in rank or the last has one of its own, or one sync of a hundred takes long.
func TestFailover_Disks_OneCampaign(t *testing.T) {
	constant := func(d time.Duration) func(*rand.Rand) time.Duration {
		return func(*rand.Rand) time.Duration { return d }
	}
	for name, syncTime := range map[string]func(*rand.Rand) time.Duration{
		"0.2 ms": constant(200 * time.Microsecond),
		"5 ms":   constant(5 * time.Millisecond),
		"15 ms":  constant(15 * time.Millisecond),
		"50 ms":  constant(50 * time.Millisecond),
		"tail": func(rng *rand.Rand) time.Duration {
			if rng.IntN(20) == 0 {
				return 200 * time.Millisecond
			}
			return 2 * time.Millisecond
		},
	} {
		for _, run := range []struct {
			n, atOnce  int
			odd        time.Duration // added to the disk of the first in rank; negative: of the last
			incomplete bool          // the log of the first in rank
		}{
			{n: 3}, {n: 5}, {n: 7},
			{n: 3, odd: 40 * time.Millisecond}, {n: 5, odd: 40 * time.Millisecond}, {n: 5, odd: -40 * time.Millisecond},
			{n: 3, incomplete: true}, {n: 5, incomplete: true},
			{n: 5, atOnce: 1}, {n: 7, atOnce: 2},
		} {
			for seed := range uint64(3) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, clusterOptions{n: run.n, seed: 100 * seed, syncTime: syncTime})
					l := c.leader()
					c.apply(l, "x")
					clock.Sleep(2 * time.Second)
					others := c.others(l)
					if run.odd > 0 {
						others[0].disk.setSlow(run.odd)
					} else {
						others[len(others)-1].disk.setSlow(-run.odd)
					}
					if run.incomplete {
						c.f.Deafen(l.addr, others[0].addr)
						c.apply(l, "y")
					}
					term, start := l.raft().CurrentTerm(), time.Now()
					c.f.Vanish(l.addr)
					dead := append([]*server{l}, others[len(others)-run.atOnce:]...)
					for _, s := range dead[1:] {
						c.f.Vanish(s.addr)
					}
					next := c.leader(dead...)
					c.apply(next, "z")
					took, campaigns := time.Since(start), int64(0)
					for _, s := range others {
						campaigns += s.t.Stats().Elections
					}
					t.Logf("%s, %+v, seed %d: first commit after %v", name, run, seed, took)
					if now := next.raft().CurrentTerm(); campaigns != 1 || now != term+1 {
						t.Errorf("%s, %+v, seed %d: %d campaigns, term %d after %d, first commit after %v",
							name, run, seed, campaigns, now, term, took)
					}
				})
			}
		}
	}
}
