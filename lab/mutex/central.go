package mutex

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The central algorithm: one coordinator holds a queue and one permission.
// Three messages to an entry: request, grant, release.

type plainMessage string

func (m plainMessage) Type() string   { return string(m) }
func (m plainMessage) String() string { return string(m) }

const (
	messageRequest = plainMessage("request")
	messageGrant   = plainMessage("grant")
	messageRelease = plainMessage("release")
)

// coordinator is the state of the process that grants.
type coordinator struct {
	holder sim.ID
	queue  []sim.ID
}

// Step implements sim.Node.
func (c coordinator) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	d, ok := event.(sim.Deliver)
	if !ok {
		return c, out
	}
	switch d.Message {
	case messageRequest:
		c.queue = append(slices.Clone(c.queue), d.From)
	case messageRelease:
		if c.holder == d.From {
			c.holder = sim.None
		}
	}
	if c.holder == sim.None && len(c.queue) > 0 {
		c.holder, c.queue = c.queue[0], slices.Clone(c.queue[1:])
		out.Send(c.holder, messageGrant)
	}
	return c, out
}

// centralClient is the state of a process that asks.
type centralClient struct{ section }

// Step implements sim.Node.
func (c centralClient) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		c.phase = outside
	case Request:
		if c.want(&out) {
			out.Send(sim.Service, messageRequest)
		}
	case sim.Deliver:
		if e.Message == messageGrant && c.phase == wanting {
			c.enter(&out)
		} else if e.Message == messageGrant {
			out.Send(sim.Service, messageRelease) // asked for before a crash
		}
	case sim.Timeout:
		c.exit(&out)
		out.Send(sim.Service, messageRelease)
	}
	return c, out
}
