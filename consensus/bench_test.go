package consensus

import (
	"fmt"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// BenchmarkNode_Propose is everything but the listeners: three servers in one
// process, real disks, sockets and syncs, writes from a follower; 1 and 256 wait at a
// time.
func BenchmarkNode_Propose(b *testing.B) {
	for _, waiting := range []int{1, 256} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			e := newTestEnsemble(b, 3, nil)
			from := e.nodes[(e.leader()+1)%3]
			propose(b, from, create("/bench"))
			c := &state.Command{Op: state.OpSetData, Path: "/bench", Data: make([]byte, 100),
				Version: znode.AnyVersion}
			b.ReportAllocs()
			b.ResetTimer()
			var left sync.WaitGroup
			for k := range waiting {
				left.Go(func() {
					for range (b.N + k) / waiting {
						propose(b, from, c)
					}
				})
			}
			left.Wait()
		})
	}
}

// propose waits for a command's result.
func propose(tb testing.TB, x *testNode, c *state.Command) {
	if code, err := x.queue.Do(tb.Context(), c); err != nil || code != znode.OK {
		tb.Errorf("proposal: %v, error %v; want OK", code, err)
	}
}
