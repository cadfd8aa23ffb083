package election

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/znodes"
)

// ZooKeeper's election recipe ("ZooKeeper Recipes and Solutions", Apache
// ZooKeeper documentation; P. Hunt et al., USENIX ATC 2010, section 2.4): every
// candidate creates an ephemeral sequential znode and the lowest one leads. In
// the herd form all others watch the leader's znode, so its end wakes them all;
// in the other form each watches the next lower one, so it wakes one.

type zookeeperNode struct {
	client  znodes.Client
	herd    bool
	mine    int  // sequence of the own znode, -1 before it exists
	watched int  // sequence of the znode watched, -1 for none
	set     bool // the watch is known to be set
	leader  sim.ID
}

// Show implements sim.Shower.
func (z zookeeperNode) Show() []sim.Variable {
	return []sim.Variable{{Name: "leader", Value: elected(z.leader)}, {Name: "znode", Value: znode(z.mine)},
		{Name: "watches", Value: znode(z.watched)}, {Name: "connected", Value: yesNo(z.client.Connected())}}
}

func znode(sequence int) string {
	if sequence < 0 {
		return "-"
	}
	return fmt.Sprintf("n_%d", sequence)
}

// Step implements sim.Node.
func (z zookeeperNode) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch event.(type) {
	case sim.Start, sim.Recover:
		z = z.enrol(z.client.Open(&out), &out)
		return z, out
	}
	var notice znodes.Notice
	z.client, notice = z.client.Handle(event, &out)
	switch n := notice.(type) {
	case znodes.Reply:
		z = z.reply(n, &out)
	case znodes.WatchEvent:
		if n.Sequence == z.watched {
			z.watched = -1
			z = z.hold(sim.None, &out)
			z.client = z.client.Call(znodes.Children, 0, &out)
		}
	case znodes.Disconnected:
		z = z.hold(sim.None, &out)
	case znodes.Reconnected:
		if z.mine >= 0 {
			z.watched = -1
			z.client = z.client.Call(znodes.Children, 0, &out)
		}
	case znodes.Expired:
		z = z.enrol(z.client, &out)
	}
	return z, out
}

// enrol asks for a znode in a new session.
func (z zookeeperNode) enrol(c znodes.Client, out *sim.Output) zookeeperNode {
	z.mine, z.watched = -1, -1
	z = z.hold(sim.None, out)
	z.client = c.Call(znodes.Create, 0, out)
	return z
}

func (z zookeeperNode) reply(r znodes.Reply, out *sim.Output) zookeeperNode {
	switch r.Op {
	case znodes.Create:
		z.mine = r.Sequence
		z.client = z.client.Call(znodes.Children, 0, out)
	case znodes.Children:
		z = z.place(r.List(), out)
	case znodes.Exists:
		z.set = r.Found
		if !r.Found {
			z.watched = -1
			z.client = z.client.Call(znodes.Children, 0, out)
		}
	}
	return z
}

// place reads off the children whether this process leads, and if not, watches.
func (z zookeeperNode) place(list []znodes.Znode, out *sim.Output) zookeeperNode {
	at := slices.IndexFunc(list, func(n znodes.Znode) bool { return n.Sequence == z.mine })
	if at < 0 {
		return z // the session has expired; the service is about to report that
	}
	if at == 0 {
		return z.hold(z.client.Session().ID, out)
	}
	target := at - 1
	if z.herd {
		target = 0
	}
	if z.herd || at == 1 {
		leader := list[0].Owner.ID
		if leader == z.client.Session().ID {
			leader = sim.None // a znode of the life before the crash, soon to expire
		}
		z = z.hold(leader, out)
	}
	z.watched, z.set = list[target].Sequence, false
	z.client = z.client.Call(znodes.Exists, z.watched, out)
	return z
}

func (z zookeeperNode) hold(leader sim.ID, out *sim.Output) zookeeperNode {
	if z.leader != leader {
		z.leader = leader
		out.Note(FactLeader, leader, 0)
	}
	return z
}

// inLine reports whether the process leads or watches another.
func (z zookeeperNode) inLine() bool {
	return z.client.Connected() && (z.leader == z.client.Session().ID || z.watched >= 0 && z.set)
}

// sessionTimeout of the simulated sessions, in message times: twice the six that the client
// half needs, so that a slow but intact network expires no session.
const sessionTimeout = 12

func buildZooKeeper(herd bool) func(setup, sim.ID, int) sim.Node {
	return func(s setup, id sim.ID, _ int) sim.Node {
		return zookeeperNode{client: znodes.NewClient(id, s.timing.bound,
			sessionTimeout*s.timing.bound), herd: herd, mine: -1, watched: -1, leader: sim.None}
	}
}
