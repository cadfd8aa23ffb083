package transport

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// One request for a vote with the highest term of all left an ensemble without leaders forever, also after a
// restart; one with a term of 2^40 was granted for good. Method: every request that carries a term, with terms that
// no server can have, from a member.
func TestRegression_ImpossibleTerms_AreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		clock.Sleep(time.Second)
		term := l.raft().CurrentTerm()
		f, third := c.others(l)[0], c.others(l)[1]
		header := f.t.failover.header()
		for _, bad := range []uint64{math.MaxUint64, 1 << 40, maxTerm + 1, term + maxTermStep + 1} {
			for name, send := range map[string]func(lastTerm uint64) error{
				"vote": func(last uint64) error {
					return f.t.RequestVote(RaftID(third.id), rafts(third.addr), &raft.RequestVoteRequest{
						RPCHeader: header, Term: bad, LastLogIndex: 1 << 30, LastLogTerm: last, LeadershipTransfer: true,
					}, &raft.RequestVoteResponse{})
				},
				"pre-vote": func(last uint64) error {
					return f.t.RequestPreVote(RaftID(third.id), rafts(third.addr), &raft.RequestPreVoteRequest{
						RPCHeader: header, Term: bad, LastLogIndex: 1 << 30, LastLogTerm: last,
					}, &raft.RequestPreVoteResponse{})
				},
				"entries": func(last uint64) error {
					return f.t.appends.Call(rafts(third.addr), &raft.AppendEntriesRequest{
						RPCHeader: header, Term: bad, PrevLogEntry: 1, PrevLogTerm: last,
						Entries: []*raft.Log{{Index: 2, Term: last}},
					}, &raft.AppendEntriesResponse{})
				},
				"snapshot": func(last uint64) error {
					return f.t.NetworkTransport.InstallSnapshot(RaftID(third.id), rafts(third.addr), &raft.InstallSnapshotRequest{
						RPCHeader: header, Term: bad, LastLogIndex: 1 << 30, LastLogTerm: last,
					}, &raft.InstallSnapshotResponse{}, strings.NewReader(""))
				},
			} {
				if err := send(0); err == nil {
					t.Errorf("%s in term %d: it was taken", name, bad)
				}
			}
		}
		// An entry cannot be newer than the leader that sends it.
		if err := f.t.appends.Call(rafts(third.addr), &raft.AppendEntriesRequest{
			RPCHeader: header, Term: term, PrevLogEntry: 1, PrevLogTerm: 1, Entries: []*raft.Log{{Index: 2, Term: term + 1}},
		}, &raft.AppendEntriesResponse{}); err == nil {
			t.Error("an entry of the next term was taken")
		}
		clock.Sleep(3 * time.Second)
		for _, s := range c.servers {
			if now := s.raft().CurrentTerm(); now != term {
				t.Errorf("server %d is in term %d, it was %d", s.id, now, term)
			}
		}
		c.apply(l, "y")
	})
}

// Answers change a server's term as well.
func TestTerms_Answers_AreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		own := l.raft().CurrentTerm()
		for term, ok := range map[uint64]bool{
			0: true, own: true, own + maxTermStep: true, own + maxTermStep + 1: false, maxTerm: false, math.MaxUint64: false,
		} {
			if err := l.t.checkTerm(term); (err == nil) != ok {
				t.Errorf("term %d beside %d: %v", term, own, err)
			}
		}
	})
}

// A server may send entries in its own name only.
func TestAppend_InAnothersName_IsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		others := c.others(l)
		f, third := others[0], others[1]
		err := f.t.appends.Call(rafts(third.addr), &raft.AppendEntriesRequest{
			RPCHeader: l.t.failover.header(), Term: l.raft().CurrentTerm(),
		}, &raft.AppendEntriesResponse{})
		if err == nil || !strings.Contains(err.Error(), "names another server") {
			t.Errorf("%v", err)
		}
		c.apply(l, "y")
	})
}
