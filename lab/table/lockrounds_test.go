package table

import (
	"cmp"
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// stampOf is a request's clock and process.
type stampOf struct{ clock, who int }

func earlier(a, b stampOf) int {
	return cmp.Or(cmp.Compare(a.clock, b.clock), cmp.Compare(a.who, b.who))
}

// stampedRounds has all processes ask at 0 with some clocks, stay for one round, and leave,
// by Lamport's lock or by Ricart and Agrawala's. It returns the counts, the order of the
// entries and the time at which all is over.
func stampedRounds(clocks []int, ricart bool) (counts map[string]int, order []sim.ID, over int) {
	n := len(clocks)
	r := newRounds(n)
	clock := slices.Clone(clocks)
	own := make([]stampOf, n)
	done := make([]int, n)           // 0 waits, 1 inside, 2 over
	later := make([]map[int]bool, n) // who sent something later, or replied
	waiting := make([][]stampOf, n)  // Lamport: known requests; Ricart: replies owed
	tell := func(i int, kind string, id int) {
		for j := range n {
			if j != i {
				r.send(post{from: i, to: j, kind: kind, id: id})
			}
		}
	}
	look := func(i int) {
		if done[i] == 0 && (ricart || waiting[i][0] == own[i]) && len(later[i]) == n-1 {
			done[i] = 1
			order = append(order, sim.ID(i+1))
			r.alarms = append(r.alarms, alarm{at: r.now + 1, who: i})
		}
	}
	for i := range n {
		clock[i]++
		own[i], later[i] = stampOf{clock[i], i}, map[int]bool{}
		if !ricart {
			waiting[i] = []stampOf{own[i]}
		}
		tell(i, "request", clock[i])
	}
	r.run(func(p post) {
		me, about := p.to, stampOf{p.id, p.from}
		if ricart && p.kind == "reply" {
			later[me][p.from] = true
			look(me)
			return
		}
		clock[me] = max(clock[me], p.id) + 1
		if !ricart && earlier(own[me], about) < 0 {
			later[me][p.from] = true
		}
		switch {
		case p.kind == "request" && ricart:
			if done[me] == 1 || done[me] == 0 && earlier(own[me], about) < 0 {
				waiting[me] = append(waiting[me], about)
				slices.SortFunc(waiting[me], earlier)
				return
			}
			r.send(post{from: me, to: p.from, kind: "reply"})
		case p.kind == "request":
			waiting[me] = append(waiting[me], about)
			slices.SortFunc(waiting[me], earlier)
			r.send(post{from: me, to: p.from, kind: "reply", id: clock[me]})
		case p.kind == "release":
			waiting[me] = slices.DeleteFunc(waiting[me], func(s stampOf) bool { return s.who == p.from })
		}
		look(me)
	}, func(a alarm) {
		i := a.who
		done[i] = 2
		r.last = max(r.last, r.now)
		if ricart {
			for _, s := range waiting[i] {
				r.send(post{from: i, to: s.who, kind: "reply"})
			}
			return
		}
		waiting[i] = slices.DeleteFunc(waiting[i], func(s stampOf) bool { return s.who == i })
		clock[i]++
		tell(i, "release", clock[i])
	})
	return r.counts, order, r.last
}

// centralRounds has processes 1 to n ask the coordinator, the last place, at 0.
func centralRounds(n int) (map[string]int, int) {
	r := newRounds(n + 1)
	var queue []int
	busy := false
	for i := range n {
		r.send(post{from: i, to: n, kind: "request"})
	}
	r.run(func(p post) {
		switch p.kind {
		case "request":
			queue = append(queue, p.from)
		case "release":
			busy = false
		case "grant":
			r.alarms = append(r.alarms, alarm{at: r.now + 1, who: p.to})
			return
		}
		if !busy && len(queue) > 0 {
			r.send(post{from: n, to: queue[0], kind: "grant"})
			queue, busy = queue[1:], true
		}
	}, func(a alarm) { r.send(post{from: a.who, to: n, kind: "release"}) })
	return r.counts, r.last
}

// crossingOf returns the places that share a row or a column with one of n in a lattice.
func crossingOf(n, place int) (places []int) {
	width := 1
	for width*width < n {
		width++
	}
	for i := range n {
		if i/width == place/width || i%width == place%width {
			places = append(places, i)
		}
	}
	return places
}
