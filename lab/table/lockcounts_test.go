package table

import (
	"fmt"

	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

func (c *comparison) locks() {
	cost := func(algorithm string, n int, requesters ...sim.ID) mutex.Result {
		r, err := lockRun(mutex.Config{Algorithm: algorithm, IDs: Ascending(n), Requesters: requesters})
		if err != nil {
			c.t.Fatal(err)
		}
		return r
	}
	for _, a := range [][2]string{{"lamport", "3(N-1) an entry"}, {"ricart-agrawala", "2(N-1) an entry"}} {
		name, formula := a[0], a[1]
		row := c.row(name+", all ask, clocks at random", formula, "mutex --algorithm "+name+" --n 6")
		for n := 2; n <= 6; n++ {
			for seed := 19; seed >= 0; seed-- {
				clocks, given := make([]int, n), map[sim.ID]int{}
				random := sim.Random(seed)
				for i := range n {
					var draw int64
					draw, random = random.Next(9)
					clocks[i] = int(draw) * min(seed, 1)
					given[sim.ID(i+1)] = clocks[i]
				}
				order := &entries{}
				r, err := lockRun(mutex.Config{Algorithm: name, IDs: Ascending(n), Clocks: given, Observers: []sim.Observer{order}})
				if err != nil {
					c.t.Fatal(err)
				}
				counts, want, over := stampedRounds(clocks, name == "ricart-agrawala")
				row.check(c.t, fmt.Sprint(clocks), fmt.Sprint(countsAndTime(r.Messages.ByType, *r.Time), ", order ", order.ids),
					fmt.Sprint(countsAndTime(counts, float64(over)), ", order ", want))
			}
		}
	}
	row := c.row("central, all ask", "3 an entry", "mutex --algorithm central --n 8")
	for n := 2; n <= 8; n++ {
		r := cost("central", n)
		counts, over := centralRounds(n)
		row.check(c.t, fmt.Sprint(n), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(counts, float64(over)))
	}
	row = c.row("Maekawa alone, every process", "3(\\|V\\|-1)", "mutex --algorithm maekawa --n 13 --requester 13")
	for n := 2; n <= 13; n++ {
		for i := range n {
			r := cost("maekawa", n, sim.ID(i+1))
			row.check(c.t, fmt.Sprint(n, i+1), r.Messages.Total, 3*(crossing(n, i)-1))
		}
	}
	row = c.row("token ring, client delay of every process", "at most N", "mutex --algorithm token-ring --n 8 --requester 8")
	for n := 2; n <= 8; n++ {
		for i := range n {
			r := cost("token-ring", n, sim.ID(i+1))
			walk := i // the token leaves the first process at 0
			if i == 0 {
				walk = n
			}
			row.check(c.t, fmt.Sprint(n, i+1), r.ClientDelay.Mean, float64(walk))
		}
	}
}
