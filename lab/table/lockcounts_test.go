package table

import (
	"fmt"

	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/problem"
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
			row.check(c.t, fmt.Sprint(n, i+1), r.Messages.Total, 3*(len(crossingOf(n, i))-1))
		}
	}
	for _, p := range []struct {
		name  string
		words [3]string // from the first to the others, back, and again
	}{{"two-phase-commit", [3]string{"prepare", "yes", "commit"}}, {"zab", [3]string{"proposal", "ack", "commit"}}} {
		row = c.row(p.name, "3(N-1), time 3", "problem --algorithm "+p.name+" --n 8")
		for n := 2; n <= 8; n++ {
			r := newRounds(n)
			answered := 0
			tell := func(word string) {
				for i := 1; i < n; i++ {
					r.send(post{to: i, kind: word})
				}
			}
			tell(p.words[0])
			r.run(func(m post) {
				if m.kind == p.words[0] {
					r.send(post{from: m.to, kind: p.words[1]})
				}
				if m.kind != p.words[1] {
					return
				}
				// Two-phase commit waits for all others, the broadcast for a majority with itself.
				answered++
				if p.name == "zab" && answered == n/2 || p.name != "zab" && answered == n-1 {
					tell(p.words[2])
				}
			}, nil)
			got, err := problem.Run(problem.Config{Problem: p.name, IDs: Ascending(n)})
			if err != nil {
				c.t.Fatal(err)
			}
			row.check(c.t, fmt.Sprint(n), countsAndTime(got.Messages.ByType, *got.Time), countsAndTime(r.counts, float64(r.last)))
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
