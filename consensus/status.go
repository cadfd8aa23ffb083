package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// streams are the other servers whose streams are connected here.
type streams struct {
	mu    sync.Mutex // protects the fields below
	open  map[state.ServerID]*mux.Conn
	heard map[state.ServerID]time.Time // also of those that have gone
}

func (s *streams) enter(id state.ServerID, c *mux.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.heard = map[state.ServerID]*mux.Conn{}, map[state.ServerID]time.Time{}
	}
	s.open[id], s.heard[id] = c, time.Now()
}

// hear notes that something came on a server's stream.
func (s *streams) hear(id state.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[id] = time.Now()
}

// contact says whether a server's stream is connected, and when something last came on
// one; the zero Time if nothing ever has.
func (s *streams) contact(id state.ServerID) (open bool, heard time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id] != nil, s.heard[id]
}

func (s *streams) leave(id state.ServerID, c *mux.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == c {
		delete(s.open, id)
	}
}

// count counts the connected servers that vote and those that do not.
func (s *streams) count(voters map[state.ServerID]bool) (voting, others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		if voters[id] {
			voting++
		} else {
			others++
		}
	}
	return voting, others
}

// leads reports whether this server leads for all that it knows. raft calls a
// server leader as long as its main loop waits for the disk, however long the
// others have had another one.
func (n *Node) leads() bool {
	return n.raft.State() == raft.Leader && n.disk.waiting() < n.cfg.ElectionTimeout
}

// Status says how this server stands in the ensemble.
func (n *Node) Status() Status {
	s := Status{Role: RoleNone, Contact: NoContact, Pending: n.forward.len(), DiskFault: n.disk.fault()}
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
	voters := n.voters()
	_, leader := n.raft.LeaderWithID()
	s.Leader = state.ServerID(transport.ParseRaftID(leader))
	s.Term, s.Voters = n.raft.CurrentTerm(), len(voters)
	s.LastIndex, s.AppliedIndex = n.raft.LastIndex(), n.applied.Load()
	if t := n.contact.Load(); t > 0 {
		s.Contact = max(time.Duration(n.now()-t), n.disk.useless())
	}
	switch {
	case n.raft.State() == raft.Leader:
		s.Role, s.Contact = RoleLeader, n.disk.useless()
		if n.cfg.standalone() && len(voters) == 1 {
			s.Role = RoleStandalone
		}
		s.Followers, s.Observers = n.streams.count(voters)
	case s.Leader == 0:
	case voters[n.cfg.ID]:
		s.Role = RoleFollower
	default:
		s.Role = RoleObserver
	}
	return s
}

func (n *Node) voters() map[state.ServerID]bool {
	voters := n.configured()
	for id, v := range voters {
		if !v {
			delete(voters, id)
		}
	}
	return voters
}
