package founding

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// A bootstrap that a slow disk held up is asked for again; the second request waits for the first. It waited for a
// mutex that is held during the writes: in virtual time, where that counts as running, everything stopped.
func TestRegression_Bootstrap_AskedAgain_WaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3 * time.Second // of the question of the server that founds
		disk := &slowIdentity{delay: 2 * timeout}
		c := Config{
			Servers: []membership.Server{{ID: 0, Voter: true}}, RaftConfig: raft.DefaultConfig(), Store: &storage.Store{
				Identity: disk, Log: raft.NewInmemStore(), Stable: raft.NewInmemStore(),
				Snapshots: raft.NewInmemSnapshotStore(),
			},
			Ensemble: membership.New(membership.Config{}), Context: t.Context(),
		}
		c.RaftConfig.LocalID = "0"
		_, c.Transport = raft.NewInmemTransport("0")
		f := New(c)
		request := membership.Request{Op: membership.RequestFound, Ensemble: strings.Repeat("1f", 16)}
		var requests sync.WaitGroup
		for range 2 {
			requests.Go(func() {
				if err := f.Accept(&mux.Conn{}, &request); err != nil {
					t.Error(err)
				}
			})
			clock.Sleep(timeout)
		}
		requests.Wait()
		if disk.saved != 1 {
			t.Errorf("the identity was written %d times", disk.saved)
		}
	})
}

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
