package mutex

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// ZooKeeper's lock recipe without herd effect (P. Hunt et al., USENIX ATC 2010,
// section 2.4): create an ephemeral sequential znode; the lowest holds the lock,
// every other waits for the next lower one to go; deleting the znode releases.

// sessionTimeout of the simulated sessions, in message times.
const sessionTimeout = 12

type zookeeperLock struct {
	section
	client  znodes.Client
	mine    int // sequence of the own znode, -1 for none
	watched int // sequence of the znode watched, -1 for none
}

// Show implements sim.Shower.
func (z zookeeperLock) Show() []sim.Variable {
	return append(z.section.Show(), sim.Variable{Name: "znode", Value: znode(z.mine)},
		sim.Variable{Name: "watches", Value: znode(z.watched)})
}

func znode(sequence int) string {
	if sequence < 0 {
		return "-"
	}
	return fmt.Sprintf("n_%d", sequence)
}

// Step implements sim.Node.
func (z zookeeperLock) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start, sim.Recover:
		z.phase, z.mine, z.watched = outside, -1, -1
		z.client = z.client.Open(&out)
		return z, out
	case Request:
		if z.want(&out) && !z.client.Waiting() {
			z.client = z.client.Call(znodes.Create, 0, &out)
		}
		return z, out
	case sim.Timeout:
		if e.Name == leaveTimer {
			z.exit(&out)
			z.client = z.client.Call(znodes.Delete, z.mine, &out)
			z.mine = -1
			return z, out
		}
	}
	var notice znodes.Notice
	z.client, notice = z.client.Handle(event, &out)
	z.notice(notice, &out)
	return z, out
}

func (z *zookeeperLock) notice(notice znodes.Notice, out *sim.Output) {
	switch n := notice.(type) {
	case znodes.Reply:
		z.reply(n, out)
	case znodes.WatchEvent:
		if n.Sequence == z.watched {
			z.look(out)
		}
	case znodes.Disconnected:
		// The holder of the lock must stop acting on it before the session expires.
		if z.phase == inside {
			z.exit(out)
			z.client = z.client.Call(znodes.Delete, z.mine, out)
			z.mine = -1
		}
	case znodes.Reconnected:
		if z.phase == wanting && z.mine >= 0 {
			z.look(out)
		}
	case znodes.Expired:
		z.mine, z.watched = -1, -1
		if z.phase == wanting {
			z.client = z.client.Call(znodes.Create, 0, out)
		}
	}
}

func (z *zookeeperLock) look(out *sim.Output) {
	z.watched = -1
	z.client = z.client.Call(znodes.Children, 0, out)
}

func (z *zookeeperLock) reply(r znodes.Reply, out *sim.Output) {
	if z.phase != wanting {
		return
	}
	switch r.Op {
	case znodes.Delete: // the former turn is over for the service too
		z.client = z.client.Call(znodes.Create, 0, out)
	case znodes.Create:
		z.mine = r.Sequence
		z.look(out)
	case znodes.Children:
		at := slices.IndexFunc(r.List(), func(n znodes.Znode) bool { return n.Sequence == z.mine })
		if at == 0 {
			z.enter(out)
		} else if at > 0 {
			z.watched = r.List()[at-1].Sequence
			z.client = z.client.Call(znodes.Exists, z.watched, out)
		}
	case znodes.Exists:
		if !r.Found {
			z.look(out)
		}
	}
}
