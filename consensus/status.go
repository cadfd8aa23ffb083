package consensus

import (
	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// Status returns this server's place in the ensemble.
func (n *Node) Status() Status {
	s := Status{
		Role: RoleNone, Leader: state.NoServer, Contact: membership.NoContact,
		Pending: n.queue.Len(), DiskFault: n.disk.Fault(), Waiting: n.founder.Waiting(),
	}
	if id := n.ensemble.Identity(); id != nil {
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
		s.AppliedIndex = n.applied.Index()
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
	now := n.leadership.Now()
	_, s.LeaderChanged = n.leadership.Changes()
	s.Election = n.leadership.Elections.Newest()
	s.Leader, s.Term, s.Voters = now.Leader, now.Term, len(voters)
	s.LastIndex, s.AppliedIndex = n.raft.LastIndex(), n.applied.Index()
	if ago, ever := n.forwarder.Contact(); ever {
		s.Contact = max(ago, n.disk.UnwritableFor())
	}
	switch {
	case now.Role == leadership.Leader:
		s.Role, s.Contact = RoleLeader, n.disk.UnwritableFor()
		if n.cfg.standalone() && len(voters) == 1 {
			s.Role = RoleStandalone
		}
		s.Followers, s.Observers = n.streams.Count(voters)
	case s.Leader == state.NoServer:
	case voters[n.cfg.ID]:
		s.Role = RoleFollower
	default:
		s.Role = RoleObserver
	}
	return s
}
