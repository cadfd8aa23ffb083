package election

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Majority vote with terms, as in Raft (D. Ongaro and J. Ousterhout, "In Search of an
// Understandable Consensus Algorithm", USENIX ATC 2014, section 5.2) and, with a master lease,
// in Chubby (M. Burrows, OSDI 2006, section 2.1). A process votes once per term; a majority
// elects; two majorities share a process, so no term has two leaders. There is no log here:
// every process is electable.

type voteMessage struct {
	kind    string
	term    int
	granted bool
}

func (m voteMessage) Type() string { return m.kind }
func (m voteMessage) String() string {
	if m.kind == majorityVote && !m.granted {
		return fmt.Sprintf("refusal, term %d", m.term)
	}
	return fmt.Sprintf("%s, term %d", m.kind, m.term)
}

// beatMessage keeps a leader in office: it never ends, so it is Background.
type beatMessage struct{ voteMessage }

// Background implements sim.Background.
func (beatMessage) Background() {}

const (
	majorityRequest   = "request-vote"
	majorityVote      = "vote"
	majorityHeartbeat = "heartbeat"
	majorityAck       = "ack"
)

type role uint8

const (
	follower role = iota
	candidate
	leading
)

// majority is the state of one process. On disk: term and votedFor, without
// which a recovered process could vote twice in a term.
type majority struct {
	self     sim.ID
	peers    []sim.ID
	patience time.Duration // least election timeout
	spread   time.Duration // added uniformly at random
	random   sim.Random
	term     int
	votedFor sim.ID
	role     role
	votes    []sim.ID // processes that granted a vote, or acknowledged since the last check
	leader   sim.ID
}

// Show implements sim.Shower.
func (m majority) Show() []sim.Variable {
	role := [...]string{"follower", "candidate", "leader"}[m.role]
	return []sim.Variable{{Name: "elected", Value: elected(m.leader)}, {Name: "role", Value: role},
		{Name: "term", Value: fmt.Sprint(m.term)}, {Name: "voted for", Value: elected(m.votedFor)},
		{Name: "votes", Value: list(m.votes)}}
}

// Step implements sim.Node.
func (m majority) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start:
		m = m.wait(&out)
	case sim.Recover:
		m = m.follow(m.term, sim.None, &out)
		m = m.wait(&out)
	case Elect:
		m = m.stand(&out)
	case sim.Timeout:
		m = m.timeout(e.Name, &out)
	case sim.Deliver:
		switch v := e.Message.(type) {
		case voteMessage:
			m = m.receive(e.From, v, &out)
		case beatMessage:
			m = m.beat(e.From, v, &out)
		}
	}
	return m, out
}

func (m majority) quorum() int { return len(m.peers)/2 + 1 }

// wait arms the randomised election timeout.
func (m majority) wait(out *sim.Output) majority {
	var extra int64
	extra, m.random = m.random.Next(int64(m.spread/time.Microsecond) + 1)
	out.SetTimer("election", m.patience+time.Duration(extra)*time.Microsecond)
	return m
}

// follow moves to a term as a follower of leader, which may be None.
func (m majority) follow(term int, leader sim.ID, out *sim.Output) majority {
	if term > m.term {
		m.term, m.votedFor = term, sim.None
	}
	if m.role == leading {
		out.CancelTimer("beat")
		out.CancelTimer("lease")
	}
	m.role, m.votes = follower, nil
	return m.hold(leader, out)
}

func (m majority) stand(out *sim.Output) majority {
	m = m.follow(m.term+1, sim.None, out)
	m.role, m.votedFor, m.votes = candidate, m.self, []sim.ID{m.self}
	for _, id := range m.peers {
		if id != m.self {
			out.Send(id, voteMessage{kind: majorityRequest, term: m.term})
		}
	}
	m = m.wait(out)
	return m.count(out)
}

func (m majority) count(out *sim.Output) majority {
	if m.role != candidate || len(m.votes) < m.quorum() {
		return m
	}
	m.role, m.votes = leading, []sim.ID{m.self}
	out.CancelTimer("election")
	m = m.hold(m.self, out)
	out.SetTimer("lease", m.patience)
	return m.sendBeats(out)
}

func (m majority) sendBeats(out *sim.Output) majority {
	for _, id := range m.peers {
		if id != m.self {
			out.Send(id, beatMessage{voteMessage{kind: majorityHeartbeat, term: m.term}})
		}
	}
	out.SetTimer("beat", m.patience/4)
	return m
}

func (m majority) timeout(name string, out *sim.Output) majority {
	switch name {
	case "election":
		return m.stand(out)
	case "beat":
		return m.sendBeats(out)
	default: // the lease: a leader that a majority no longer answers steps down
		if len(m.votes) < m.quorum() {
			m = m.follow(m.term, sim.None, out)
			return m.wait(out)
		}
		m.votes = []sim.ID{m.self}
		out.SetTimer("lease", m.patience)
		return m
	}
}

func (m majority) receive(from sim.ID, v voteMessage, out *sim.Output) majority {
	if v.term > m.term {
		wasLeading := m.role == leading
		m = m.follow(v.term, sim.None, out)
		if wasLeading {
			m = m.wait(out)
		}
	}
	if v.kind == majorityRequest {
		grant := v.term == m.term && m.role == follower &&
			(m.votedFor == sim.None || m.votedFor == from)
		if grant {
			m.votedFor = from
			m = m.wait(out)
		}
		out.Send(from, voteMessage{kind: majorityVote, term: m.term, granted: grant})
		return m
	}
	if v.granted && v.term == m.term && m.role == candidate {
		m.votes = with(m.votes, from)
		return m.count(out)
	}
	return m
}

func (m majority) beat(from sim.ID, v beatMessage, out *sim.Output) majority {
	if v.term > m.term || v.term == m.term && v.kind == majorityHeartbeat {
		leader := from
		if v.kind == majorityAck {
			leader = sim.None
		}
		m = m.follow(v.term, leader, out)
		m = m.wait(out)
	}
	if v.kind == majorityHeartbeat {
		out.Send(from, beatMessage{voteMessage{kind: majorityAck, term: m.term}})
	} else if v.term == m.term && m.role == leading {
		m.votes = with(m.votes, from)
	}
	return m
}

func (m majority) hold(leader sim.ID, out *sim.Output) majority {
	if m.leader != leader {
		m.leader = leader
		out.Note(FactLeader, leader, m.term)
	}
	return m
}
