package consensus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// controlSurvey is a request of controlRequest.Op: the leader says how all stand.
const controlSurvey = "survey"

// surveyPatience is how long the leader waits for the other servers' answers. Who is
// not there in it is not connected, as far as an operator is concerned: it is much
// longer than an answer takes, and shorter than people wait.
const surveyPatience = 1500 * time.Millisecond

// EnsembleStatus is the ensemble as its leader sees it.
type EnsembleStatus struct {
	Leader       state.ServerID `json:"leader"`
	Term         uint64         `json:"term"`
	LastIndex    uint64         `json:"last"`    // in the leader's log
	AppliedIndex uint64         `json:"applied"` // by the leader
	Voters       int            `json:"voters"`
	Connected    int            `json:"connected"` // voters, with the leader
	// Members is every server of the configuration, the leader too.
	Members []MemberStatus `json:"members"`
}

// Survives is how many of the voters that are connected may fail without the loss of
// the majority.
func (s *EnsembleStatus) Survives() int { return max(s.Connected-(s.Voters/2+1), 0) }

// MemberStatus is how the leader knows a server.
type MemberStatus struct {
	ID    state.ServerID `json:"id"`
	Voter bool           `json:"voter"`
	// Connected says that the server keeps a stream to the leader, and has answered
	// when it was asked.
	Connected bool `json:"connected"`
	// LastIndex and AppliedIndex are its own words; both are 0 if it is not connected.
	LastIndex    uint64 `json:"last"`
	AppliedIndex uint64 `json:"applied"`
	// Contact is how long ago the leader has last got something on its stream;
	// NoContact if it never has.
	Contact time.Duration `json:"contact"`
}

// Lag is how many entries the server has not applied that the leader has.
func (s *EnsembleStatus) Lag(m *MemberStatus) uint64 {
	if m.AppliedIndex >= s.AppliedIndex {
		return 0
	}
	return s.AppliedIndex - m.AppliedIndex
}

// EnsembleStatus asks the leader for the status of all servers. Any server can be asked. It takes as
// long as the slowest server that is connected needs for an answer, and at most
// about two seconds if there is a leader.
//
// Errors: ctx's, when no leader has answered until then; ErrStopped.
func (n *Node) EnsembleStatus(ctx context.Context) (EnsembleStatus, error) {
	for wait := redialMin; ; wait = min(2*wait, redialMax) {
		s, err := n.askSurvey(ctx)
		if err == nil {
			return *s, nil
		}
		select {
		case <-ctx.Done():
			return EnsembleStatus{}, fmt.Errorf("asking the leader for the ensemble's status: %w: %w", ctx.Err(), err)
		case <-n.ctx.Done():
			return EnsembleStatus{}, ErrStopped
		case <-time.After(wait):
		}
	}
}

func (n *Node) askSurvey(ctx context.Context) (*EnsembleStatus, error) {
	leader := n.leader()
	switch leader {
	case 0:
		return nil, errNotLeader
	case n.cfg.ID:
		return n.survey()
	}
	reply, err := n.askIn(ctx, leader, controlRequest{Op: controlSurvey})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotLeader, err)
	case reply.Survey == nil:
		return nil, fmt.Errorf("%w: server %d does not know how all stand", errNotLeader, leader)
	}
	return reply.Survey, nil
}

// survey asks all servers at once. Only the leader can.
func (n *Node) survey() (*EnsembleStatus, error) {
	if n.raft.State() != raft.Leader {
		return nil, errNotLeader
	}
	s := &EnsembleStatus{
		Leader: n.cfg.ID, Term: n.raft.CurrentTerm(),
		LastIndex: n.raft.LastIndex(), AppliedIndex: n.applied.Load(),
	}
	for id, voter := range n.configured() {
		m := MemberStatus{ID: id, Voter: voter, Contact: NoContact}
		if id == n.cfg.ID {
			m.Connected, m.Contact = true, 0
			m.LastIndex, m.AppliedIndex = s.LastIndex, s.AppliedIndex
		}
		s.Members = append(s.Members, m)
	}
	ctx, cancel := context.WithTimeout(n.ctx, surveyPatience)
	defer cancel()
	var asking sync.WaitGroup
	for i := range s.Members {
		if m := &s.Members[i]; m.ID != n.cfg.ID {
			asking.Go(func() { n.surveyOne(ctx, m) })
		}
	}
	asking.Wait()
	for i := range s.Members {
		m := &s.Members[i]
		if m.Voter {
			s.Voters++
			if m.Connected {
				s.Connected++
			}
		}
	}
	if n.raft.State() != raft.Leader {
		return nil, errNotLeader // what it has seen may be of a minority
	}
	return s, nil
}

func (n *Node) surveyOne(ctx context.Context, m *MemberStatus) {
	open, heard := n.streams.contact(m.ID)
	if !heard.IsZero() {
		m.Contact = time.Since(heard)
	}
	if !open {
		return
	}
	reply, err := n.askIn(ctx, m.ID, controlRequest{Op: "who"})
	if err != nil {
		return
	}
	m.Connected, m.LastIndex, m.AppliedIndex = true, reply.Last, reply.Applied
}
