package consensus

import (
	"reflect"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/grid"
)

// raft sends each follower its heartbeats from a goroutine of its own, at random intervals of a tenth to a
// fifth of the timeout. A leader without anything to do is woken for each of them by itself: thirteen times
// a second in an ensemble of three. So a leader asks raft for heartbeats to all followers at once, in step with
// what else the server looks after (internal/grid), and raft's own become rare. They are what is left when it
// does not come to ask.
//
// Followers hear of their leader about as often as before, and wait for it as long. Rare are raft's own
// heartbeats only while this server leads and is connected to all others: a failed one is tried again
// within half of raft's timeout (its heartbeat), and nobody is to wait longer for the leader when they are back. And
// only while raft hears us: its main loop may wait for the disk, or for the state machine, and then sends nothing.

const (
	// beatsATimeout is how many heartbeats a follower gets in an election timeout.
	beatsATimeout = 4
	// spareFactor is how much rarer raft's own heartbeats become: their shortest interval is a tenth of the timeout,
	// and they must not come between two of ours, which are up to three eighths of it apart (grid.Until).
	spareFactor = 4
)

// beat has heartbeats sent until the reign ends.
func (r *reign) beat() {
	n := r.node
	if n.cfg.standalone() {
		return
	}
	defer n.spare(false)
	period := n.cfg.ElectionTimeout / beatsATimeout
	timer := time.NewTimer(grid.Until(period))
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
			timer.Reset(grid.Until(period))
			heard := unheard(n.raft) == 0
			n.spare(heard && n.raft.State() == raft.Leader && n.whole())
			if heard {
				n.raft.VerifyLeader() // sends heartbeats; nobody needs its answer
			}
		}
	}
}

// verifyCh is where raft keeps what its main loop was asked by VerifyLeader, until it comes to it, and has room for 64.
var verifyCh, _ = reflect.TypeFor[raft.Raft]().FieldByName("verifyCh")

// unheard is how often raft was asked and has not come to it yet. raft tells nobody, so this looks at the length of
// its channel. Were it asked all the same, the channel would be full when its main loop is held up for long, and no
// heartbeats would go out: whoever delivers a follower's answer waits for room, and holds a lock that the others want.
func unheard(r *raft.Raft) int { return reflect.ValueOf(r).Elem().FieldByIndex(verifyCh.Index).Len() }

// whole reports whether all other servers of the ensemble are connected to this one, which leads.
func (n *Node) whole() bool {
	configured := n.configured()
	voting, others := n.streams.count(configured)
	return voting+others >= len(configured)-1
}

// spare makes raft's own heartbeats rare, except during a transfer of leadership, or else as frequent as they are
// by default.
func (n *Node) spare(rare bool) {
	n.sparing.Lock()
	defer n.sparing.Unlock()
	timeout := n.cfg.ElectionTimeout
	if rare && n.handingOver == 0 {
		timeout *= spareFactor
	}
	c := n.raft.ReloadableConfig()
	if c.HeartbeatTimeout == timeout {
		return
	}
	c.HeartbeatTimeout, c.ElectionTimeout = timeout, timeout
	if err := n.raft.ReloadConfig(c); err != nil {
		n.logger.Error("raft declines its timeouts", "timeout", timeout, "error", err)
	}
}

// handOver keeps raft's timeouts as they are by default until the returned function is called. raft does not let the
// election timeout be shorter than that of heartbeats, and gives a transfer of leadership, in which it refuses
// entries, an election timeout.
func (n *Node) handOver() (ended func()) {
	count := func(by int) {
		n.sparing.Lock()
		n.handingOver += by
		n.sparing.Unlock()
	}
	count(1)
	n.spare(false)
	return func() { count(-1) }
}
