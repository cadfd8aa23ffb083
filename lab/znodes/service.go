package znodes

import (
	"maps"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// service is the state of the znode service.
type service struct {
	timeout  time.Duration // of every session
	next     int
	znodes   []Znode
	watchers map[int][]Session
	sessions map[string]sessionState
}

type sessionState struct {
	session Session
	gone    bool
	last    Reply // answer to the latest request
}

// NewService returns the service's first state. timeout is the time after which
// a session that was not heard of expires.
func NewService(timeout time.Duration) sim.Node {
	return service{timeout: timeout, watchers: map[int][]Session{},
		sessions: map[string]sessionState{}}
}

// Step implements sim.Node.
func (s service) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Deliver:
		switch m := e.Message.(type) {
		case Request:
			if s.alive(m.Session, &out) {
				s = s.request(m, &out)
			}
		case pulse:
			if s.alive(m.session, &out) {
				s = s.touch(m.session, &out)
				out.Send(m.session.ID, pulse{m.session, pong})
			}
		}
	case sim.Timeout:
		s = s.expire(s.sessions[e.Name].session, &out)
	}
	return s, out
}

// alive reports whether the session has not expired, and informs the client if it has.
func (s service) alive(session Session, out *sim.Output) bool {
	if s.sessions[session.String()].gone {
		out.Send(session.ID, pulse{session, expired})
		return false
	}
	return true
}

func (s service) touch(session Session, out *sim.Output) service {
	key := session.String()
	if _, known := s.sessions[key]; !known {
		s.sessions = maps.Clone(s.sessions)
		s.sessions[key] = sessionState{session: session}
	}
	out.SetTimer(key, s.timeout)
	return s
}

func (s service) request(r Request, out *sim.Output) service {
	s = s.touch(r.Session, out)
	key := r.Session.String()
	state := s.sessions[key]
	if r.Number <= state.last.Number {
		if r.Number == state.last.Number {
			out.Send(r.Session.ID, state.last)
		}
		return s
	}
	reply := Reply{Session: r.Session, Number: r.Number, Op: r.Op, Sequence: r.Sequence}
	switch r.Op {
	case Create:
		reply.Sequence = s.next
		s.znodes = append(slices.Clone(s.znodes), Znode{s.next, r.Session})
		s.next++
	case Children:
		list := s.znodes // never changed in place
		reply.list = &list
	case Exists:
		if reply.Found = s.find(r.Sequence) >= 0; reply.Found {
			s.watchers = maps.Clone(s.watchers)
			s.watchers[r.Sequence] = append(slices.Clone(s.watchers[r.Sequence]), r.Session)
		}
	}
	state.last = reply
	s.sessions = maps.Clone(s.sessions)
	s.sessions[key] = state
	out.Send(r.Session.ID, reply)
	if r.Op == Delete {
		s = s.remove(r.Sequence, out)
	}
	return s
}

func (s service) find(sequence int) int {
	return slices.IndexFunc(s.znodes, func(z Znode) bool { return z.Sequence == sequence })
}

// remove deletes a znode and fires the watches on it.
func (s service) remove(sequence int, out *sim.Output) service {
	at := s.find(sequence)
	if at < 0 {
		return s
	}
	s.znodes = slices.Delete(slices.Clone(s.znodes), at, at+1)
	watchers := s.watchers[sequence]
	s.watchers = maps.Clone(s.watchers)
	delete(s.watchers, sequence)
	for _, w := range watchers {
		if !s.sessions[w.String()].gone {
			out.Send(w.ID, WatchEvent{w, sequence})
		}
	}
	return s
}

func (s service) expire(session Session, out *sim.Output) service {
	key := session.String()
	state := s.sessions[key]
	state.gone = true
	s.sessions = maps.Clone(s.sessions)
	s.sessions[key] = state
	for _, z := range s.znodes {
		if z.Owner == session {
			s = s.remove(z.Sequence, out)
		}
	}
	return s
}
