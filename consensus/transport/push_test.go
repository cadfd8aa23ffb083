package transport

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// tap sits between a server's Transport and its raft, and between its pusher and the network.
type tap struct {
	mu   sync.Mutex
	acks map[ackKey]uint64 // last entry that a follower acknowledged in a term
	bad  []string
}

type ackKey struct {
	follower raft.ServerID
	term     uint64
}

// tapTransport is what raft runs on where a tap is.
type tapTransport struct {
	*Transport
	rpcs chan raft.RPC
}

func (t tapTransport) Consumer() <-chan raft.RPC { return t.rpcs }

// Goal: a follower applies an entry when the leader has, not CommitTimeout later; and without the
// push it does not. Method: virtual time in which the network and the disk take none.
func TestPush_QuietCluster_FollowersApplyAtOnce(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off=%v", off), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, clusterOptions{options: Options{NoPush: off}})
				l := c.leader()
				c.apply(l, "first")
				const writes = 20
				var worst time.Duration
				for i := range writes {
					clock.Sleep(time.Second)
					data := fmt.Sprint("w", i)
					at := c.apply(l, data).at
					for _, s := range c.others(l) {
						var a applied
						c.await("applied at the follower", func() (ok bool) {
							a, ok = s.fsm.has(data)
							return ok
						})
						worst = max(worst, a.at.Sub(at))
					}
				}
				st := l.t.Stats()
				t.Logf("worst delay %v, %d pushes", worst, st.Pushes)
				if off {
					if worst < 40*time.Millisecond || st.Pushes != 0 {
						t.Fatalf("without the push: %v, %+v", worst, st)
					}
					return
				}
				if worst > time.Millisecond {
					t.Fatalf("followers applied %v after the leader, CommitTimeout is 50 ms", worst)
				}
				// The follower whose acknowledgement makes the majority always needs a push. The other one's entry may
				// leave so late that it already carries the new commit index.
				if st.Pushes < writes || st.PushFailures != 0 {
					t.Fatalf("%d writes to 2 followers made %+v", writes, st)
				}
			})
		})
	}
}

func TestPush_IdleCluster_SendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(time.Second)
		before := l.t.Stats()
		clock.Sleep(time.Minute)
		after := l.t.Stats()
		if after.Pushes != before.Pushes || after.PushSkips != before.PushSkips {
			t.Fatalf("an idle minute made %d pushes, %d skips",
				after.Pushes-before.Pushes, after.PushSkips-before.PushSkips)
		}
		if after.Heartbeats == before.Heartbeats {
			t.Fatal("no heartbeats: the cluster was not alive")
		}
	})
}

// Goal: PrevLogEntry of a push is what this follower acknowledged in this term, and the commit
// index is beyond neither that nor what the leader applied; in every push of a cluster under load
// with a laggard, slow disks and changing leaders. Method: taps at both ends of every push.
func TestPush_UnderFaults_NeverBeyondAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp := &tap{acks: map[ackKey]uint64{}}
		c := newCluster(t, clusterOptions{syncTime: randomSync, seed: 1, transport: tp.on})
		for round := range 8 {
			l := c.leader()
			slow := c.others(l)[round%2]
			slow.disk.setSlow(20 * time.Millisecond)
			for i := range 50 {
				l.raft().Apply(fmt.Append(nil, round, "-", i), 0)
				clock.Sleep(time.Duration(i%4) * time.Millisecond)
			}
			l.raft().LeadershipTransfer().Error()
			slow.disk.setSlow(0)
		}
		clock.Sleep(time.Second)
		var pushes, failed int64
		for _, s := range c.servers {
			st := s.t.Stats()
			pushes, failed = pushes+st.Pushes, failed+st.PushFailures
		}
		tp.mu.Lock()
		defer tp.mu.Unlock()
		t.Logf("%d pushes, %d failed, %d (follower, term) pairs", pushes, failed, len(tp.acks))
		if pushes < 50 || len(tp.acks) < 8 {
			t.Fatal("the test did not exercise what it is for")
		}
		if len(tp.bad) > 0 {
			t.Fatalf("%d violations, first: %s", len(tp.bad), tp.bad[0])
		}
	})
}

// on taps s.
func (tp *tap) on(s *server) raft.Transport {
	tt := tapTransport{s.t, make(chan raft.RPC)}
	s.t.run(func() {
		for {
			select {
			case <-s.t.done:
				return
			case rpc := <-s.t.rpcs:
				if req, ok := rpc.Command.(*raft.AppendEntriesRequest); ok {
					rpc.RespChan = s.t.intercept(rpc.RespChan, func(r *raft.RPCResponse) {
						tp.acknowledged(RaftID(s.id), req, r)
					})
				}
				select {
				case tt.rpcs <- rpc:
				case <-s.t.done:
					return
				}
			}
		}
	})
	send := s.t.push.send
	s.t.push.send = func(addr raft.ServerAddress, req *raft.AppendEntriesRequest) error {
		s.fsm.mu.Lock()
		last := s.fsm.last
		s.fsm.mu.Unlock()
		tp.pushed(RaftID(s.t.serverAt(string(addr))), req, last)
		return send(addr, req)
	}
	return tt
}

func (tp *tap) acknowledged(
	id raft.ServerID, req *raft.AppendEntriesRequest, r *raft.RPCResponse,
) {
	resp, ok := r.Response.(*raft.AppendEntriesResponse)
	if !ok || !resp.Success || r.Error != nil {
		return
	}
	last := req.PrevLogEntry
	if n := len(req.Entries); n > 0 {
		last = req.Entries[n-1].Index
	}
	tp.mu.Lock()
	defer tp.mu.Unlock()
	k := ackKey{id, req.Term}
	tp.acks[k] = max(tp.acks[k], last)
}

func (tp *tap) pushed(id raft.ServerID, req *raft.AppendEntriesRequest, applied uint64) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	ack := tp.acks[ackKey{id, req.Term}]
	if c := req.LeaderCommitIndex; len(req.Entries) > 0 || c == 0 || c > req.PrevLogEntry ||
		req.PrevLogEntry > ack || c > applied {
		tp.bad = append(tp.bad, fmt.Sprintf("commit %d, prev %d, entries %d; acknowledged %d, "+
			"applied %d", c, req.PrevLogEntry, len(req.Entries), ack, applied))
	}
}

// A server that has left the configuration no longer has a pusher, and raft's last message to it
// does not bring one back; a server that joins gets one without being asked for.
func TestPush_MembershipChanges_PushersFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		gone := c.others(l)[0]
		pushers := func() map[raft.ServerID]bool {
			l.t.push.mu.Lock()
			defer l.t.push.mu.Unlock()
			m := map[raft.ServerID]bool{}
			for id := range l.t.push.followers {
				m[id] = true
			}
			return m
		}
		c.apply(l, "x")
		clock.Sleep(time.Second)
		if p := pushers(); len(p) != 2 || !p[RaftID(gone.id)] {
			t.Fatalf("pushers %v, want one for each of two followers", p)
		}
		if err := l.raft().RemoveServer(RaftID(gone.id), 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		clock.Sleep(time.Second)
		if p := pushers(); len(p) != 1 || p[RaftID(gone.id)] {
			t.Fatalf("after the removal: pushers %v", p)
		}
		err := l.raft().AddNonvoter(RaftID(gone.id), rafts(gone.addr), 0, 0).Error()
		if err != nil {
			t.Fatal(err)
		}
		c.apply(l, "y")
		c.await("applied at the newcomer", func() bool { _, ok := gone.fsm.has("y"); return ok })
		clock.Sleep(time.Second)
		at := c.apply(l, "z").at
		c.await("applied at the newcomer", func() bool { _, ok := gone.fsm.has("z"); return ok })
		if a, _ := gone.fsm.has("z"); a.at.Sub(at) > time.Millisecond {
			t.Fatalf("the newcomer is not pushed to: it lags %v", a.at.Sub(at))
		}
	})
}
