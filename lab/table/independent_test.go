package table

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

var update = flag.Bool("update", false, "rewrite lab/testdata/counts.md")

// compared is a row of counts.md.
type compared struct {
	variant, formula, command string
	lab, apart                string // of the example, which is the last case
	cases, equal              int
}

// comparison collects them.
type comparison struct {
	t    *testing.T
	rows []compared
}

func (c *comparison) row(variant, formula, command string) *compared {
	c.rows = append(c.rows, compared{variant: variant, formula: formula, command: command})
	return &c.rows[len(c.rows)-1]
}

func (r *compared) check(t *testing.T, what string, lab, apart any) {
	t.Helper()
	r.cases++
	r.lab, r.apart = fmt.Sprint(lab), fmt.Sprint(apart)
	if r.lab == r.apart {
		r.equal++
	} else {
		t.Errorf("%s, %s: the lab counts %v, the enumeration %v", r.variant, what, lab, apart)
	}
}

func countsAndTime(counts map[string]int, time float64) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", time %g", time)
}

func run(t *testing.T, c election.Config) election.Result {
	t.Helper()
	r, err := election.Run(c)
	if err != nil || !r.Safe || !r.Live {
		t.Fatalf("%+v: %+v, %v, want safe and live", c, r, err)
	}
	return r
}

// entries notes who enters.
type entries struct{ ids []sim.ID }

// Observe implements sim.Observer.
func (e *entries) Observe(r sim.Record) {
	if r.Kind == sim.Noted && r.Fact.Name == mutex.FactEnter {
		e.ids = append(e.ids, r.Process)
	}
}

// sets returns every set of the numbers below n that is not empty.
func sets(n int) (all [][]int) {
	for bits := 1; bits < 1<<n; bits++ {
		var set []int
		for i := range n {
			if bits&(1<<i) != 0 {
				set = append(set, i)
			}
		}
		all = append(all, set)
	}
	return all
}

func permutations(n int) (all [][]sim.ID) {
	ids := Ascending(n)
	var permute func(k int)
	permute = func(k int) {
		if k == n {
			all = append(all, slices.Clone(ids))
			return
		}
		for i := k; i < n; i++ {
			ids[k], ids[i] = ids[i], ids[k]
			permute(k + 1)
			ids[k], ids[i] = ids[i], ids[k]
		}
	}
	permute(0)
	return all
}

func starters(ids []sim.ID, places []int) (all []election.Initiator) {
	for _, i := range places {
		all = append(all, election.Initiator{ID: ids[i]})
	}
	return all
}

func (c *comparison) bully(row *compared, n int, initiators []int, crashed bool, set func(*election.Config, *bullyRounds)) {
	config := election.Config{Algorithm: "bully", IDs: Ascending(n), Initiators: starters(Ascending(n), initiators)}
	if crashed {
		config.Faults = []sim.Fault{{ID: sim.ID(n)}}
	}
	b := newBullyRounds(n)
	b.crashed = crashed
	set(&config, b)
	b.start(initiators)
	r := run(c.t, config)
	row.check(c.t, fmt.Sprintf("n=%d, initiators %v", n, initiators), countsAndTime(r.Messages.ByType, *r.Time),
		countsAndTime(b.counts, float64(b.last)))
}

func (c *comparison) bullies() {
	plain := func(*election.Config, *bullyRounds) {}
	once := func(c *election.Config, b *bullyRounds) { c.AnnounceOnce, b.once = true, true }
	row := c.row("bully, one initiator, the highest down", "worst (N-1)N/2 *election*, time 5",
		"election --n 7 --crash 7@0 --initiator 1")
	for n := 3; n <= 7; n++ {
		for i := n - 2; i >= 0; i-- {
			c.bully(row, n, []int{i}, true, plain)
		}
	}
	row = c.row("bully, several initiators, announcing again", "", "election --n 5 --crash 5@0 --initiator 1,2,3,4")
	for n := 4; n <= 5; n++ {
		for _, set := range sets(n - 1) {
			c.bully(row, n, set, true, plain)
		}
	}
	row = c.row("the same, announcing once", "", "election --n 5 --crash 5@0 --initiator 1,2,3,4 --announce once")
	for n := 4; n <= 5; n++ {
		for _, set := range sets(n - 1) {
			c.bully(row, n, set, true, once)
		}
	}
	row = c.row("bully, one crash during the run, at every half", "", "election --n 7 --crash 7@0 --initiator 1 --detector none --crash 6@5.5")
	for n := 4; n <= 7; n++ {
		for victim := 1; victim < n-1; victim++ {
			for after := range 6 {
				b := newBullyRounds(n)
				b.crashed, b.crashes = true, map[int]int{victim: after}
				b.start([]int{0})
				r, err := election.Run(election.Config{Algorithm: "bully", IDs: Ascending(n), Detector: election.DetectorNone,
					Initiators: starters(Ascending(n), []int{0}),
					Faults:     []sim.Fault{{ID: sim.ID(n)}, {ID: sim.ID(victim + 1), At: time.Duration(2*after+1) * sim.Unit / 2}}})
				if err != nil {
					c.t.Fatal(err)
				}
				row.check(c.t, fmt.Sprint(n, victim, after), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(b.counts, float64(b.last)))
			}
		}
	}
	row = c.row("bully, false alarm, again", "", "election --n 7 --initiator 6")
	for n := 3; n <= 7; n++ {
		for i := range n {
			c.bully(row, n, []int{min(i, n-2)}, false, plain)
		}
	}
	row = c.row("bully, false alarm, once", "", "election --n 7 --initiator 6 --announce once")
	for n := 3; n <= 7; n++ {
		for i := range n - 1 {
			c.bully(row, n, []int{i}, false, once)
		}
	}
	row = c.row("bully, asking and telling all, once", "N-1 *election* an asker, N-1 *coordinator*",
		"election --n 5 --crash 5@0 --initiator 1,2,3,4 --ask all --tell all --announce once")
	for n := 4; n <= 5; n++ {
		for _, set := range sets(n - 1) {
			c.bully(row, n, set, true, func(c *election.Config, b *bullyRounds) {
				once(c, b)
				c.AskAll, b.askAll, c.TellAll, b.tellAll = true, true, true, true
			})
		}
	}
}

func (c *comparison) rings() {
	for _, participants := range []bool{false, true} {
		rule := map[bool]string{false: "initiator", true: "participant"}[participants]
		one := c.row("ring, rule of the "+rule+", one starts", "2N to 3N-1",
			"election --algorithm ring --ids 4,3,2,1 --initiator 1 --rule "+rule)
		many := c.row("ring, rule of the "+rule+", any set starts", "",
			"election --algorithm ring --ids 4,3,2,1 --initiator 4,3,2,1 --rule "+rule)
		for n := 2; n <= 4; n++ {
			for _, ids := range permutations(n) {
				for _, set := range sets(n) {
					row := many
					if len(set) == 1 {
						row = one
					}
					// A run's number is its time, the same for all here.
					r := run(c.t, election.Config{Algorithm: "ring", IDs: ids, Initiators: starters(ids, set),
						Participants: participants})
					counts, time := ringRounds(ids, set, participants)
					row.check(c.t, fmt.Sprint(ids, set), countsAndTime(r.Messages.ByType, *r.Time),
						countsAndTime(counts, float64(time)))
				}
			}
		}
	}
	l := c.row("LCR, every arrangement", "2N-1 to N(N+1)/2 *candidate*", "election --algorithm lcr --ids 6,5,4,3,2,1")
	h := c.row("Hirschberg-Sinclair, every arrangement", "below 8N(log N + 2) + 5N",
		"election --algorithm hs --ids 6,1,2,5,3,4")
	for n := 2; n <= 6; n++ {
		all := append(permutations(n), Descending(n))
		for _, ids := range all {
			r := run(c.t, election.Config{Algorithm: "lcr", IDs: ids})
			l.check(c.t, fmt.Sprint(ids), r.Messages.ByType["candidate"], lcrHops(ids))
		}
		for _, ids := range append(all, hsOfAll(n)) {
			r := run(c.t, election.Config{Algorithm: "hs", IDs: ids})
			h.check(c.t, fmt.Sprint(ids), r.Messages.Total, hsHops(ids))
			if HSMessages(ids) != hsHops(ids) {
				c.t.Errorf("%v: the search counts %d, the enumeration %d", ids, HSMessages(ids), hsHops(ids))
			}
		}
	}
	h.command = "election --algorithm hs --ids " + strings.ReplaceAll(strings.Trim(fmt.Sprint(hsOfAll(6)), "[N]"), " N", ",")
}

// small compares those whose messages can be walked through one by one.
func (c *comparison) small() {
	b := c.row("broadcast", "N(N-1), and N-1 more if the first message has no id", "election --algorithm broadcast --n 7")
	m := c.row("majority, one stands", "2(N-1) votes", "election --algorithm majority --n 7 --initiator 1")
	z := c.row("ZooKeeper's recipe, all line up", "6N-2", "election --algorithm zookeeper --n 7")
	h := c.row("the same, everybody watching the leader", "6N-2", "election --algorithm zookeeper-herd --n 7")
	for n := 2; n <= 7; n++ {
		told, votes, line := newRounds(n), newRounds(n), newRounds(n+1)
		for i := range n {
			for j := range n {
				if i != j {
					told.send(post{from: i, to: j, kind: "id"})
				}
			}
			if i > 0 {
				votes.send(post{from: 0, to: i, kind: "request-vote"})
			}
			line.send(post{from: i, to: n, kind: "create"})
		}
		told.run(func(post) {}, nil)
		votes.run(func(p post) {
			if p.kind == "request-vote" {
				votes.send(post{from: p.to, to: p.from, kind: "vote"})
			}
		}, nil)
		next := map[string]string{"create-reply": "children", "children-reply": "exists"}
		line.run(func(p post) {
			if p.to == n {
				line.send(post{from: n, to: p.from, kind: p.kind + "-reply"})
			} else if kind := next[p.kind]; kind == "children" || kind == "exists" && p.to > 0 {
				line.send(post{from: p.to, to: n, kind: kind})
			}
		}, nil)
		r := run(c.t, election.Config{Algorithm: "broadcast", IDs: Ascending(n)})
		b.check(c.t, fmt.Sprint(n), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(told.counts, float64(told.last)))
		r = run(c.t, election.Config{Algorithm: "majority", IDs: Ascending(n), Initiators: starters(Ascending(n), []int{0})})
		delete(r.Messages.ByType, "heartbeat")
		delete(r.Messages.ByType, "ack")
		// The heartbeat that tells the others comes one message time behind the votes.
		m.check(c.t, fmt.Sprint(n), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(votes.counts, float64(votes.last+1)))
		for name, row := range map[string]*compared{"zookeeper": z, "zookeeper-herd": h} {
			r = run(c.t, election.Config{Algorithm: name, IDs: Ascending(n)})
			delete(r.Messages.ByType, "ping")
			delete(r.Messages.ByType, "pong")
			row.check(c.t, fmt.Sprint(n), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(line.counts, float64(line.last)))
		}
	}
}

// TestCounts_EnumeratedApart compares the lab's counts with those of rounds_test.go, case by
// case, and writes the table in lab/testdata/counts.md.
func TestCounts_EnumeratedApart(t *testing.T) {
	c := &comparison{t: t, rows: make([]compared, 0, 100)} // rows are held by address
	c.bullies()
	c.rings()
	c.small()
	c.locks()
	c.others()
	c.repairs()
	var b strings.Builder
	b.WriteString("# Counts\n\nEach count of the lab beside the same count made apart, by a program that knows neither the simulator\n" +
		"nor the lab's algorithms (`lab/table/*rounds_test.go`): messages by type and time, case by case. Made by\n" +
		"`TestCounts_EnumeratedApart`. The counts shown are those of the command.\n\n" +
		"| algorithm and variant | formula | command: `zk-lite lab ...` | lab | enumeration | cases equal |\n|---|---|---|---|---|---|\n")
	total, equal := 0, 0
	for _, r := range c.rows {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %d of %d |\n", r.variant, r.formula, r.command, r.lab, r.apart, r.equal, r.cases)
		total, equal = total+r.cases, equal+r.equal
	}
	fmt.Fprintf(&b, "\nTogether %d of %d.\n", equal, total)
	const file = "../testdata/counts.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if shown, err := os.ReadFile(file); err != nil || string(shown) != b.String() {
		t.Errorf("%s is not what the runs give (%v); run the test with -update", file, err)
	}
}
