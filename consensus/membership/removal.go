package membership

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// A server that is removed while it runs gets the entry that removes it at most as one of its log, and never hears
// that it is committed: the leader sends it nothing more. One that was removed while it was down hears nothing at
// all. So a server that has no leader, or does not find itself in the newest configuration of its log, asks the
// others. One that finds so as it starts, and has a join secret, lets itself in again: it is back with its old data.

// removalRemind is the time between two log lines about not being let in.
const removalRemind = 5 * time.Second

// watchRemoval waits until this server is no longer a member.
func (e *Ensemble) watchRemoval() {
	tick := time.NewTicker(e.cfg.ElectionTimeout / 4)
	defer tick.Stop()
	starting := e.cfg.Keys.HasSecret()
	var warned time.Time
	for {
		select {
		case <-e.cfg.Context.Done():
			return
		case <-tick.C:
		}
		if e.cfg.Leadership.Now().Leader != state.NoServer {
			starting = false
			if e.suffrage(e.cfg.Self) != NotMember {
				continue
			}
		}
		by, newest := e.newestReply()
		removed := newest.out()
		// One that has been let in halfway: a leader that was lost meanwhile has added the server, and not its key.
		unbound := newest.ShownKey != nil && newest.Keys == nil
		switch {
		case by == state.NoServer || !removed && !(starting && unbound):
			continue
		case starting:
			reply, err := e.Join(by, false)
			if err == nil {
				continue
			}
			if !removed || !refusedForGood(&reply, err) {
				if time.Since(warned) >= removalRemind {
					warned = time.Now()
					e.cfg.Logger.Warn("this server was removed, and is not let in again yet; it goes on asking",
						"server", by, "error", err)
				}
				continue
			}
			e.cfg.Logger.Warn("this server was removed, and is not let in again", "server", by, "error", err)
		}
		e.cfg.Removed(fmt.Sprintf("server %d was removed from the ensemble: server %d says that it is not in the "+
			"configuration as of entry %d; stop it, or to take it back, empty its data directories but for "+
			"myid, and add it again", e.cfg.Self, by, newest.Applied))
		return
	}
}

// refusedForGood reports that a server that has been asked to let this one in knows that it may not. One that believes
// the proof has no leader, or does not know the outcome of the request yet.
func refusedForGood(reply *Reply, err error) bool {
	return reply.Refused(err) && !reply.Proved && !reply.NotLeader
}

// out reports that the server that asked is not a member, and is not about to be one.
func (r *Reply) out() bool { return r.Removed && r.Suffrage == NotMember }

// newestReply asks the others whether this server is still a member. The one that has applied most is right, if that
// is not less than what was applied here. Where this server's own log has it as a member, that one must have applied as
// much as is in this log: after a start of all, what was applied is a snapshot's, and a server that was out of the
// ensemble then may have come back since. It must have applied as much as leaders have in their logs, too: the last
// entry that this server heard of may be the one that takes it in again.
func (e *Ensemble) newestReply() (by state.ServerID, newest Reply) {
	if len(e.configured()) == 0 {
		return state.NoServer, Reply{} // this server has not been added yet
	}
	atLeast := max(e.cfg.Applied.Index.Load(), e.cfg.Transport.LeaderLog())
	if e.suffrage(e.cfg.Self) != NotMember {
		atLeast = max(atLeast, e.raft.Load().LastIndex())
	}
	return newestOf(e.askOthers(Request{Op: RequestWho}), atLeast)
}

// newestOf returns the reply of the server that has applied most, at least atLeast, and of these of the one with the
// longest log; NoServer: none has. That server's log must not take the other in again: one that joins may have caught
// up no further than with its own removal.
func newestOf(replies map[state.ServerID]Reply, atLeast uint64) (by state.ServerID, newest Reply) {
	by, newest = state.NoServer, Reply{Applied: atLeast}
	for id, reply := range replies {
		further := cmp.Or(cmp.Compare(reply.Applied, newest.Applied), cmp.Compare(reply.Last, newest.Last))
		if reply.Ensemble != "" && further >= 0 {
			by, newest = id, reply
		}
	}
	return by, newest
}
