package consensus

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// Status returns this server's place in the ensemble.
func (n *Node) Status() Status {
	s := Status{
		Role: RoleNone, Leader: state.NoServer, Contact: membership.NoContact,
		Pending: n.queue.Len(), DiskFault: n.disk.Fault(), Waiting: n.ensemble.Waiting(),
	}
	if id := n.identity.Load(); id != nil {
		s.Ensemble = id.Ensemble
	}
	if fault := n.snapshots.fault.Load(); fault != nil {
		s.SnapshotFault = *fault
	}
	if lost := n.check.lost.Load(); lost != nil {
		s.DataLost = *lost
	}
	if alarm := n.check.alarm.Load(); alarm != nil {
		s.Alarm = *alarm
	}
	if s.Halt = n.halted.Load(); s.Halt != nil {
		s.AppliedIndex = n.applied.Load()
		return s
	}
	select {
	case <-n.ready:
	default:
		for _, x := range n.cfg.Servers {
			if x.Voter {
				s.Voters++
			}
		}
		return s
	}
	voters := n.ensemble.Voters()
	l, _ := n.published.now()
	_, s.LeaderChanged = n.published.changes()
	s.Election = n.elections.get()
	s.Leader, s.Term, s.Voters = l.leader, l.term, len(voters)
	s.LastIndex, s.AppliedIndex = n.raft.LastIndex(), n.applied.Load()
	if t := n.forwarder.Contact(); t > 0 {
		s.Contact = max(time.Duration(n.now()-t), n.disk.UnwritableFor())
	}
	switch {
	case l.role == raft.Leader:
		s.Role, s.Contact = RoleLeader, n.disk.UnwritableFor()
		if n.cfg.standalone() && len(voters) == 1 {
			s.Role = RoleStandalone
		}
		s.Followers, s.Observers = n.forwarder.Streams.Count(voters)
	case s.Leader == state.NoServer:
	case voters[n.cfg.ID]:
		s.Role = RoleFollower
	default:
		s.Role = RoleObserver
	}
	return s
}
