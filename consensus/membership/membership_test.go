package membership

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

func TestStatus_Lag_IsNeverNegative(t *testing.T) {
	s := Status{AppliedIndex: 10}
	for applied, want := range map[uint64]uint64{0: 10, 7: 3, 10: 0, 12: 0} {
		if got := s.Lag(&MemberStatus{AppliedIndex: applied}); got != want {
			t.Errorf("applied %d: lag %d, want %d", applied, got, want)
		}
	}
}

// A server could not be closed any more when raft had forgotten a transfer of leadership:
// the request that had asked for it waited for ever, and Close for the request. The
// simulation found it (a seed of 30300 to 30649).
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

// forgotten is a future that nobody answers while the test runs.
type forgotten struct{ context.Context }

func (f forgotten) Error() error {
	<-f.Done()
	return f.Err()
}

// A bootstrap that a slow disk held up is asked for again; the second request waits for the first. It waited for a
// mutex that is held during the writes: in virtual time, where that counts as running, nothing went on any more.
func TestRegression_Bootstrap_AskedAgain_WaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowIdentity{delay: 2 * controlTimeout}
		e := New(Config{Context: t.Context(), Store: &storage.Store{
			Identity: disk, Log: raft.NewInmemStore(), Stable: raft.NewInmemStore(), Snapshots: raft.NewInmemSnapshotStore(),
		}, RaftConfig: raft.DefaultConfig()})
		e.cfg.RaftConfig.LocalID = "0"
		e.cfg.Servers = []Server{{ID: 0, Voter: true}}
		_, transport := raft.NewInmemTransport("0")
		e.cfg.Transport = inmem{transport}
		request := controlRequest{Op: controlBootstrap, Ensemble: strings.Repeat("1f", 16)}
		var requests sync.WaitGroup
		for range 2 {
			requests.Go(func() {
				if err := e.acceptBootstrap(&mux.Conn{}, &request); err != nil {
					t.Error(err)
				}
			})
			clock.Sleep(controlTimeout)
		}
		requests.Wait()
		if disk.saved != 1 {
			t.Errorf("the identity was written %d times", disk.saved)
		}
	})
}

// inmem is raft's transport in memory.
type inmem struct{ *raft.InmemTransport }

func (inmem) StopRetrying() {}

// slowIdentity is on a disk whose writes take a while.
type slowIdentity struct {
	storage.IdentityStore
	delay time.Duration
	saved int
}

func (s *slowIdentity) Save(storage.Identity) error {
	clock.Sleep(s.delay)
	s.saved++
	return nil
}

// A server that joined again was halted as removed, if its leader lost its place before the entry that takes it in was
// committed: it had the entry of its removal by then, and the others had applied no more. The simulation found it
// (seed 21028, one run of a hundred).
func TestRegression_RemovedAsOf_OneThatJoins_IsNotRemoved(t *testing.T) {
	says := func(applied, last uint64, removed bool, s suffrage) controlReply {
		return controlReply{Ensemble: "e", Applied: applied, Last: last, Removed: removed, Suffrage: s}
	}
	removed, joins := says(773, 774, true, notMember), says(773, 775, true, nonvoter)
	for name, c := range map[string]struct {
		replies map[state.ServerID]controlReply
		atLeast uint64
		by      state.ServerID
	}{
		"removed":                    {map[state.ServerID]controlReply{1: removed, 2: says(700, 700, false, voter)}, 770, 1},
		"about to be taken in":       {map[state.ServerID]controlReply{1: removed, 2: joins}, 770, state.NoServer},
		"was, and is a member":       {map[state.ServerID]controlReply{1: removed, 2: says(775, 775, false, nonvoter)}, 770, state.NoServer},
		"nobody has applied so much": {map[state.ServerID]controlReply{1: removed}, 774, state.NoServer},
		"of no ensemble":             {map[state.ServerID]controlReply{1: {Applied: 800, Removed: true}}, 770, state.NoServer},
	} {
		if by, _ := removedAsOf(c.replies, c.atLeast); by != c.by {
			t.Errorf("%s: by server %d, want %d", name, by, c.by)
		}
	}
}
