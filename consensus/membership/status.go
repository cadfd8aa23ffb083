package membership

import (
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
