package consensus

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// waiter passes on the outcome of one command.
type waiter struct{ done chan outcome }

// outcome is a result, or that it was lost.
type outcome struct {
	state.Result
	lost bool
}

func (w waiter) Applied(r *state.Result) { w.done <- outcome{Result: *r} }
func (w waiter) Lost()                   { w.done <- outcome{lost: true} }

func create(path string) *state.Command {
	return &state.Command{Op: state.OpCreate, Path: path, Data: []byte("x"), ACL: znode.OpenACL}
}

// propose sends a command and returns where its outcome will come.
func (e *testEnsemble) propose(i int, c *state.Command) <-chan outcome {
	e.t.Helper()
	w := waiter{make(chan outcome, 1)}
	if err := e.nodes[i].Propose(c, w, forward.From{}); err != nil {
		e.t.Fatal(err)
	}
	return w.done
}

// await waits for an outcome.
func (e *testEnsemble) await(what string, done <-chan outcome) outcome {
	e.t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(wait.Patience):
		e.t.Fatalf("no outcome: %s", what)
		return outcome{}
	}
}

// must creates a znode through a server.
func (e *testEnsemble) must(i int, path string) {
	e.t.Helper()
	if o := e.await(path, e.propose(i, create(path))); o.lost || o.Code != znode.OK {
		e.t.Fatalf("creating %s: lost %v, %v", path, o.lost, o.Code)
	}
}

// fill creates n znodes below prefix through a server, one an entry.
func (e *testEnsemble) fill(i int, prefix string, n int) {
	e.t.Helper()
	for k := range n {
		e.must(i, fmt.Sprint(prefix, k))
	}
}

// agree waits until all running servers have applied the same and compares
// digests.
func (e *testEnsemble) agree() {
	e.t.Helper()
	var up []*testNode
	for _, x := range e.nodes {
		if x.Node != nil {
			up = append(up, x)
		}
	}
	digests := make([]uint64, len(up))
	wait.Until(e.t, "equal indexes and nothing pending", func() bool {
		var first uint64
		for i, x := range up { // of one index: an entry may be applied here and not yet there
			index, digest := x.handler.digest()
			if i == 0 {
				first = index
			}
			if index != first || x.queue.Len() > 0 {
				return false
			}
			digests[i] = digest
		}
		return true
	})
	for i, x := range up {
		if digests[i] != digests[0] {
			e.t.Errorf("digest of server %d is %x, of server %d %x", x.cfg.ID, digests[i], up[0].cfg.ID, digests[0])
		}
	}
}
