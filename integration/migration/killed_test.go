//go:build interop

package migration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// phase is one of a cut-over, in which a server is killed.
type phase string

const (
	phaseLoading phase = "loading" // the mirror takes ZooKeeper's snapshot
	phaseServing phase = "serving" // it follows, and clients use both sides
	phasePlanned phase = "planned" // the plan is made
	phaseHalfway phase = "halfway" // one server of ZooKeeper is fenced, and two serve
	phaseFenced  phase = "fenced"  // all of them are, and none serves
	phaseGoing   phase = "going"   // what only their logs have is on its way into ours
	phaseDone    phase = "done"    // zk-lite serves
)

// killing is a server that is killed in a phase: a leader of its side, or a follower. One of ZooKeeper's stays dead, and
// one of ours does until the plan, which wants all of them, or until the end.
type killing struct {
	phase phase
	ours  bool // zk-lite's
	leads bool
}

func (k killing) String() string {
	side, role := "ZooKeeper", "follower"
	if k.ours {
		side = "zk-lite"
	}
	if k.leads {
		role = "leader"
	}
	return fmt.Sprintf("%s: %s's %s", k.phase, side, role)
}

// everyKilling is all of them: of ZooKeeper's servers none runs from the last fence on.
func everyKilling() (all []killing) {
	for _, p := range []phase{phaseLoading, phaseServing, phasePlanned, phaseHalfway, phaseFenced, phaseGoing,
		phaseDone} {
		for _, leads := range []bool{true, false} {
			if p != phaseFenced && p != phaseGoing && p != phaseDone {
				all = append(all, killing{p, false, leads})
			}
			all = append(all, killing{p, true, leads})
		}
	}
	return all
}

// TestTakeover_Killed: a server of either side is killed in each phase of a cut-over under load. Either the run
// completes, or ZooKeeper still serves, and never both: until the majority is fenced, writes are ZooKeeper's; from then
// on none is acknowledged until zk-lite has taken over. No acknowledged write, session, lock or ephemeral is lost.
func TestTakeover_Killed(t *testing.T) {
	data, _ := znodes(t, 20_000)
	for _, k := range killings() {
		t.Run(k.String(), func(t *testing.T) {
			x := &killer{cutover: startCutover(t, zookeeper.V39, data), killing: k, dead: -1}
			x.run()
		})
	}
}

// killer runs a cut-over in which a server is killed.
type killer struct {
	*cutover
	killing
	m    *movers
	dead int // the server of ZooKeeper that was killed, from 0; -1: none
}

func (x *killer) run() {
	before := connected(x.T, x.e.ConnectString())
	if _, _, err := before.Create(x.T.Context(), "/before", nil, client.Persistent); err != nil {
		x.Fatal(err) // without a log a server is not fenced: it may be elsewhere
	}
	beginMirror(x.T, x.z, x.e.Quorum())
	x.at(phaseLoading)
	following(x.T, x.z)
	x.m = startMovers(x.T, x.servers(), 3, everyClient)
	x.m.each(5)
	x.at(phaseServing)
	x.theirs()
	x.z.StartAll() // the plan wants all of ours
	x.ready()
	x.at(phasePlanned)
	x.theirs()
	first := 0
	if x.dead >= 0 {
		first = x.dead // it has stopped already: the others serve on
	}
	x.kill(first)
	x.fence(first)
	x.theirs()
	x.at(phaseHalfway)
	if x.dead < 0 || x.phase != phaseHalfway {
		x.theirs()
	}
	if x.phase == phaseGoing {
		x.tail()
	}
	x.rest(first)
	wait.Steadily(x.T, "no one serves", 300*time.Millisecond, x.silent())
	x.at(phaseFenced)
	x.at(phaseGoing)
	if taken, err := x.execute(x.urls()); err != nil {
		x.Fatal(err)
	} else {
		x.Logf("taken over: %+v", taken)
	}
	x.at(phaseDone)
	x.m.each(5)
	x.z.StartAll()
	x.m.check(x.z.ConnectString())
	x.onlyOurs()
}

// rest stops and fences the others: all of them, or, if a server of ZooKeeper's was killed between two fences, that one
// alone, so that the last one runs on without a quorum.
func (x *killer) rest(first int) {
	x.Helper()
	var others []int
	for i := range x.e.Servers {
		if i != first && (x.phase != phaseHalfway || x.dead < 0 || i == x.dead) {
			others = append(others, i)
		}
	}
	x.kill(others...)
	x.fence(others...)
}

// at kills the server if this is the phase.
func (x *killer) at(p phase) {
	x.Helper()
	if x.phase != p {
		return
	}
	switch {
	case p == phaseGoing:
		x.whileGoing()
	case x.ours:
		x.ourServer().Kill()
	default:
		for i, s := range x.e.Servers {
			if mode := s.Mode(); mode == "leader" && x.leads || mode == "follower" && !x.leads {
				s.Kill()
				x.dead = i
				return
			}
		}
		x.Fatalf("no server of ZooKeeper to be killed: %s", x.killing)
	}
}

func (x *killer) ourServer() *cluster.Server {
	x.Helper()
	leader, followers := x.z.Roles()
	if x.leads {
		return leader
	}
	return followers[0]
}

// theirs checks that writes are acknowledged, and are still ZooKeeper's.
func (x *killer) theirs() {
	x.Helper()
	x.m.progress(20)
	if m := mirrorOf(x.T, x.z); m.State == "off" {
		x.Errorf("the mirror is %s, want it to go on", show(m))
	}
}

// silent is a condition: no write was acknowledged since it was made.
func (x *killer) silent() func() error {
	sum := func() (n int) {
		for _, one := range x.m.all {
			n += one.writes()
		}
		return n
	}
	// What was acknowledged before may still be on its way to here.
	was := sum()
	wait.Succeeds(x.T, "the last writes are known", func() error {
		if is := sum(); is != was {
			was = is
			return errors.New("more came")
		}
		return nil
	})
	return func() error {
		if is := sum(); is != was {
			return fmt.Errorf("%d writes were acknowledged", is-was)
		}
		return nil
	}
}

// tail has ZooKeeper acknowledge what zk-lite does not hear of, as all of its servers are down.
func (x *killer) tail() {
	x.Helper()
	x.z.KillAll()
	c := connected(x.T, x.e.ConnectString())
	for i := range 80 {
		if _, _, err := c.Create(x.T.Context(), fmt.Sprintf("/tail-%d", i), make([]byte, 100_000),
			client.Persistent); err != nil {
			x.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		x.Error(err)
	}
}

// whileGoing takes over at the leader, and kills it, or a follower, once a part of the tail is in the log. The command
// knows all servers, and goes on at another one.
func (x *killer) whileGoing() {
	x.Helper()
	x.z.StartAll()
	x.z.WaitServing()
	leader := x.z.Leader()
	victim := x.ourServer()
	was, err := leader.Zxid()
	if err != nil {
		x.Fatal(err)
	}
	var taken body.TakenOver
	ended := make(chan error, 1)
	go func() {
		var err error
		taken, err = x.execute("http://" + leader.HTTPAddr() + "," + x.urls())
		ended <- err
	}()
	wait.Succeeds(x.T, "a part of the tail is there", func() error {
		is, err := leader.Zxid()
		if err == nil && is == was {
			err = fmt.Errorf("it is at %v", is)
		}
		return err
	})
	victim.Kill()
	if err := <-ended; err != nil {
		x.Errorf("taking over while server %d was killed: %v", victim.ID, err)
	}
	x.Logf("killed on the way from %v to %v: %+v", was, x.last(), taken)
}

// znodes are a data directory of ZooKeeper with so many of 100 bytes, and what is in it.
func znodes(t *testing.T, n int) (dir string, r *replica.Replica) {
	t.Helper()
	r = replica.New(znode.NewTree(), session.NewTable(), 0)
	for i := range n {
		r.Zxid++
		path := fmt.Sprintf("/dir-%d", i/1000)
		if i%1000 > 0 {
			path += fmt.Sprintf("/node-%05d", i)
		}
		c := replica.Change{Op: replica.OpCreate, Path: path, Data: make([]byte, 100), ACL: znode.OpenACL, Creates: -1}
		if err := r.Apply(new(znode.Txn), &replica.Txn{Zxid: r.Zxid, Change: c}, false); err != nil {
			t.Fatal(err)
		}
	}
	dir = t.TempDir()
	if _, err := datadir.WriteSnapshot(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir, r
}
