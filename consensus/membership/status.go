package membership

import (
	"context"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// NoContact is a Contact of "never".
const NoContact = time.Duration(1<<63 - 1)

// Status is the ensemble as its leader sees it.
type Status struct {
	Leader       state.ServerID `json:"leader"`
	Term         uint64         `json:"term"`
	LastIndex    uint64         `json:"last"`    // in the leader's log
	AppliedIndex uint64         `json:"applied"` // by the leader
	Voters       int            `json:"voters"`
	Connected    int            `json:"connected"` // voters, with the leader
	// Members is every server of the configuration, the leader too.
	Members []MemberStatus `json:"members"`
}

// FailuresToleratedNow is how many of the voters that are connected may fail without the loss of
// the majority.
func (s *Status) FailuresToleratedNow() int { return max(s.Connected-(s.Voters/2+1), 0) }

// MemberStatus is a server as the leader sees it.
type MemberStatus struct {
	ID    state.ServerID `json:"id"`
	Voter bool           `json:"voter"`
	// Connected is set if the server keeps a stream to the leader, and has answered
	// when it was asked.
	Connected bool `json:"connected"`
	// LastIndex and AppliedIndex are as it has answered; both are 0 if it is not connected.
	LastIndex    uint64 `json:"last"`
	AppliedIndex uint64 `json:"applied"`
	// Contact is how long ago the leader has last got something on its stream;
	// NoContact if it never has.
	Contact time.Duration `json:"contact"`
	// Plan is what the leader will do with the server by itself; nil: nothing.
	Plan *Plan `json:"plan,omitempty"`
}

// Lag is how many entries the server has not applied that the leader has.
func (s *Status) Lag(m *MemberStatus) uint64 {
	if m.AppliedIndex >= s.AppliedIndex {
		return 0
	}
	return s.AppliedIndex - m.AppliedIndex
}

// statusTimeout is how long the leader waits for the other servers' answers. A server that
// has not answered by then is not connected, as far as an operator is concerned: it is much
// longer than an answer takes, and shorter than people wait.
const statusTimeout = 1500 * time.Millisecond

// statusAsLeader asks all servers at once.
func (l *leader) statusAsLeader() (*Status, error) {
	r, err := l.leads()
	if err != nil {
		return nil, err
	}
	s := &Status{
		Leader: l.cfg.Self, Term: l.cfg.Leadership.Now().Term,
		LastIndex: r.LastIndex(), AppliedIndex: l.cfg.Applied.Index.Load(),
	}
	for id, votes := range l.configuration.configured() {
		m := MemberStatus{ID: id, Voter: votes, Contact: NoContact, Plan: l.planOf(id)}
		if id == l.cfg.Self {
			m.Connected, m.Contact = true, 0
			m.LastIndex, m.AppliedIndex = s.LastIndex, s.AppliedIndex
		}
		s.Members = append(s.Members, m)
	}
	ctx, cancel := context.WithTimeout(l.cfg.Context, statusTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range s.Members {
		if m := &s.Members[i]; m.ID != l.cfg.Self {
			asking.Go(func() { l.askMember(ctx, m) })
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
	if _, err := l.leads(); err != nil {
		return nil, err // what it has seen may be of a minority
	}
	return s, nil
}

func (l *leader) askMember(ctx context.Context, m *MemberStatus) {
	open, last := l.cfg.Streams.Contact(m.ID)
	if !last.IsZero() {
		m.Contact = time.Since(last)
	}
	if !open {
		return
	}
	reply, err := l.control.Ask(ctx, m.ID, Request{Op: RequestWho})
	if err != nil {
		return
	}
	m.Connected, m.LastIndex, m.AppliedIndex = true, reply.Last, reply.Applied
}
