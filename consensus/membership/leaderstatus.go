package membership

import (
	"context"
	"sync"
	"time"
)

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
		LastIndex: r.LastIndex(), AppliedIndex: l.cfg.Applied.Index(),
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
