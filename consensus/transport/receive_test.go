package transport

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// Goal: a late snapshot, when the follower has applied or only written later entries, removes nothing. With raft alone
// the follower's log is empty afterward: it has lost entries that it had acknowledged.
func TestRegression_LateSnapshot_LeavesTheLog(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt clusterOptions, wrapped bool) {
		c := newCluster(t, opt)
		l := c.leader()
		for i := range 20 {
			c.apply(l, fmt.Sprint("before ", i))
		}
		if err := l.raft().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		last := ""
		for i := range 10 {
			last = fmt.Sprint("after ", i)
			c.apply(l, last)
		}
		f := c.others(l)[0]
		c.await("the follower has it all", func() bool {
			_, ok := f.fsm.has(last)
			return ok
		})
		end := f.raft().LastIndex()
		resp := c.sendSnapshot(l, f)
		if !wrapped {
			if err := f.store.GetLog(end, new(raft.Log)); err == nil {
				t.Error("raft alone keeps the log: the repair is not needed any more")
			}
			return
		}
		if !resp.Success || resp.Term != l.raft().CurrentTerm() {
			t.Errorf("the answer is %+v", resp)
		}
		if got := f.raft().AppliedIndex(); got < end {
			t.Errorf("the follower had applied %d, and now %d", end, got)
		}
		var entry raft.Log
		if err := f.store.GetLog(end, &entry); err != nil {
			t.Errorf("entry %d was acknowledged: %v", end, err)
		}
		if n := f.t.Stats().Stale; n != 1 {
			t.Errorf("%d late snapshots were counted", n)
		}
		c.apply(l, "and on")
	})
}

// Goal: a follower whose log begins after a snapshot takes entries again that it has already. raft refuses them, because
// it looks for the entry before them in the log alone; the leader then sent the snapshot and them without end. A server
// that joined with a snapshot met it when the first acknowledgement was lost.
func TestRegression_EntriesAgainAfterASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		for i := range 9 {
			c.apply(l, fmt.Sprint(i))
		}
		r, g := l.raft(), l.t.snapshots
		end := r.LastIndex()
		if err := l.store.DeleteRange(1, end-4); err != nil { // as after a snapshot up to there
			t.Fatal(err)
		}
		entry := func(index uint64) *raft.Log {
			var e raft.Log
			if index <= end && l.store.GetLog(index, &e) == nil {
				return &e
			}
			return &raft.Log{Index: index, Term: r.CurrentTerm()}
		}
		for _, x := range []struct{ prev, last, wantPrev uint64 }{
			{end - 4, end + 2, end},     // what is there already is left out
			{end - 4, end, end},         // all is
			{end - 7, end - 1, end - 1}, // also what the snapshot has
			{end - 3, end + 2, end - 3}, // raft finds the entry before them
			{end, end + 2, end},
			{0, end, 0},
		} {
			req := raft.AppendEntriesRequest{PrevLogEntry: x.prev, PrevLogTerm: r.CurrentTerm()}
			for i := x.prev + 1; i <= x.last; i++ {
				req.Entries = append(req.Entries, entry(i))
			}
			g.skipHeld(&req)
			if got := uint64(len(req.Entries)); req.PrevLogEntry != x.wantPrev || got != x.last-x.wantPrev {
				t.Errorf("entries %d to %d: %d after entry %d, want %d after %d", x.prev+1, x.last, got, req.PrevLogEntry,
					x.last-x.wantPrev, x.wantPrev)
			}
		}
		other := raft.AppendEntriesRequest{PrevLogEntry: end - 4, Entries: []*raft.Log{
			{Index: end + 1, Term: r.CurrentTerm() + 1},
		}}
		if g.skipHeld(&other); len(other.Entries) != 1 {
			t.Error("an entry that is not there was left out, want it to be written")
		}
	})
}

// Goal: a server that is added, and has nothing in its log yet, knows that its leader has the entry that adds it. One
// that another server told the configuration before that entry stopped as removed. The simulation found it (seed 20124,
// one run of thirty).
func TestRegression_RemovedAsOf_BeforeTheLeadersLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		last := l.raft().LastIndex()
		for _, s := range c.others(l) {
			c.await("the others know what the leader has", func() bool {
				c.apply(l, "more")
				return s.t.LeaderLog() >= last
			})
			if got, most := s.t.LeaderLog(), l.raft().LastIndex(); got > most {
				t.Errorf("server %d was told of entry %d, and the leader has %d", s.id, got, most)
			}
		}
		last = l.raft().LastIndex()
		l.t.noteLeaderLog(last + 1)
		l.t.noteLeaderLog(last)
		if got := l.t.LeaderLog(); got != last+1 {
			t.Errorf("after an older request %d, want %d", got, last+1)
		}
	})
}

// sendSnapshot sends a server's newest snapshot to another, as raft's leader does.
func (c *cluster) sendSnapshot(from, to *server) raft.InstallSnapshotResponse {
	c.t.Helper()
	list, err := from.store.List()
	if err != nil || len(list) == 0 {
		c.t.Fatalf("%d snapshots, %v", len(list), err)
	}
	meta, data, err := from.store.Open(list[0].ID)
	if err != nil {
		c.t.Fatal(err)
	}
	defer data.Close()
	req := raft.InstallSnapshotRequest{
		RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(RaftID(from.id)), Addr: []byte(from.addr),
		},
		SnapshotVersion: meta.Version, Term: from.raft().CurrentTerm(),
		LastLogIndex: meta.Index, LastLogTerm: meta.Term, Size: meta.Size,
		Configuration:      raft.EncodeConfiguration(meta.Configuration),
		ConfigurationIndex: meta.ConfigurationIndex,
	}
	var resp raft.InstallSnapshotResponse
	var tr raft.Transport = from.t
	if from.plain != nil {
		tr = from.plain
	}
	if err := tr.InstallSnapshot(RaftID(to.id), rafts(to.addr), &req, &resp, io.Reader(data)); err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// Goal: a server holds the entries that it has applied, and those that its log has with the same term.
func TestSnapshotGuard_Holds_AppliedOrTheSameEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "x")
		r := l.raft()
		end, term := r.LastIndex(), r.CurrentTerm()
		if err := l.store.StoreLog(&raft.Log{Index: end + 1, Term: term, Type: raft.LogNoop}); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			index, term uint64
			want        bool
		}{
			{end, term, true}, {1, 0, true}, // applied
			{end + 1, term, true}, {end + 1, term + 1, false}, // written only
			{end + 2, term, false},
		} {
			req := raft.InstallSnapshotRequest{LastLogIndex: x.index, LastLogTerm: x.term}
			if got := l.t.snapshots.holds(r, &req); got != x.want {
				t.Errorf("holds entry %d of term %d: %v", x.index, x.term, got)
			}
		}
	})
}

// Goal: a follower that is sent a snapshot while it writes an older one of its own ends with the newer, and takes
// entries. raft alone then takes the older for its last; the simulation found a follower that stayed so forever.
func TestRegression_OwnSnapshotWhileOneIsInstalled(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt clusterOptions, wrapped bool) {
		opt.config = func(_ uint64, c *raft.Config) { c.TrailingLogs = 1 }
		c := newCluster(t, opt)
		l := c.leader()
		f := c.others(l)[0]
		for i := range 10 {
			c.apply(l, fmt.Sprint("before ", i))
		}
		c.await("the follower has it", func() bool { _, ok := f.fsm.has("before 9"); return ok })

		f.fsm.slow = make(chan struct{})
		own := f.raft().Snapshot()
		c.await("the follower writes a snapshot", func() bool { return len(f.t.snapshots.token) == 1 })
		var others []string
		for _, s := range c.others(f) {
			others = append(others, s.addr)
		}
		c.f.Isolate(f.addr, others, true)
		// The request that fails next is sent again when the isolation ends: it shall be one without entries, as raft
		// sends after its CommitTimeout of 50 to 100 ms.
		clock.Sleep(200 * time.Millisecond)
		for i := range 10 {
			c.apply(l, fmt.Sprint("after ", i))
		}
		if err := l.raft().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		c.f.Isolate(f.addr, others, false)
		clock.Sleep(2 * time.Second) // long enough for the leader to send its snapshot

		close(f.fsm.slow)
		err := own.Error()
		if !wrapped {
			if last, has := f.raft().LastIndex(), f.raft().AppliedIndex(); last >= has {
				t.Errorf("raft alone ends its log at %d, with %d applied: the repair is not needed any more", last, has)
			}
			return
		}
		if err != nil {
			t.Errorf("the follower's own snapshot: %v", err)
		}
		clock.Sleep(time.Second) // until the leader's is installed: raft sets the applied index before the end of the log
		if last, has := f.raft().LastIndex(), f.raft().AppliedIndex(); last < has {
			t.Errorf("the follower's log ends at %d, and it has applied %d", last, has)
		}
		if _, entry := f.fsm.has("after 0"); entry {
			t.Error("the follower got the entries, and no snapshot: nothing was shown")
		}
		c.apply(l, "and on")
		c.await("the follower takes entries", func() bool { _, ok := f.fsm.has("and on"); return ok })
	})
}
