package consensus

import (
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestRefusals_Note_OnlyARowIsLong(t *testing.T) {
	const limit = time.Second
	start := time.Now()
	r := &refusals{}
	for at := time.Duration(0); at <= limit; at += limit / 10 {
		if got := r.note(start.Add(at), limit); got != at {
			t.Fatalf("raft refuses for %v, want %v", got, at)
		}
	}
	r.end()
	if got := r.note(start.Add(limit), limit); got != 0 {
		t.Errorf("after an entry that was taken: %v", got)
	}
	if got := r.note(start.Add(3*limit), limit); got != 0 {
		t.Errorf("after a pause: %v", got)
	}
}

// A leader that handed over while it was asked for much noted that raft refused an entry. When it led
// again, in a quiet ensemble, the note was old, no entry had taken it back, and the leader took raft for
// one that refuses everything since a failed transfer: it ended its own process.
func TestRegression_Transfer_ThereAndBack_EndsNobody(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	a := e.leader()
	b := (a + 1) % 3
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { // keeps entries on their way while the leader hands over
		done := make(chan outcome, 1<<17)
		for k := 0; ; k++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := e.nodes[b].Propose(create(fmt.Sprint("/k", k)), waiter{done}, forward.From{}); err != nil {
				stopped <- err
				return
			}
			if k >= 64 {
				<-done
			}
		}
	}()
	e.handOver(a, b)
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	e.agree()
	old := time.Now().Add(2 * (4*testElection + time.Second))
	wait.Until(t, "a note that is old", func() bool { return time.Now().After(old) })
	e.handOver(b, a)
	leads := time.Now().Add(2 * storage.HangLimit / 5)
	wait.Until(t, "a watched leader", func() bool { return time.Now().After(leads) })
	select {
	case err := <-e.nodes[a].fatal:
		t.Errorf("a healthy leader ended: %v", err)
	default:
	}
	e.must(a, "/after")
}
