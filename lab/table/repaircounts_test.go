package table

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/problem"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// repairs compares runs in which processes contend, crash or are slow.
func (c *comparison) repairs() {
	c.contention()
	c.ringRepairs()
	c.takeovers()
	c.drawnTakeover()
	c.heartbeats()
	c.messengers()
}

// half is the moment half a message time after a round.
func half(after int) time.Duration { return time.Duration(2*after+1) * sim.Unit / 2 }

func crash(n, after int) []sim.Fault { return []sim.Fault{{ID: sim.ID(n), At: half(after)}} }

func (c *comparison) contention() {
	row := c.row("Maekawa, every two processes, either first",
		"3(\\|V\\|-1) an entry, and *fail*, *inquire*, *relinquish*",
		"mutex --algorithm maekawa --n 9 --requester 1,2 --clock 1=1")
	for n := 2; n <= 9; n++ {
		for i := n - 2; i >= 0; i-- {
			for j := n - 1; j > i; j-- {
				for late := range 2 { // the clock of the lower
					first := []int{i, j}[late]
					r, err := lockRun(mutex.Config{Algorithm: "maekawa", IDs: Ascending(n),
						Clocks:     map[sim.ID]int{sim.ID(i + 1): late},
						Requesters: []sim.ID{sim.ID(i + 1), sim.ID(j + 1)}})
					if err != nil {
						c.t.Fatal(err)
					}
					counts, over := maekawaRounds(n, [2]int{i, j}, first)
					row.check(c.t, fmt.Sprint(n, i+1, j+1, late), countsAndTime(r.Messages.ByType, *r.Time),
						countsAndTime(counts, float64(over)))
				}
			}
		}
	}
}

func (c *comparison) ringRepairs() {
	for _, d := range []struct {
		detector election.Detector
		watch    int
		who      string
	}{{election.DetectorNeighbour, 1, "predecessor"}, {election.DetectorSuccessor, -1, "successor"}} {
		command := fmt.Sprintf("election --algorithm ring --n 6 --detector %s --initiator 1 --crash 6@", d.detector)
		before := c.row("ring repaired by the "+d.who+", the highest crashes before Elected", "", command+"10.5")
		later := c.row("the same, after Elected", "", command+"11.5")
		for n := 3; n <= 6; n++ {
			for after := range 2*n - 1 { // the elected message is sent at 2n-1
				c.ringRepair(before, n, d.detector, d.watch, after)
			}
			for after := 3*n + 1; after >= 2*n-1; after-- {
				c.ringRepair(later, n, d.detector, d.watch, after)
			}
		}
	}
}

func (c *comparison) ringRepair(row *compared, n int, d election.Detector, watch, after int) {
	r, err := election.Run(election.Config{Algorithm: "ring", IDs: Ascending(n), Detector: d, Faults: crash(n, after),
		Initiators: starters(Ascending(n), []int{0})})
	if err != nil {
		c.t.Fatal(err)
	}
	if r.Time == nil {
		c.t.Fatalf("%s, n=%d, crash after %d: no end", d, n, after)
	}
	counts, last := repairRounds(n, watch, after)
	row.check(c.t, fmt.Sprint(n, after), countsAndTime(r.Messages.ByType, *r.Time), countsAndTime(counts, float64(last)))
}

// takeovers are what the leader's crash adds to the run without it. It pings each four message times, which take one,
// and its session ends twelve after the last.
func (c *comparison) takeovers() {
	for _, a := range []struct {
		name, title, formula string
		herd                 bool
	}{{"zookeeper", "ZooKeeper's recipe, what the leader's crash adds", "3, of them 1 event", false},
		{"zookeeper-herd", "the same, everybody watching the leader", "5N-7, of them N-1 events", true}} {
		row := c.row(a.title, a.formula, "election --algorithm "+a.name+" --n 7 --crash 1@13.5")
		for n := 2; n <= 7; n++ {
			calm := run(c.t, election.Config{Algorithm: a.name, IDs: Ascending(n)})
			for after := 8; after <= 13; after++ {
				r := run(c.t, election.Config{Algorithm: a.name, IDs: Ascending(n), Faults: crash(1, after)})
				added := map[string]int{}
				for kind, count := range r.Messages.ByType {
					if more := count - calm.Messages.ByType[kind]; more != 0 && kind != "ping" && kind != "pong" {
						added[kind] = more
					}
				}
				counts, last := takeoverRounds(n, after/4*4+1+12, a.herd)
				row.check(c.t, fmt.Sprint(n, after), countsAndTime(added, *r.Time), countsAndTime(counts, float64(last)))
			}
		}
	}
}

func (c *comparison) drawnTakeover() {
	row := c.row("ZooKeeper's election as drawn, until the next leader is known", "2N-3 without an answer, then 2N-4",
		"election --algorithm zookeeper-drawn --n 7 --crash 7@13.5")
	for n := 2; n <= 7; n++ {
		for after := 2; after <= 13; after++ {
			r := run(c.t, election.Config{Algorithm: "zookeeper-drawn", IDs: Ascending(n), Faults: crash(n, after)})
			counts, last := drawnRounds(n, after)
			row.check(c.t, fmt.Sprint(n, after), countsAndTime(r.Messages.ByType, *r.Time),
				countsAndTime(counts, float64(last)))
		}
	}
}

// heartbeats ends a run with a crash when the crash is detected.
func (c *comparison) heartbeats() {
	calm := c.row("heartbeats, all up", "N(N-1) a period",
		"detector --n 7 --heartbeat-period 4 --heartbeat-timeout 3 --length 20")
	crashed := c.row("heartbeats, until the crash of one is detected", "detected within T + D and a message time",
		"detector --n 7 --heartbeat-period 4 --heartbeat-timeout 3 --crash 7@9.5 --length 16")
	for n := 2; n <= 7; n++ {
		for period := 1; period <= 4; period++ {
			for timeout := 1; timeout <= 3; timeout++ {
				config := detector.Config{IDs: Ascending(n), Length: 20 * sim.Unit, Timing: detector.Timing{
					Period: time.Duration(period) * sim.Unit, Timeout: time.Duration(timeout) * sim.Unit}}
				sent, suspected := beats(n, period, timeout, -1, 20)
				calm.check(c.t, fmt.Sprint(n, period, timeout), c.detect(config),
					fmt.Sprintf("%d, false suspicions %d", sent, suspected))
				for after := range 10 {
					sent, suspected = beats(n, period, timeout, after, 40)
					config.Faults, config.Length = crash(n, after), time.Duration(suspected)*sim.Unit
					crashed.check(c.t, fmt.Sprint(n, period, timeout, after), c.detect(config),
						fmt.Sprintf("%d, false suspicions 0, detected after %g", sent, float64(suspected-after)-0.5))
				}
			}
		}
	}
}

func (c *comparison) detect(config detector.Config) string {
	r, err := detector.Run(config)
	if err != nil {
		c.t.Fatal(err)
	}
	text := fmt.Sprintf("%d, false suspicions %d", r.Messages.Total, r.Quality.FalseSuspicions)
	if len(config.Faults) > 0 && r.Live {
		text += fmt.Sprintf(", detected after %g", r.Quality.DetectionMax)
	}
	return text
}

// messengers lose each message of the generals, or bring the one message after every time between two bounds.
func (c *comparison) messengers() {
	row := c.row("two generals, every message lost in turn", "as many as until the loss; the last: one attacks alone",
		"problem --algorithm two-generals --rounds 6 --drop attack@6")
	for rounds := 1; rounds <= 6; rounds++ {
		for lost := 1; lost <= rounds; lost++ {
			letters, knows := newRounds(2), [2]int{}
			send := func(from, number int) {
				knows[from] = number
				letters.send(post{from: from, to: 1 - from, kind: "attack", id: number})
			}
			send(0, 1)
			letters.run(func(p post) {
				if p.id == lost {
					return
				}
				if knows[p.to] = p.id; p.id < rounds {
					send(p.to, p.id+1)
				}
			}, nil)
			alone := (knows[0] == rounds) != (knows[1] == rounds)
			r, err := problem.Run(problem.Config{Problem: "two-generals", IDs: Ascending(2), Rounds: rounds,
				Network: sim.Network{Drop: []sim.Nth{{Type: "attack", K: lost}}}})
			if err != nil {
				c.t.Fatal(err)
			}
			row.check(c.t, fmt.Sprint(rounds, lost), fmt.Sprintf("%d, alone %t", r.Messages.Total, !r.Safe),
				fmt.Sprintf("%d, alone %t", letters.counts["attack"], alone))
		}
	}
	row = c.row("two generals whose messengers come in time", "1, and a gap of at most max - min",
		"problem --algorithm two-generals-bounded --delay 1-4 --late attack@1=4")
	for least := 4; least >= 1; least-- {
		for takes := least; takes <= 4; takes++ {
			r, err := problem.Run(problem.Config{Problem: "two-generals-bounded", IDs: Ascending(2), Network: sim.Network{
				Delay: sim.Delay{Min: time.Duration(least) * sim.Unit, Max: 4 * sim.Unit},
				Late:  []sim.Late{{Nth: sim.Nth{Type: "attack", K: 1}, Delay: time.Duration(takes) * sim.Unit}}}})
			if err != nil {
				c.t.Fatal(err)
			}
			// The first attacks when the least time is over, the other when the message comes.
			row.check(c.t, fmt.Sprint(least, takes),
				fmt.Sprintf("%d, time %g, gap %s", r.Messages.Total, *r.Time, r.Measures[0].Value),
				fmt.Sprintf("1, time %d, gap %d, at most max - min = %d", takes, takes-least, 4-least))
		}
	}
}
