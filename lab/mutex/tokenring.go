package mutex

import (
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The token ring (Le Lann 1977): the process that holds the token may enter; the token
// circulates forever. A lost token stops all processes; a duplicated one lets two in.
// Regeneration, by the first process after a silence, trades the first fault for the second: if
// it is too impatient, there is one token too many.

const messageToken = plainMessage("token")

type tokenNode struct {
	section
	first      bool
	regenerate time.Duration // silence after which first makes a token; 0: never
	holds      bool
}

// Show implements sim.Shower.
func (t tokenNode) Show() []sim.Variable {
	return append(t.section.Show(), sim.Variable{Name: "token",
		Value: map[bool]string{true: "here", false: "-"}[t.holds]})
}

// Step implements sim.Node.
func (t tokenNode) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start:
		if t.first {
			t.use(&out)
		}
	case sim.Recover:
		t.phase, t.holds = outside, false
		t.watch(&out)
	case Request:
		t.want(&out)
	case sim.Deliver:
		t.use(&out)
	case sim.Timeout:
		if e.Name == leaveTimer {
			t.exit(&out)
			t.holds = false
			out.SendRing(sim.Clockwise, messageToken)
		} else {
			t.use(&out) // the token seems lost: here is another
		}
	}
	return t, out
}

// use enters with the token, or passes it on.
func (t *tokenNode) use(out *sim.Output) {
	t.watch(out)
	if t.phase == wanting {
		t.enter(out)
		t.holds = true
		return
	}
	out.SendRing(sim.Clockwise, messageToken)
}

// watch sets the alarm that regenerates the token.
func (t *tokenNode) watch(out *sim.Output) {
	if t.first && t.regenerate > 0 {
		out.SetTimer("regenerate", t.regenerate)
	}
}
