package consensus

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// writer proposes numbered commands on one server, some at a time, and notes
// what was acknowledged. Each creates a sequential znode that carries its
// number: a command that is applied twice makes two.
type writer struct {
	e       *testEnsemble
	root    string
	number  int               // of the last command
	acked   map[string]string // path → number
	lost    int
	results atomic.Int64
}

func (w *writer) create() *state.Command {
	w.number++
	return &state.Command{
		Op: state.OpCreate, Path: w.root + "/n-", Data: fmt.Append(nil, w.number),
		Mode: znode.PersistentSequential, ACL: znode.OpenACL,
	}
}

// run proposes on server i until stop is closed or the server is.
func (w *writer) run(i int, stop <-chan struct{}) {
	const window = 50
	x := w.e.nodes[i].Node
	type sent struct {
		number int
		done   chan outcome
	}
	var open []sent
	take := func() {
		s := open[0]
		open = open[1:]
		o := <-s.done
		w.results.Add(1)
		switch {
		case o.lost:
			w.lost++
		case o.Code != znode.OK:
			w.e.t.Errorf("%s: command %d: %v", w.root, s.number, o.Code)
		default:
			w.acked[o.Path] = fmt.Sprint(s.number)
		}
	}
	for ended := false; !ended; {
		select {
		case <-stop:
			ended = true
		default:
			c, o := w.create(), make(chan outcome, 1)
			if err := x.Propose(c, waiter{o}, forward.From{}); err != nil {
				ended = true
				break
			}
			open = append(open, sent{w.number, o})
		}
		for len(open) > 0 && (ended || len(open) >= window) {
			take()
		}
	}
}

// check compares what was acknowledged with a server's state.
func (w *writer) check(h *testHandler) {
	t := w.e.t
	t.Helper()
	h.mu.RLock()
	defer h.mu.RUnlock()
	names, _, code := h.machine.Tree().Children(w.root, nil)
	if code != znode.OK {
		t.Fatalf("children of %s: %v, want OK", w.root, code)
	}
	there := map[string]string{}
	for _, name := range names {
		data, _, _ := h.machine.Tree().Get(w.root+"/"+name, nil)
		there[w.root+"/"+name] = string(data)
	}
	for path, number := range w.acked {
		if there[path] != number {
			t.Errorf("%s was acknowledged for command %s, and holds %q", path, number, there[path])
		}
	}
	last := 0
	for k := range names {
		path := fmt.Sprintf("%s/n-%010d", w.root, k)
		var number int
		if _, err := fmt.Sscan(there[path], &number); err != nil {
			t.Fatalf("%s holds %q: %v", path, there[path], err)
		}
		if number <= last {
			t.Errorf("%s: command %d was applied after command %d", w.root, number, last)
		}
		last = number
	}
	if n := len(names) - len(w.acked); n < 0 || n > w.lost {
		t.Errorf("%s: %d commands were applied, %d acknowledged, %d lost", w.root, len(names), len(w.acked), w.lost)
	}
}

func TestEnsemble_Chaos_EveryCommandOnceInOrder(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	rng := seed.Rand(t)
	e := newTestEnsemble(t, 3, func(c *Config) { shortLog(c); c.SnapshotCommands = 500 })
	e.must(0, "/a")
	e.waitFormed()
	stop := make(chan struct{})
	var writers [3]*writer
	var running [3]sync.WaitGroup
	for i := range writers {
		writers[i] = &writer{e: e, root: fmt.Sprint("/w", i), acked: map[string]string{}}
		e.must(0, writers[i].root)
		running[i].Go(func() { writers[i].run(i, stop) })
	}
	// progress waits until some writers have got more results.
	progress := func(which ...int) {
		for _, i := range which {
			from := writers[i].results.Load()
			wait.Until(t, "progress", func() bool { return writers[i].results.Load() >= from+100 })
		}
	}
	progress(0, 1, 2)
	for round := range 8 {
		leader := e.leader()
		victim := rng.IntN(3)
		switch round % 4 {
		case 0: // connections break and come again
			for range 5 {
				e.net.sever(victim)
				progress((victim + 1) % 3)
			}
		case 1: // leadership moves
			if err := e.nodes[leader].Ensemble().Transfer(); err != nil {
				t.Logf("handing over: %v", err)
			}
		case 2: // the leader is cut off, and back
			e.net.setCut(leader, true)
			e.leader(leader)
			progress((leader+1)%3, (leader+2)%3)
			e.net.setCut(leader, false)
		case 3: // the leader dies, and is started again
			e.crash(leader)
			running[leader].Wait()
			progress((leader+1)%3, (leader+2)%3)
			e.mustStart(leader)
			running[leader].Go(func() { writers[leader].run(leader, stop) })
		}
		progress(0, 1, 2)
	}
	close(stop)
	for i := range running {
		running[i].Wait()
	}
	e.agree()
	for i, w := range writers {
		w.check(e.nodes[0].handler)
		t.Logf("server %d: %d commands, %d acknowledged, %d lost", i+1, w.number, len(w.acked), w.lost)
	}
}
