package table

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/problem"
	"github.com/zk-lite/zk-lite/lab/race"
)

// others compares what is neither a classical election nor a classical lock.
func (c *comparison) others() {
	c.races()
	c.drawn()
	c.zookeeperLock()
	c.problems()
}

// races goes through the orders of two times three steps, as words of a and b.
func (c *comparison) races() {
	row := c.row("a race, every order of the steps", "6!/(3! 3!) = 20 orders", "race --algorithm deposits")
	for _, p := range []struct {
		name         string
		start, other int
	}{{"counter", 5, -1}, {"deposits", 17, 1}} {
		ends := map[int]int{}
		var walk func(a, b, memory, registerA, registerB int)
		walk = func(a, b, memory, registerA, registerB int) {
			if a == 3 && b == 3 {
				ends[memory]++
			}
			// The steps of either: read, add, write.
			if a < 3 {
				m, r := []int{memory, memory, registerA}[a], []int{memory, registerA + 1, registerA}[a]
				walk(a+1, b, m, r, registerB)
			}
			if b < 3 {
				m, r := []int{memory, memory, registerB}[b], []int{memory, registerB + p.other, registerB}[b]
				walk(a, b+1, m, registerA, r)
			}
		}
		walk(0, 0, p.start, 0, 0)
		r, err := race.Run(race.Config{Program: p.name})
		if err != nil {
			c.t.Fatal(err)
		}
		found := map[int]int{}
		for _, f := range r.Finals {
			found[f.Value] = f.Schedules
		}
		row.check(c.t, p.name, endings(found), endings(ends))
	}
}

func endings(ends map[int]int) (text string) {
	for _, value := range slices.Sorted(maps.Keys(ends)) {
		text += fmt.Sprintf("%d in %d, ", value, ends[value])
	}
	return text + "no other"
}

// drawn are ZooKeeper's election as the slides draw it, and the ring without ids, in which
// all do the same in every round.
func (c *comparison) drawn() {
	d := c.row("ZooKeeper's election as drawn, all up", "2(N-1)", "election --algorithm zookeeper-drawn --n 7")
	a := c.row("anonymous ring, until it gives up", "N a round, given up after 4(N-1)", "election --algorithm anonymous --n 7")
	for n := 2; n <= 7; n++ {
		polls, views := newRounds(n), newRounds(n)
		for i := range n {
			if i+1 < n {
				polls.send(post{from: i, to: i + 1, kind: "check"})
			}
			views.send(post{from: i, to: (i + 1) % n, kind: "view"})
		}
		polls.run(func(p post) {
			if p.kind == "check" {
				polls.send(post{from: p.to, to: p.from, kind: "alive"})
			}
		}, nil)
		views.run(func(p post) {
			if views.now < 4*(n-1) {
				views.send(post{from: p.to, to: (p.to + 1) % n, kind: "view"})
			}
		}, nil)
		r := run(c.t, election.Config{Algorithm: "zookeeper-drawn", IDs: Ascending(n)})
		d.check(c.t, fmt.Sprint(n), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(polls.counts, float64(polls.last)))
		r, err := election.Run(election.Config{Algorithm: "anonymous", IDs: Ascending(n)})
		if err != nil {
			c.t.Fatal(err)
		}
		a.check(c.t, fmt.Sprint(n), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(views.counts, float64(views.last)))
	}
}

// zookeeperLock has all queue at once; the first one stays for one round and deletes its znode,
// which wakes the next one, which looks again.
func (c *comparison) zookeeperLock() {
	row := c.row("ZooKeeper's lock, all ask", "11N-5", "mutex --algorithm zookeeper --n 7")
	for n := 2; n <= 7; n++ {
		r, first := newRounds(n+1), 0
		for i := range n {
			r.send(post{from: i, to: n, kind: "create"})
		}
		r.run(func(p post) {
			switch me := p.to; {
			case me == n:
				r.send(post{from: n, to: p.from, kind: p.kind + "-reply"})
				if p.kind == "delete" {
					first++
				}
				if p.kind == "delete" && first < n {
					r.send(post{from: n, to: first, kind: "event"})
				}
			case p.kind == "create-reply" || p.kind == "event":
				r.send(post{from: me, to: n, kind: "children"})
			case p.kind == "children-reply" && me == first:
				r.alarms = append(r.alarms, alarm{at: r.now + 1, who: me})
			case p.kind == "children-reply":
				r.send(post{from: me, to: n, kind: "exists"})
			}
		}, func(a alarm) { r.send(post{from: a.who, to: n, kind: "delete"}) })
		got, err := lockRun(mutex.Config{Algorithm: "zookeeper", IDs: Ascending(n)})
		if err != nil {
			c.t.Fatal(err)
		}
		delete(got.Messages.ByType, "ping")
		delete(got.Messages.ByType, "pong")
		row.check(c.t, fmt.Sprint(n), countsAndTime(got.Messages.ByType, *got.Time), countsAndTime(r.counts, float64(r.last)))
	}
}

// problems are the generals, the primary with its backup, and locks in a cycle.
func (c *comparison) problems() {
	count := func(config problem.Config) problem.Result {
		r, err := problem.Run(config)
		if err != nil {
			c.t.Fatal(err)
		}
		return r
	}
	generals := c.row("two generals", "as many as are agreed on", "problem --algorithm two-generals --rounds 6")
	primary := c.row("primary and backup, two clients", "4 a deposit, time 4 each",
		"problem --algorithm primary-backup --rounds 6")
	for rounds := 1; rounds <= 6; rounds++ {
		letters := newRounds(2)
		letters.send(post{to: 1, kind: "attack", id: 1})
		letters.run(func(p post) {
			if p.id < rounds {
				letters.send(post{from: p.to, to: p.from, kind: "attack", id: p.id + 1})
			}
		}, nil)
		r := count(problem.Config{Problem: "two-generals", IDs: Ascending(2), Rounds: rounds})
		generals.check(c.t, fmt.Sprint(rounds), r.Messages.Total, letters.counts["attack"])

		bank := newRounds(4)
		for client := 2; client < 4; client++ {
			bank.send(post{from: client, to: 0, kind: "deposit", id: client, run: 1})
		}
		bank.run(func(p post) {
			p.from = p.to
			switch p.kind {
			case "deposit":
				p.to, p.kind = 1, "update"
			case "update":
				p.to, p.kind = 0, "updated"
			case "updated":
				p.to, p.kind = p.id, "confirmed"
			case "confirmed":
				if p.run == rounds {
					return
				}
				p.to, p.kind, p.run = 0, "deposit", p.run+1
			}
			bank.send(p)
		}, nil)
		r = count(problem.Config{Problem: "primary-backup", IDs: Ascending(4), Rounds: rounds})
		delete(r.Messages.ByType, "beat")
		primary.check(c.t, fmt.Sprint(rounds), countsAndTime(r.Messages.ByType, *r.Time),
			countsAndTime(bank.counts, float64(bank.last)))
	}
	row := c.row("locks in a cycle, a victim elected", "5N-1", "problem --algorithm deadlock --n 7")
	for n := 3; n <= 7; n++ {
		r := count(problem.Config{Problem: "deadlock", IDs: Ascending(n)})
		// Each asks, is granted and releases once, and the ids go round as in LCR.
		row.check(c.t, fmt.Sprint(n), r.Messages.ByType, map[string]int{
			"request": n, "grant": n, "release": n, "candidate": lcrHops(Ascending(n))})
	}
}
