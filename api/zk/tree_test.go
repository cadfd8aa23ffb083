package zk

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// A state is given up when its client has not asked for a while, and at once when it has ended or the listener stops,
// also while its subtrees are being sorted.
func TestTrees_GiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listing sync.WaitGroup
		ts := trees{listing: &listing, open: map[znode.SessionID]*openTree{}}
		begin := func(session znode.SessionID) {
			sub, _ := znode.NewTree().Subtree("/", nil, false)
			ts.mu.Lock()
			defer ts.mu.Unlock()
			ts.kept++
			ts.open[session] = &openTree{subs: []*znode.Subtree{sub}, done: make([]bool, 1)}
		}
		kept := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			ts.mu.Lock()
			defer ts.mu.Unlock()
			if ts.kept != want || len(ts.open) > want {
				t.Errorf("%s %d states are kept, %d open, want %d", when, ts.kept, len(ts.open), want)
			}
		}
		begin(1)
		ts.list(ts.open[1], 1)
		clock.Sleep(treeIdle - time.Second)
		kept(1, "before the time is over")
		var x wire.TreeResponse
		ts.mu.Lock()
		readTree(ts.open[1].subs[0], 1, &x)
		ts.mu.Unlock()
		if len(x.Znodes) != 3 || x.Znodes[0].Path != "/zookeeper" || x.Next >= 0 {
			t.Errorf("from place 1 on there is %+v, want 3 znodes, /zookeeper first, and the end", x)
		}
		clock.Sleep(2 * time.Second)
		kept(0, "after the time")

		begin(2)
		sorted := ts.open[2]
		begin(3)
		ts.list(ts.open[3], 3)
		ts.close()
		kept(1, "after the end, with one being sorted,")
		ts.list(sorted, 2)
		kept(0, "after that")
	})
}
