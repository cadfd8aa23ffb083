package membership

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
)

func TestStatus_Lag_IsNeverNegative(t *testing.T) {
	s := Status{AppliedIndex: 10}
	for applied, want := range map[uint64]uint64{0: 10, 7: 3, 10: 0, 12: 0} {
		if got := s.Lag(&MemberStatus{AppliedIndex: applied}); got != want {
			t.Errorf("applied %d: lag %d, want %d", applied, got, want)
		}
	}
}

// A server with imported data does not look fresh to one whose release would found the ensemble without them.
func TestConfig_CheckSeeds(t *testing.T) {
	for _, x := range []struct {
		seed  string
		knows bool
		want  bool // no error
	}{{"", false, true}, {"", true, true}, {"a", true, true}, {"a", false, false}} {
		c := Config{Self: 1, Seed: x.seed}
		if err := c.checkSeeds(&Request{Op: RequestWho, From: 2, Seeds: x.knows}); (err == nil) != x.want {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// A server could no longer be closed when raft had forgotten a transfer of leadership: the
// request for it waited forever, and Close for the request. The simulation found it (a seed of
// 30300 to 30649).
func TestRegression_Transfer_ThatNeverEnds_EndsWithTheNode(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := New(Config{Context: ctx, Transport: inmem{}})
	asked, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- e.transfer(func() raft.Future {
			close(asked)
			return forgotten{t.Context()}
		})
	}()
	<-asked
	cancel(stopped)
	if err := <-ended; !errors.Is(err, stopped) {
		t.Errorf("it ended with %v", err)
	}
}

// forgotten is a future that is not answered while the test runs.
type forgotten struct{ context.Context }

func (f forgotten) Error() error {
	<-f.Done()
	return f.Err()
}

// A server that joined again stopped as removed, if its leader lost the leadership before the entry that adds the
// server was committed: it had the entry of its removal by then, and the others had applied no more. The simulation
// found it (seed 21028, one run of a hundred).
func TestRegression_RemovedAsOf_OneThatJoins_IsNotRemoved(t *testing.T) {
	reply := func(applied, last uint64, removed bool, s Suffrage) Reply {
		return Reply{Ensemble: "e", Applied: applied, Last: last, Removed: removed, Suffrage: s}
	}
	removed, joins := reply(773, 774, true, NotMember), reply(773, 775, true, Nonvoter)
	for name, c := range map[string]struct {
		replies map[state.ServerID]Reply
		atLeast uint64
		by      state.ServerID
	}{
		"removed":                    {map[state.ServerID]Reply{1: removed, 2: reply(700, 700, false, Voter)}, 770, 1},
		"about to be taken in":       {map[state.ServerID]Reply{1: removed, 2: joins}, 770, state.NoServer},
		"was, and is a member":       {map[state.ServerID]Reply{1: removed, 2: reply(775, 775, false, Nonvoter)}, 770, state.NoServer},
		"nobody has applied so much": {map[state.ServerID]Reply{1: removed}, 774, state.NoServer},
		"of no ensemble":             {map[state.ServerID]Reply{1: {Applied: 800, Removed: true}}, 770, state.NoServer},
	} {
		by, newest := newestOf(c.replies, c.atLeast)
		if !newest.out() {
			by = state.NoServer
		}
		if by != c.by {
			t.Errorf("%s: removed by server %d, want %d", name, by, c.by)
		}
	}
}

// inmem is raft's transport in memory.
type inmem struct{ *raft.InmemTransport }

func (inmem) StopRetrying()     {}
func (inmem) LeaderLog() uint64 { return 0 }
