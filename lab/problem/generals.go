package problem

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Two generals: E. A. Akkoyunlu, K. Ekanadham and R. V. Huber, "Some Constraints and Tradeoffs
// in the Design of Network Communications", SOSP 1975. Two armies win if both attack and lose
// if one does, and their messengers may be caught. They agree on a number of messages:
// "attack", "I know", "I know that you know", ... Each general attacks if the last message that
// it expects has arrived. The sender of the last one cannot know whether it arrives: it attacks
// anyway (or else that message would be of no use), so losing it leaves one alone. That is so
// for every number, hence no number is enough.

type orderMessage struct {
	number int
	of     int // messages in all; 0 if they are not lost
}

func (m orderMessage) Type() string { return "attack" }
func (m orderMessage) String() string {
	if m.of == 0 {
		return "attack!"
	}
	return fmt.Sprintf("message %d of %d", m.number, m.of)
}

// Facts of generals.
const (
	factAttacks = "attacks"
	factStays   = "stays"
)

// general is one of the two. On disk: nothing.
type general struct {
	other  sim.ID
	of     int           // messages in all
	dawn   time.Duration // when they decide
	latest int           // number of the latest message, sent or received
}

// Show implements sim.Shower.
func (g general) Show() []sim.Variable {
	return []sim.Variable{{Name: "knows of message", Value: fmt.Sprintf("%d of %d", g.latest, g.of)}}
}

// Step implements sim.Node.
func (g general) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start:
		out.SetTimer("dawn", g.dawn)
	case Begin:
		g.send(1, &out)
	case sim.Deliver:
		if m := e.Message.(orderMessage); m.number > g.latest {
			g.latest = m.number
			if m.number < g.of {
				g.send(m.number+1, &out)
			}
		}
	case sim.Timeout:
		if g.latest == g.of {
			out.Note(factAttacks, sim.None, 0)
		} else {
			out.Note(factStays, sim.None, 0)
		}
	}
	return g, out
}

func (g *general) send(number int, out *sim.Output) {
	g.latest = number
	out.Send(g.other, orderMessage{number: number, of: g.of})
}

func generals() Problem {
	return Problem{Name: "two-generals", Title: "Two generals whose messengers may be caught", N: 2, Least: 2,
		Fixed: true, topology: "mesh", use: sim.Use{Types: []string{"attack"}},
		build: func(c Config, place int) sim.Node {
			return general{other: c.IDs[1-place], of: c.Rounds, dawn: time.Duration(c.Rounds+1) * c.Network.Delay.Max}
		},
		begin: func(r *run) { r.sim.Command(0, r.config.IDs[0], Begin{}) },
		judge: judgeGenerals}
}

func judgeGenerals(r *run) {
	attacks := r.stated(factAttacks)
	r.result.Live = len(attacks) == 2
	for _, id := range r.config.IDs {
		if at, ok := attacks[id]; ok && len(attacks) == 1 {
			r.violate(at, "%v attacks alone", id)
		}
	}
	if len(r.config.Network.Drop) > 0 || r.config.Network.Loss > 0 || len(r.config.Faults) > 0 {
		return
	}
	// The proof, run: lose each message in turn.
	agree, alone := 1, 0
	for k := range r.config.Rounds {
		c := r.config
		c.Network.Drop = []sim.Nth{{Type: "attack", K: k + 1}}
		c.Keep, c.Observers = false, nil
		if again, err := Run(c); err == nil && again.Safe {
			agree++
		} else {
			alone = k + 1
		}
	}
	r.measure("of the runs that lose one message or none", "%d agree, %d do not: that without message %d",
		agree, r.config.Rounds+1-agree, alone)
}

// boundedGeneral is a general where every message arrives, after least to most: the first
// sends, waits the least time and attacks; the second attacks when the message arrives.
type boundedGeneral struct {
	other sim.ID
	least time.Duration
}

// Step implements sim.Node.
func (g boundedGeneral) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch event.(type) {
	case Begin:
		out.Send(g.other, orderMessage{number: 1})
		out.SetTimer("least time", g.least)
	case sim.Deliver, sim.Timeout:
		out.Note(factAttacks, sim.None, 0)
	}
	return g, out
}

func boundedGenerals() Problem {
	return Problem{Name: "two-generals-bounded", Title: "Two generals whose messengers come in time", N: 2, Least: 2,
		Fixed: true, topology: "mesh", use: sim.Use{Types: []string{"attack"}},
		build: func(c Config, place int) sim.Node {
			return boundedGeneral{other: c.IDs[1-place], least: c.Network.Delay.Min}
		},
		begin: func(r *run) { r.sim.Command(0, r.config.IDs[0], Begin{}) },
		judge: func(r *run) {
			attacks := r.stated(factAttacks)
			first, second := r.config.IDs[0], r.config.IDs[1]
			bound := r.config.Network.Delay.Max - r.config.Network.Delay.Min
			at, both := attacks[second]
			if r.result.Live = both; !both {
				r.atEnd("%v attacks alone", first)
				return
			}
			gap := at - attacks[first]
			r.measure("gap", "%s, at most max - min = %s", sim.FormatTime(gap), sim.FormatTime(bound))
			if gap > bound {
				r.violate(at, "%v attacks %s after %v, and max - min is %s", second, sim.FormatTime(gap), first,
					sim.FormatTime(bound))
			}
		}}
}
