package table

import (
	"context"
	"fmt"

	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// lockRun runs a mutex that must be safe and live.
func lockRun(c mutex.Config) (mutex.Result, error) {
	r, err := mutex.Run(c)
	if err != nil {
		return r, err
	}
	if !r.Safe || !r.Live {
		return r, fmt.Errorf("%s with n=%d, seed %d: safe %v, live %v", c.Algorithm, r.N, c.Seed,
			r.Safe, r.Live)
	}
	return r, nil
}

// cost holds what the lectures say about one algorithm.
type cost struct {
	algorithm     string
	messages      string
	wantMessages  float64
	client        float64
	sync          float64
	contended     string // messages per entry when others wait
	wantContended float64
}

// costRows measures one process alone, and two of which the second has to wait.
func costRows(n int, c cost) ([]Row, error) {
	base := mutex.Config{Algorithm: c.algorithm, IDs: Ascending(n), Requests: 1,
		Hold: 20 * sim.Unit}
	alone := base
	alone.Requesters = []sim.ID{1}
	one, err := lockRun(alone)
	if err != nil {
		return nil, err
	}
	queued := base
	// Processes 2 and 3 have a voter in common that is neither of them in every
	// grid, so that Maekawa's second message is seen for small n too.
	queued.Requesters = []sim.ID{2, 3}
	queued.Spacing = 4 * sim.Unit
	two, err := lockRun(queued)
	if err != nil {
		return nil, err
	}
	row := Row{Family: "mutex", Algorithm: c.algorithm}
	rows := []Row{
		row.with("best (alone)", "messages per entry", one.MessagesPerEntry, Equal, c.messages,
			c.wantMessages),
		row.with("best (alone)", "client delay", one.ClientDelay.Mean, Equal,
			fmt.Sprint(c.client), c.client),
		row.with("one waits", "synchronisation delay", two.SyncDelay.Mean, Equal,
			fmt.Sprint(c.sync), c.sync),
	}
	if c.contended == "" {
		return rows, nil
	}
	all := base
	all.Requesters, all.Hold = base.IDs[:min(n, crowd)], sim.Unit
	many, err := lockRun(all)
	if err != nil {
		return nil, err
	}
	return append(rows, row.with("worst (all ask)", "messages per entry", many.MessagesPerEntry,
		Equal, c.contended, c.wantContended)), nil
}

// crowd is how many processes ask at once in a contended row: enough for a queue,
// few enough for a thousand processes to be simulated.
const crowd = 16

func central(_ context.Context, n int, _ uint64) ([]Row, error) {
	return costRows(n, cost{"central", "3", 3, 2, 2, "3", 3})
}

func lamport(_ context.Context, n int, _ uint64) ([]Row, error) {
	m := 3 * float64(n-1)
	return costRows(n, cost{"lamport", "3(N-1)", m, 2, 1, "3(N-1)", m})
}

func ricart(_ context.Context, n int, _ uint64) ([]Row, error) {
	m := 2 * float64(n-1)
	return costRows(n, cost{"ricart-agrawala", "2(N-1)", m, 2, 1, "2(N-1)", m})
}

// maekawa's rows are of process 1, whose voting set is the full first row and
// the full first column of the grid.
func maekawa(_ context.Context, n int, _ uint64) ([]Row, error) {
	width := 1
	for width*width < n {
		width++
	}
	column := (n + width - 1) / width
	set := float64(width + column - 1)
	return costRows(n, cost{algorithm: "maekawa", messages: "3(|V|-1), |V|=2sqrt(N)-1",
		wantMessages: 3 * (set - 1), client: 2, sync: 2})
}

// lock is the ZooKeeper recipe: three requests with replies to an entry, and for
// who has to wait also exists, the event and a second look at the children.
func lock(_ context.Context, n int, _ uint64) ([]Row, error) {
	k := float64(min(n, crowd))
	return costRows(n, cost{"zookeeper", "6", 6, 4, 4, "6 + 5 (k-1)/k, k ask", 6 + 5*(k-1)/k})
}

func tokenRing(_ context.Context, n int, _ uint64) ([]Row, error) {
	base := mutex.Config{Algorithm: "token-ring", IDs: Ascending(n)}
	row := Row{Family: "mutex", Algorithm: "token-ring"}
	f := float64(n)
	var rows []Row
	for _, c := range []struct {
		name, quantity, formula string
		requesters              []sim.ID
		first                   float64 // when they ask
		sync                    bool
		expected                float64
	}{
		// The token leaves process 1 at time 0, so process k gets it at k-1.
		{"worst (just passed)", "client delay", "N", []sim.ID{1}, 0, false, f},
		{"best (about to come)", "client delay", "0.001", []sim.ID{3}, 1.999, false, 0.001},
		{"worst (predecessor)", "synchronisation delay", "N-1", []sim.ID{3, 2}, 1.5, true, f - 1},
		{"best (successor)", "synchronisation delay", "1", []sim.ID{2, 3}, 0, true, 1},
	} {
		config := base
		config.Requesters = c.requesters
		t, err := sim.ParseTime(fmt.Sprint(c.first))
		if err != nil {
			return nil, err
		}
		config.FirstRequest = t
		r, err := lockRun(config)
		if err != nil {
			return nil, err
		}
		measured := r.ClientDelay.Mean
		if c.sync {
			measured = r.SyncDelay.Mean
		}
		rows = append(rows, row.with(c.name, c.quantity, measured, Equal, c.formula, c.expected))
	}
	return rows, nil
}
