package mutex

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The central algorithm: one coordinator has a queue and one permission. Three messages per
// entry: request, grant, release.

type plainMessage string

func (m plainMessage) Type() string   { return string(m) }
func (m plainMessage) String() string { return string(m) }

const (
	messageRequest = plainMessage("request")
	messageGrant   = plainMessage("grant")
	messageRelease = plainMessage("release")
)

// letter is a message that waits for the coordinator to read it.
type letter struct {
	from    sim.ID
	message sim.Message
}

// coordinator is the state of the process that grants. On disk: nothing, so that one that
// recovers has forgotten which process it has let in.
type coordinator struct {
	holder sim.ID
	queue  []sim.ID
	work   time.Duration // on each message; messages that arrive meanwhile wait
	inbox  []letter      // the first is being worked on
}

// workTimer ends the work on a message.
const workTimer = "work"

// Show implements sim.Shower.
func (c coordinator) Show() []sim.Variable {
	queue := []string{}
	for _, id := range c.queue {
		queue = append(queue, id.String())
	}
	variables := []sim.Variable{{Name: "holder", Value: holderName(c.holder)},
		{Name: "queue", Value: "[" + strings.Join(queue, " ") + "]"}}
	if c.work > 0 {
		variables = append(variables, sim.Variable{Name: "unread", Value: fmt.Sprint(len(c.inbox))})
	}
	return variables
}

func holderName(id sim.ID) string {
	if id == sim.None {
		return "-"
	}
	return id.String()
}

// Step implements sim.Node.
func (c coordinator) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		return coordinator{holder: sim.None, work: c.work}, out
	case sim.Deliver:
		if c.work == 0 {
			return c.read(letter{e.From, e.Message}, &out), out
		}
		c.inbox = append(slices.Clone(c.inbox), letter{e.From, e.Message})
		if len(c.inbox) == 1 {
			out.SetTimer(workTimer, c.work)
		}
	case sim.Timeout:
		c = c.read(c.inbox[0], &out)
		c.inbox = slices.Clone(c.inbox[1:])
		if len(c.inbox) > 0 {
			out.SetTimer(workTimer, c.work)
		}
	}
	return c, out
}

func (c coordinator) read(l letter, out *sim.Output) coordinator {
	switch l.message {
	case messageRequest:
		c.queue = append(slices.Clone(c.queue), l.from)
	case messageRelease:
		if c.holder == l.from {
			c.holder = sim.None
		}
	}
	if c.holder == sim.None && len(c.queue) > 0 {
		c.holder, c.queue = c.queue[0], slices.Clone(c.queue[1:])
		out.Send(c.holder, messageGrant)
	}
	return c
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
