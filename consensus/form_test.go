package consensus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/founding"
	"github.com/zk-lite/zk-lite/consensus/peerkeys"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// without has an operator say to server i that others are missing.
func (e *testEnsemble) without(i int, missing ...state.ServerID) {
	e.t.Helper()
	c := e.files(i)
	if err := founding.FileIn(c.Dir).Save(missing); err != nil {
		e.t.Fatal(err)
	}
}

// waitFormedBy waits until those that run are in the ensemble that server i forms.
func (e *testEnsemble) waitFormedBy(i int) {
	e.t.Helper()
	wait.Until(e.t, "an ensemble that is formed", func() bool {
		for k, x := range e.nodes {
			if x.Node == nil {
				continue
			}
			if id := x.ensemble.Identity(); id == nil || k == i && id.Bootstrapping {
				return false
			}
		}
		return true
	})
}

// Two of three form an ensemble while they run, and the third, also the one that would have formed it, comes later with
// an empty disk and gets its vote. Until then it counts in no majority. One that has been seen may not do so.
func TestForm_WithoutOne_ThatComesLater(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	for _, missing := range []int{2, 0} {
		e := prepare(t, 3, nil)
		by, other := (3-missing)/2, 3-missing-(3-missing)/2
		e.mustStart(other)
		e.mustStart(by)
		asked := e.net.dialled(missing)
		wait.Until(t, "questions to the missing server", func() bool { return e.net.dialled(missing) >= asked+10 })
		if e.formed(by) || e.formed(other) {
			t.Fatal("an ensemble was formed, and nobody has said so")
		}
		e.without(by, state.ServerID(missing))
		e.waitFormedBy(by)
		e.must(other, "/a")
		e.waitVoters(state.ServerID(by), state.ServerID(other))
		if m, in := e.nodes[other].Ensemble().Members()[state.ServerID(missing)]; !in || m.Voter || !m.Vote || m.MaxLevel != 0 {
			t.Errorf("the missing server: %+v", m)
		}
		form := e.files(by)
		wait.Until(t, "the end of what the operator has said", func() bool { // a moment after the ensemble is formed
			left, err := founding.FileIn(form.Dir).Load()
			return len(left) == 0 && err == nil
		})
		e.mustStart(missing)
		e.waitVoters(0, 1, 2)
		e.must(missing, "/b")
		e.agree()
		e.stop(missing)
		e.wipe(missing)
		e.mustStart(missing)
		asked = e.net.dialled(by)
		wait.Until(t, "questions of the wiped server", func() bool { return e.net.dialled(by) >= asked+5 || e.nodes[missing].failed.Load() })
		if e.formed(missing) {
			t.Error("it has come with an empty disk once more")
		}
	}
}

// Servers that have keys let the missing one in with a token.
func TestForm_Keys_TheMissingOneNeedsAToken(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "token")
	e := prepare(t, 3, nil)
	e.keyed = func(i int, c *peerkeys.Config) {
		if i == 2 {
			c.SecretFile = secret
		}
	}
	e.without(0, 2)
	e.mustStart(0)
	e.mustStart(1)
	e.waitFormedBy(0)
	e.must(1, "/a")
	e.mustStart(2)
	if _, waiting, err := e.nodes[2].founder.Round(); err != nil || !strings.Contains(waiting, "zk-lite member token 2") {
		t.Errorf("without a token it waits %q, %v", waiting, err)
	}
	token, _, err := e.nodes[1].Ensemble().NewToken(e.longContext(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	e.waitVoters(0, 1, 2)
	e.must(2, "/b")
	e.waitBound(0, 1, 2)
	e.agree()
}

// The server that forms is killed between the steps; it continues with the stored request.
func TestForm_CrashInBetween_IsMadeGood(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	e.without(0, 2)
	e.mustStart(0)
	id, err := e.nodes[0].founder.Found([16]byte{1}, true, "")
	if err != nil {
		t.Fatal(err)
	}
	e.stop(0)
	e.mustStart(0)
	e.mustStart(1)
	e.waitFormedBy(0)
	e.must(1, "/a")
	e.waitVoters(0, 1)
	e.mustStart(2)
	e.waitVoters(0, 1, 2)
	for i, x := range e.nodes {
		if got := x.ensemble.Identity().Ensemble; got != id.Ensemble {
			t.Errorf("server %d is in ensemble %x, want %x", i, got, id.Ensemble)
		}
	}
	e.agree()
}

// A named server that answers is no missing one: all of them form the ensemble.
func TestForm_NamedServerAnswers_TakesPart(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	e.without(0, 2)
	for _, i := range []int{2, 1, 0} {
		e.mustStart(i)
	}
	e.waitFormed()
	e.waitVoters(0, 1, 2)
	e.must(2, "/a")
	if m := e.nodes[0].Ensemble().Members()[2]; m.Vote {
		t.Errorf("it was left out, and has joined: %+v", m)
	}
	e.agree()
}

// The missing server comes at the worst moment: it and the one that is to do without it have both begun an ensemble.
// The others follow one or the other, but only one of the two has a majority of those configured.
func TestForm_TwoAtOnce_OneHasAMajority(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 5, nil)
	e.without(1, 0)
	for i := range 2 {
		e.mustStart(i)
		if _, err := e.nodes[i].founder.Found([16]byte{byte(i + 1)}, true, ""); err != nil {
			t.Fatal(err)
		}
		e.stop(i)
	}
	for i := range 5 {
		e.mustStart(i)
	}
	ensembles := map[[16]byte]int{} // how many servers of each have a leader
	wait.Until(t, "a leader", func() bool {
		clear(ensembles)
		for _, x := range e.nodes {
			if id := x.ensemble.Identity(); id == nil {
				return false
			} else if x.Status().Leader != state.NoServer {
				ensembles[id.Ensemble]++
			}
		}
		return len(ensembles) > 0
	})
	if len(ensembles) != 1 {
		t.Errorf("two ensembles have a leader: %v", ensembles)
	}
}

// Whatever stands in the file, nothing is formed without a majority, or by a server that lost its disk.
func TestForm_OfNoUse_FormsNothing(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	e.must(0, "/kept")
	for i := range 3 {
		e.stop(i)
	}
	e.wipe(0)
	e.without(0, 1, 2)
	e.mustStart(0)
	if _, waiting, err := e.nodes[0].founder.Round(); err != nil || !strings.Contains(waiting, "no majority: start 1 more") {
		t.Errorf("without two of three: %q, %v", waiting, err)
	}
	e.stop(0)
	e.without(0, 2)
	e.mustStart(1) // has data, and knows server 0
	e.mustStart(0)
	e.wantFatal(0, "data directory is empty")
	if e.formed(0) {
		t.Error("a wiped server has formed an ensemble")
	}
}
