package mutex

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Maekawa's algorithm: M. Maekawa, "A sqrt(N) Algorithm for Mutual Exclusion in Decentralized
// Systems", ACM TOCS 3(2), 1985. A process needs the votes of its voting set only; any two sets
// meet, and a voter has one vote. In the plain form that lectures begin with, processes can
// each hold a vote that the next one waits for: a deadlock. The paper's own remedy, as
// corrected by B. Sanders ("The Information Structure of Distributed Mutual Exclusion
// Algorithms", ACM TOCS 5(3), 1987), ranks requests by timestamp: a voter that voted for the
// later of two inquires, and a process that cannot win for now relinquishes.

// kindVote and the rest are the messages beside request and release.
const (
	kindVote       = "vote"
	kindFail       = "fail"
	kindInquire    = "inquire"
	kindRelinquish = "relinquish"
)

// votingSet returns the voting set of the process at place in an n-process grid
// as wide as it is high: its row and its column, with itself. If the last row is
// short, any two sets still meet: of two processes in different rows at most one
// is in the short row, and the other's row meets its column.
func votingSet(peers []sim.ID, place int) []sim.ID {
	width := 1
	for width*width < len(peers) {
		width++
	}
	var set []sim.ID
	for i, id := range peers {
		if i/width == place/width || i%width == place%width {
			set = append(set, id)
		}
	}
	return set
}

// maekawa is the state of one process, voter and asker at once.
type maekawa struct {
	section
	self  sim.ID
	set   []sim.ID // voting set, ascending, with self; never changed
	plain bool     // without fail, inquire and relinquish
	clock int

	own       stamp
	votes     []sim.ID
	failed    bool     // a voter sent fail, or a vote was given back
	inquiries []sim.ID // voters waiting for an answer to their inquire

	given    stamp // request this voter voted for; zero for none
	inquired bool
	queue    []stamp // requests waiting for the vote; by arrival, or by stamp

	local []stamped // messages to itself, handled within the step
}

// Show implements sim.Shower.
func (m maekawa) Show() []sim.Variable {
	vote := "-"
	if m.given != (stamp{}) {
		vote = m.given.id.String()
	}
	return append(m.section.Show(), sim.Variable{Name: "clock", Value: fmt.Sprint(m.clock)},
		sim.Variable{Name: "voting set", Value: showIDs(m.set)}, sim.Variable{Name: "votes", Value: showIDs(m.votes)},
		sim.Variable{Name: "its vote", Value: vote}, sim.Variable{Name: "waiting", Value: showStamps(m.queue)})
}

func showIDs(ids []sim.ID) string {
	texts := []string{}
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// Step implements sim.Node.
func (m maekawa) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		m.phase = outside
	case Request:
		if m.want(&out) {
			m.clock++
			m.own = stamp{m.clock, m.self}
			m.votes, m.failed, m.inquiries = nil, false, nil
			m.tellSet(kindRequest, &out)
		}
	case sim.Deliver:
		m.receive(e.From, e.Message.(stamped), &out)
	case sim.Timeout:
		m.exit(&out)
		m.tellSet(kindRelease, &out)
	}
	for len(m.local) > 0 {
		next := m.local[0]
		m.local = slices.Clone(m.local[1:])
		m.receive(m.self, next, &out)
	}
	m.local = nil
	return m, out
}

func (m *maekawa) post(to sim.ID, message stamped, out *sim.Output) {
	if to == m.self {
		m.local = append(slices.Clone(m.local), message)
		return
	}
	out.Send(to, message)
}

func (m *maekawa) tellSet(kind string, out *sim.Output) {
	for _, id := range m.set {
		m.post(id, stamped{kind, m.own}, out)
	}
}

// receive handles a message; its stamp is that of the request it is about.
func (m *maekawa) receive(from sim.ID, r stamped, out *sim.Output) {
	m.clock = max(m.clock, r.stamp.clock)
	switch r.kind {
	case kindRequest:
		m.clock++
		m.consider(r.stamp, out)
	case kindRelease:
		if m.given == r.stamp {
			m.voteNext(out)
		}
	case kindRelinquish:
		if m.given == r.stamp {
			m.queue = insert(m.queue, r.stamp)
			m.voteNext(out)
		}
	default:
		if r.stamp == m.own && m.phase == wanting {
			m.answer(from, r.kind, out)
		}
	}
}

// consider is the voter's part.
func (m *maekawa) consider(r stamp, out *sim.Output) {
	switch {
	case m.given == stamp{}:
		m.give(r, out)
	case m.plain:
		m.queue = append(slices.Clone(m.queue), r)
	default:
		ahead := m.given.before(r) || len(m.queue) > 0 && m.queue[0].before(r)
		if !ahead && len(m.queue) > 0 {
			// The request that was first among the waiting no longer is.
			m.post(m.queue[0].id, stamped{kindFail, m.queue[0]}, out)
		}
		m.queue = insert(m.queue, r)
		if ahead {
			m.post(r.id, stamped{kindFail, r}, out)
		} else if !m.inquired {
			m.inquired = true
			m.post(m.given.id, stamped{kindInquire, m.given}, out)
		}
	}
}

func (m *maekawa) give(r stamp, out *sim.Output) {
	m.given, m.inquired = r, false
	m.post(r.id, stamped{kindVote, r}, out)
}

func (m *maekawa) voteNext(out *sim.Output) {
	m.given = stamp{}
	if len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = slices.Clone(m.queue[1:])
		m.give(next, out)
	}
}

// answer is the asker's part: the reaction to the voters' answers.
func (m *maekawa) answer(from sim.ID, kind string, out *sim.Output) {
	switch kind {
	case kindVote:
		m.votes = with(m.votes, from)
		if len(m.votes) == len(m.set) {
			m.inquiries = nil // the release will answer them
			m.enter(out)
			return
		}
	case kindFail:
		m.failed = true
	case kindInquire:
		m.inquiries = with(m.inquiries, from)
	}
	if m.failed {
		for _, voter := range m.inquiries {
			m.relinquish(voter, out)
		}
		m.inquiries = nil
	}
}

func (m *maekawa) relinquish(voter sim.ID, out *sim.Output) {
	at, found := slices.BinarySearch(m.votes, voter)
	if !found {
		return // a copy of an inquire answered before
	}
	m.votes = slices.Delete(slices.Clone(m.votes), at, at+1)
	m.post(voter, stamped{kindRelinquish, m.own}, out)
}
