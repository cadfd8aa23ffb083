package table

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

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

// cost is the cost of one algorithm according to the lectures.
type cost struct {
	algorithm     string
	messages      string
	wantMessages  float64
	client        float64
	sync          float64
	relation      Relation
	contended     string // messages per entry when others wait
	wantContended float64
}

// costRows measures one process alone, and two, of which the second has to wait.
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
	mean, err := averageMessages(base)
	if err != nil {
		return nil, err
	}
	rows := []Row{
		row.with("best (alone)", "messages per entry", one.MessagesPerEntry, Equal, c.messages,
			c.wantMessages),
		row.with("best (alone)", "client delay", one.ClientDelay.Mean, Equal,
			fmt.Sprint(c.client), c.client),
		row.with("one waits", "synchronisation delay", two.SyncDelay.Mean, Equal,
			fmt.Sprint(c.sync), c.sync),
	}
	all := base
	all.Requesters, all.Hold = base.IDs[:min(n, crowd)], sim.Unit
	many, err := lockRun(all)
	if err != nil {
		return nil, err
	}
	return append(rows,
		row.with(crowdName(n), "messages per entry", many.MessagesPerEntry,
			c.relation, c.contended, c.wantContended),
		c.average(row, mean)), nil
}

// average makes the row of the mean: where the cost depends on who waits, it is lower than that
// of an entry for which all processes have to wait.
func (c cost) average(row Row, mean float64) Row {
	const name, quantity = "average (random)", "messages per entry"
	switch {
	case c.wantContended == c.wantMessages:
		return row.with(name, quantity, mean, Equal, c.contended, c.wantContended)
	case c.algorithm == "zookeeper":
		return row.with(name, quantity, mean, Below, "6 + 5", 11)
	}
	return row.with(name, quantity, mean, Below, c.contended, c.wantContended)
}

// averageMessages is the mean over runs in which a crowd asks twice each, spread
// so that some wait and some do not, under random delays.
func averageMessages(base mutex.Config) (float64, error) {
	runs := 8
	if len(base.IDs) > exhaustive {
		runs = 2
	}
	sum := 0.0
	for seed := range uint64(runs) {
		c := base
		c.Seed, c.Requests, c.Hold, c.Think = seed, 2, sim.Unit, 9*sim.Unit
		c.Requesters = base.IDs[:min(len(base.IDs), crowd)]
		c.Spacing = sim.Unit * time.Duration(1+seed)
		c.Network.Delay = sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}
		r, err := lockRun(c)
		if err != nil {
			return 0, err
		}
		sum += r.MessagesPerEntry / float64(runs)
	}
	return sum, nil
}

// crowd is how many processes ask at once in a contended row: enough for a queue,
// few enough for a thousand processes to be simulated.
const crowd = 16

// crowdName is the case of a contended row.
func crowdName(n int) string {
	if n > crowd {
		return fmt.Sprintf("worst (%d ask)", crowd)
	}
	return "worst (all ask)"
}

func central(_ context.Context, n int, _ uint64) ([]Row, error) {
	return costRows(n, cost{"central", "3", 3, 2, 2, Equal, "3", 3})
}

func lamport(_ context.Context, n int, _ uint64) ([]Row, error) {
	m := 3 * float64(n-1)
	return costRows(n, cost{"lamport", "3(N-1)", m, 2, 1, Equal, "3(N-1)", m})
}

func ricart(_ context.Context, n int, _ uint64) ([]Row, error) {
	m := 2 * float64(n-1)
	return costRows(n, cost{"ricart-agrawala", "2(N-1)", m, 2, 1, Equal, "2(N-1)", m})
}

// maekawa runs every process alone, up to a number, for the least, the mean and the most.
func maekawa(_ context.Context, n int, _ uint64) ([]Row, error) {
	least, mean, most := votingSets(n)
	width, full, rest := lattice(n)
	rows, err := costRows(n, cost{algorithm: "maekawa", messages: votingSetWords(n),
		// Process 1 is in the first column, which the last row makes the longest.
		wantMessages: 3 * float64(width+full-1+min(rest, 1)-1), client: 2, sync: 2, relation: Below,
		contended: "5(|V|-1), the most", wantContended: 5 * (most - 1)})
	if err != nil {
		return nil, err
	}
	row := Row{Family: "mutex", Algorithm: "maekawa"}
	low, sum, high := math.Inf(1), 0.0, 0.0
	chosen := []int{0, width - 1, n - 1} // the first row's ends and the last process have all sizes
	for i := range n {
		if n > exhaustive && !slices.Contains(chosen, i) {
			continue
		}
		r, err := lockRun(mutex.Config{Algorithm: "maekawa", IDs: Ascending(n), Requesters: []sim.ID{sim.ID(i + 1)}})
		if err != nil {
			return nil, err
		}
		low, high = min(low, r.MessagesPerEntry), max(high, r.MessagesPerEntry)
		sum += r.MessagesPerEntry
	}
	const quantity = "messages per entry"
	rows = append(rows, row.with("alone, least", quantity, low, Equal, "3(|V|-1)", 3*(least-1)),
		row.with("alone, most", quantity, high, Equal, "3(|V|-1)", 3*(most-1)))
	if n <= exhaustive {
		rows = append(rows, row.with("alone, mean", quantity, sum/float64(n), Equal, "3(|V|-1)", 3*(mean-1)))
	}
	return rows, nil
}

// lock is the ZooKeeper recipe: three requests with replies per entry, and for a process that
// has to wait also exists, the event and a second look at the children.
func lock(_ context.Context, n int, _ uint64) ([]Row, error) {
	k := float64(min(n, crowd))
	return costRows(n, cost{"zookeeper", "6", 6, 4, 4, Equal, "6 + 5 (k-1)/k, k ask", 6 + 5*(k-1)/k})
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
		requests                int
		sync                    bool
		expected                float64
	}{
		// The token leaves process 1 at time 0, so process k gets it at k-1.
		{"worst (just passed)", "client delay", "N", []sim.ID{1}, 0, 1, false, f},
		{"best (about to come)", "client delay", "0.001", []sim.ID{3}, 1.999, 1, false, 0.001},
		{"worst (asks again)", "synchronisation delay", "N", []sim.ID{2}, 0, 2, true, f},
		{"worst (predecessor)", "synchronisation delay", "N-1", []sim.ID{3, 2}, 1.5, 1, true, f - 1},
		{"best (successor)", "synchronisation delay", "1", []sim.ID{2, 3}, 0, 1, true, 1},
	} {
		config := base
		config.Requesters, config.Requests = c.requesters, c.requests
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
	sum := 0.0
	chosen := cases(n)
	for _, i := range chosen {
		config := base
		config.Requesters = []sim.ID{sim.ID(i + 1)}
		r, err := lockRun(config)
		if err != nil {
			return nil, err
		}
		sum += r.ClientDelay.Mean
	}
	return append(rows, row.with("average (requester)", "client delay", sum/float64(len(chosen)),
		averageRelation(n), "(N+1)/2", (f+1)/2)), nil
}
