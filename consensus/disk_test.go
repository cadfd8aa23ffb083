package consensus

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// withFaultyDisks puts the logs of an ensemble on disks that fail on request.
func withFaultyDisks(t *testing.T, n int) *testEnsemble {
	e := prepare(t, n, nil)
	for i, x := range e.nodes {
		x.fs = faultfs.New(uint64(i), 0)
		e.mustStart(i)
	}
	e.must(0, "/a")
	return e
}

func fullDisk(op faultfs.Op, name string) error {
	if op == faultfs.OpWrite && strings.HasPrefix(name, "log") {
		return syscall.ENOSPC
	}
	return nil
}

func TestEnsemble_LeadersDiskFull_OthersLeadUntilThereIsRoom(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := withFaultyDisks(t, 3)
	e.waitFormed()
	old := e.leader()
	x := e.nodes[old]
	x.fs.SetFault(fullDisk)
	// Commands of the server with the full disk are agreed on by the others; it
	// learns their results when it can write again.
	waiting := e.propose(old, create("/waiting"))
	next := e.leader(old)
	if next == old {
		t.Fatal("a leader that cannot write still leads")
	}
	e.fill(next, "/n", 10)
	wait.Until(t, "a status that says why", func() bool {
		return strings.Contains(x.Status().DiskFault, syscall.ENOSPC.Error())
	})
	if s := x.Status(); s.Role == RoleLeader || s.AppliedIndex >= e.nodes[next].Status().AppliedIndex {
		t.Errorf("status of the full server: %+v", s)
	}
	if len(waiting) > 0 {
		t.Errorf("a result on a server that cannot write: %+v", <-waiting)
	}
	x.fs.SetFault(nil)
	if o := e.await("/waiting", waiting); o.lost || o.Code != znode.OK {
		t.Errorf("lost %v, %v", o.lost, o.Code)
	}
	e.must(old, "/room")
	wait.Until(t, "a status without fault", func() bool { return x.Status().DiskFault == "" })
	if len(x.fatal) > 0 {
		t.Errorf("a full disk ended the server: %v", <-x.fatal)
	}
	e.agree()
}

func TestEnsemble_MajoritysDisksFull_NothingIsAcknowledged(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := withFaultyDisks(t, 3)
	e.waitFormed()
	for i := range 2 {
		e.nodes[i].fs.SetFault(fullDisk)
	}
	var waiting []<-chan outcome
	for i := range 3 {
		waiting = append(waiting, e.propose(i, create(fmt.Sprint("/w", i))))
	}
	wait.Until(t, "both statuses say why", func() bool {
		return e.nodes[0].Status().DiskFault != "" && e.nodes[1].Status().DiskFault != ""
	})
	for i, w := range waiting {
		if len(w) > 0 {
			t.Errorf("acknowledged on server %d: %+v", i+1, <-w)
		}
	}
	for i := range 2 {
		e.nodes[i].fs.SetFault(nil)
	}
	for i, w := range waiting {
		if o := e.await("after there is room", w); o.lost || o.Code != znode.OK {
			t.Errorf("server %d: lost %v, %v", i+1, o.lost, o.Code)
		}
	}
	e.agree()
}

// A lone server whose disk was full stepped down, was elected again at once, and so on: 241 elections
// and 1,684 lines of log in 20 s.
func TestRegression_LoneServersDiskFull_WaitsForRoom(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	var out logBuffer
	e := prepare(t, 1, func(c *Config) { c.Logger = out.logger() })
	x := e.nodes[0]
	x.fs = faultfs.New(1, 0)
	e.mustStart(0)
	e.must(0, "/a")
	term := x.Status().Term
	out.take()
	x.fs.SetFault(fullDisk)
	waiting := e.propose(0, create("/waiting"))
	wait.Until(t, "it has tried for a while", func() bool { return x.disk.UnwritableFor() > 8*testElection })
	if s := x.Status(); s.Term != term || !strings.Contains(s.DiskFault, syscall.ENOSPC.Error()) {
		t.Errorf("status with a full disk, was in term %d: %+v", term, s)
	}
	if text := out.take(); strings.Count(text, "\n") > 3 || !strings.Contains(text, syscall.ENOSPC.Error()) {
		t.Errorf("the log with a full disk: %s", text)
	}
	if len(waiting) > 0 {
		t.Errorf("a result with a full disk: %+v", <-waiting)
	}
	x.fs.SetFault(nil)
	if o := e.await("/waiting", waiting); o.lost || o.Code != znode.OK {
		t.Errorf("lost %v, %v", o.lost, o.Code)
	}
	// It can be stopped meanwhile, and has then what it has acknowledged.
	x.fs.SetFault(fullDisk)
	e.propose(0, create("/never"))
	wait.Until(t, "a full disk", func() bool { return x.Status().DiskFault != "" })
	if err := x.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	x.fs.SetFault(nil)
	e.mustStart(0)
	e.must(0, "/b")
	if !x.handler.exists("/waiting") {
		t.Error("an acknowledged write is lost")
	}
}

// After a failed sync no one knows what is on the disk: the server ends, the others continue,
// and it restarts with the contents of its disk.
func TestEnsemble_LeadersSyncFails_ServerEndsOthersLead(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := withFaultyDisks(t, 3)
	e.waitFormed()
	old := e.leader()
	x := e.nodes[old]
	broken := errors.New("the disk is broken")
	x.fs.SetFault(func(op faultfs.Op, name string) error {
		if op == faultfs.OpSync && strings.HasPrefix(name, "log") {
			return broken
		}
		return nil
	})
	pending := e.propose((old+1)%3, create("/pending"))
	select {
	case err := <-x.fatal:
		if !errors.Is(err, broken) {
			t.Errorf("%v, want the disk's error", err)
		}
	case <-time.After(wait.Patience):
		t.Fatal("a server whose sync has failed goes on")
	}
	next := e.leader(old)
	e.fill(next, "/n", 10)
	if o := e.await("/pending", pending); o.lost || o.Code != znode.OK {
		t.Errorf("another server's command: lost %v, %v", o.lost, o.Code)
	}
	// The process ends, and is started again on a disk that works. What it had
	// said to be written it must have.
	e.net.setCut(old, true)
	x.Close()
	x.Node = nil
	e.net.setCut(old, false)
	x.fs.PowerCut()
	x.fs.SetFault(nil)
	x.fs.PowerOn()
	e.mustStart(old)
	e.must(old, "/back")
	e.agree()
}

// A follower with a full or hanging disk heard from the leader and so kept its clients, whose
// requests waited for as long as that lasted, while the other servers would have answered them.
func TestRegression_FollowerWithUselessDisk_IsOutOfContact(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := withFaultyDisks(t, 3)
	e.waitFormed()
	for _, hangs := range []bool{false, true} {
		leader := e.leader()
		x := e.nodes[(leader+1)%3]
		moves := make(chan struct{})
		x.fs.SetFault(func(op faultfs.Op, name string) error {
			if hangs && op == faultfs.OpWrite {
				<-moves
				return nil
			}
			return fullDisk(op, name)
		})
		e.fill(leader, fmt.Sprint("/n", hangs), 3)
		// No client touches sessions here, so that contact alone would show nothing.
		wait.Until(t, "the disk is found to be unwritable", func() bool { return x.disk.UnwritableFor() >= testElection })
		if least, s := x.disk.UnwritableFor(), x.Status(); s.Contact < least {
			t.Errorf("contact %v ago, with a disk that is unwritable for %v", s.Contact, least)
		}
		x.fs.SetFault(nil)
		close(moves)
		wait.Until(t, "the disk is useful", func() bool { return x.disk.UnwritableFor() == 0 })
		e.agree()
	}
}

// brokenStable is a store of term and vote that cannot be written.
type brokenStable struct {
	raft.StableStore
	why atomic.Pointer[error] // nil: it can
}

func (b *brokenStable) Set(key, value []byte) error {
	if err := b.why.Load(); err != nil {
		return *err
	}
	return b.StableStore.Set(key, value)
}

func (b *brokenStable) SetUint64(key []byte, value uint64) error {
	if err := b.why.Load(); err != nil {
		return *err
	}
	return b.StableStore.SetUint64(key, value)
}

// A term that cannot be written made raft panic: with any error of the disk, and with a full
// one when the server was stopped. The server must end by its Fatal, or wait and be stopped,
// and the others, one of whom dies to bring the new term about, must go on.
func TestRegression_TermCannotBeWritten_NoPanic(t *testing.T) {
	for _, why := range []error{errors.New("the disk is broken"), syscall.ENOSPC} {
		t.Run(why.Error(), func(t *testing.T) {
			t.Parallel()
			stores := map[int]*brokenStable{}
			e := newTestEnsemble(t, 3, func(c *Config) {
				b := &brokenStable{StableStore: c.Storage.Stable}
				c.Storage.Stable = b
				stores[int(c.ID)] = b
			})
			e.waitFormed()
			e.must(0, "/a")
			leader := e.leader()
			victim := (leader + 1) % 3
			stores[victim].why.Store(&why)
			e.crash(leader)
			if errors.Is(why, syscall.ENOSPC) {
				wait.Until(t, "the full disk is noticed", func() bool {
					return strings.Contains(e.nodes[victim].Status().DiskFault, why.Error())
				})
			} else {
				select {
				case err := <-e.nodes[victim].fatal:
					if !errors.Is(err, why) {
						t.Errorf("%v, want the disk's error", err)
					}
				case <-time.After(wait.Patience):
					t.Fatal("a server that cannot write its term goes on")
				}
			}
			e.crash(victim)
			stores[victim].why.Store(nil)
			e.mustStart(victim)
			e.mustStart(leader)
			e.must(victim, "/b")
			e.agree()
		})
	}
}

// The transport that raft sees refuses to ask for pre-votes then, and asks at other times.
func TestElectionGate_LogRefuses_AsksNobody(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	n := e.nodes[0].Node
	may := true
	g := &electionGate{n.transport, func() bool { return may }}
	ask := func() error {
		var resp raft.RequestPreVoteResponse
		return g.RequestPreVote(transport.RaftID(1), raft.ServerAddress(membership.AddressOf(1)),
			&raft.RequestPreVoteRequest{}, &resp)
	}
	if err := ask(); errors.Is(err, errMayNotCampaign) {
		t.Errorf("with a good disk: %v", err)
	}
	may = false
	if err := ask(); !errors.Is(err, errMayNotCampaign) {
		t.Errorf("after a refused write: %v", err)
	}
}
