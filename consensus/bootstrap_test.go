package consensus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func (e *testEnsemble) wantFatal(i int, words ...string) {
	e.t.Helper()
	select {
	case err := <-e.nodes[i].fatal:
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				e.t.Errorf("the error %q does not say %q", err, w)
			}
		}
	case <-time.After(wait.Patience):
		e.t.Fatalf("server %d goes on, it should end with an error", i)
	}
}

// formed reports whether a server belongs to an ensemble.
func (e *testEnsemble) formed(i int) bool { return e.nodes[i].ensemble.Identity() != nil }

func TestBootstrap_LowestVoter_WithAllVotersPresent(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 4, nil)
	e.servers[0].Voter = false // server 0 observes: server 1 forms
	e.mustStart(0)
	e.mustStart(2)
	e.mustStart(3)
	// The others have asked server 1 several times, and form nothing.
	wait.Until(t, "questions to the absent server", func() bool { return e.net.dialled(1) >= 10 })
	for _, i := range []int{0, 2, 3} {
		if e.formed(i) {
			t.Errorf("server %d belongs to an ensemble that is not complete", i)
		}
	}
	e.stop(3)
	e.mustStart(1)
	asked := e.net.dialled(3)
	wait.Until(t, "questions to another absent server", func() bool { return e.net.dialled(3) >= asked+10 })
	if e.formed(1) {
		t.Error("an ensemble was formed without one of its voters")
	}
	e.mustStart(3)
	e.waitFormed()
	want := e.nodes[1].ensemble.Identity().Ensemble
	for i, x := range e.nodes {
		if id := x.ensemble.Identity(); id.Ensemble != want || id.Server != e.servers[i].ID {
			t.Errorf("server %d: %+v, the ensemble is %x", i, id, want)
		}
	}
	for i := range e.nodes {
		e.must(i, fmt.Sprint("/n", i))
	}
	wait.Until(t, "server 0: an observer of 3 voters", func() bool { // it has no role while no one leads
		s := e.nodes[0].Status()
		return s.Role == RoleObserver && s.Voters == 3
	})
	e.agree()
}

// A server that starts logs every voter that is away, not one after the other.
func TestBootstrap_Waiting_NamesAllWhoAreAway(t *testing.T) {
	t.Parallel()
	e := prepare(t, 3, nil)
	for _, i := range []int{0, 2} { // the one that would form, and another
		e.mustStart(i)
		id, waiting, err := e.nodes[i].founder.Round()
		if err != nil || id != nil {
			t.Fatalf("%+v, %v", id, err)
		}
		for k, s := range e.servers {
			if got := strings.Contains(waiting, fmt.Sprintf("for server %d (%s)", s.ID, s.Addr)); got != (k != i) {
				t.Errorf("server %d waits %q", i+1, waiting)
			}
		}
		e.stop(i)
	}
}

// The bootstrapper is killed when it has noted the ensemble, and has asked no
// other server yet.
func TestBootstrap_CrashInBetween_IsMadeGood(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	e.mustStart(0)
	id, err := e.nodes[0].founder.Found([16]byte{1}, true, "")
	if err != nil {
		t.Fatal(err)
	}
	e.stop(0)
	for i := range 3 {
		e.mustStart(i)
	}
	e.waitFormed()
	for i, x := range e.nodes {
		if got := x.ensemble.Identity().Ensemble; got != id.Ensemble {
			t.Errorf("server %d is in ensemble %x, want %x", i+1, got, id.Ensemble)
		}
		e.must(i, fmt.Sprint("/n", i))
	}
	e.agree()
}

func TestEnsemble_WipedServer_IsRefused(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/kept")
	e.waitFormed()
	for _, i := range []int{2, 0} { // also the one that would form
		e.stop(i)
		e.wipe(i)
		e.mustStart(i)
		e.wantFatal(i, "data directory is empty", fmt.Sprintf("remove server %d", i), "dataDir")
		if e.formed(i) {
			t.Errorf("wiped server %d belongs to an ensemble", i)
		}
		e.stop(i)
		if i == 2 {
			e.must(0, "/goes-on")
		}
	}
	wait.Until(t, "the data of the server that is left", func() bool { return e.nodes[1].handler.exists("/kept") })
}

// All of a majority wiped: they must not form a second ensemble beside the
// third server's data.
func TestEnsemble_WipedMajority_FormsNothing(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/kept")
	e.waitFormed()
	for _, i := range []int{0, 1} {
		e.stop(i)
		e.wipe(i)
	}
	e.mustStart(0)
	e.mustStart(1)
	e.wantFatal(0, "data directory is empty")
	if e.formed(0) || e.formed(1) {
		t.Error("wiped servers have formed an ensemble")
	}
}

func TestNode_Open_OtherServersData_IsRefused(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	for i := range 3 {
		e.stop(i)
	}
	e.nodes[0].dir = e.nodes[1].dir
	err := e.start(0)
	if err == nil || !strings.Contains(err.Error(), "belongs to server 1, but this is server 0") {
		t.Errorf("%v, want an error that names both servers", err)
	}
}

func TestConfig_Check_NamesWhatIsWrong(t *testing.T) {
	three := []membership.Server{{ID: 1, Voter: true}, {ID: 2, Voter: true}, {ID: 3}}
	for want, c := range map[string]Config{
		"between 0 and 254":       {ID: 255, Servers: three},
		"configured twice":        {ID: 1, Servers: append(three, membership.Server{ID: 2})},
		"not among":               {ID: 4, Servers: three},
		"no configured server":    {ID: 3, Servers: three[2:]},
		"needs a listener":        {ID: 1, Servers: three},
		"no configured server ma": {ID: 3, Servers: []membership.Server{{ID: 3}, {ID: 4}}},
	} {
		if err := c.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that says %q", c, err, want)
		}
	}
}

// A server that was asking the others was itself asked to join, the ensemble was complete, and
// then came the answer "the ensemble exists": it took itself for one that had lost
// its disk, and ended.
func TestRegression_Bootstrap_AcceptedWhileAsking(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	e.leader()
	id, waiting, err := e.nodes[2].founder.Round() // the rest of the round that began before
	if err != nil || id == nil || id.Ensemble != e.nodes[0].ensemble.Identity().Ensemble {
		t.Errorf("%+v, waiting %q, %v", id, waiting, err)
	}
}
