package membership

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// A reconfiguration (state.Reconfiguration) is carried out by the leader, one change of raft's configuration after the
// other. What has been done is seen in that configuration, so the next leader goes on where the last one stopped:
//
//  1. The servers that are new are added without a vote, as for AddServer.
//  2. When a majority of those that are to vote is connected and has caught up, they get their votes. If that does not
//     come in time, what was added is removed again, and the client gets NEWCONFIGNOQUORUM.
//  3. Those that are not to vote lose their votes; a leader hands over first, to one that stays.
//  4. The log says that it is done, and /zookeeper/config changes. Those that leave hear it, and their clients.
//  5. Then they are removed (RunAutopilot).
//
// Once an old voter has lost its vote there is no way back, because it may have been needed for the old majority.

const (
	// joinTime is how long a majority of the new voters may take until it is connected, and how long the others are
	// waited for then: less than clients wait for an answer.
	joinTime = 5 * time.Second
	// catchUpTime is how long servers that are connected may take to catch up.
	catchUpTime = 2 * time.Minute
	// stuckTime is how long too few servers may be connected, after the point of no return, before a reconfiguration
	// ends as far as it has come, so that an operator can change the ensemble in another way.
	stuckTime = 10 * time.Minute
	// settleTime is how long a new leader waits for the connections of the others before it takes one for gone.
	settleTime = time.Second
)

// move is what the leader does next.
type move struct {
	kind   moveKind
	server state.ServerID
	code   znode.Error // moveUndo, moveAbort
	why    string      // moveWait, moveUndo, moveAbort
}

// String says what is done, as an operator reads it.
func (m move) String() string {
	switch m.kind {
	case moveAdd, moveLocate, movePromote, moveDemote, moveRemove, moveHandOver:
		return fmt.Sprintf("%s: server %d", m.kind, m.server)
	case moveWait:
		return "it waits for " + m.why
	}
	return string(m.kind)
}

// moveKind is a kind of move.
type moveKind string

// The moves.
const (
	moveWait     moveKind = "wait"
	moveAdd      moveKind = "add"       // without a vote
	moveLocate   moveKind = "locate"    // find it where the reconfiguration says that it is
	movePromote  moveKind = "promote"   // give it a vote
	moveDemote   moveKind = "demote"    // take its vote
	moveRemove   moveKind = "remove"    // from the configuration
	moveHandOver moveKind = "hand over" // leadership to it
	moveFinish   moveKind = "finish"
	moveUndo     moveKind = "undo" // begin to
	moveAbort    moveKind = "abort"
)

// scene is what a leader sees of a reconfiguration.
type scene struct {
	*state.Reconfiguration
	self    state.ServerID
	now     map[state.ServerID]bool // raft's latest configuration: the servers, and whether they vote
	members map[state.ServerID]state.Member
	sights  map[state.ServerID]sight // of the others in now
	waited  time.Duration            // since the last move, or since this server leads
	undo    znode.Error              // why it is being undone, as the client's result; OK: it is not
}

// next returns the next move.
func (s *scene) next() move {
	switch {
	case s.undo == znode.OK || !s.mayUndo():
	case s.waited >= stuckTime:
		return move{kind: moveAbort, code: s.undo, why: "too few servers are connected to undo it"}
	default:
		return s.back()
	}
	for _, step := range []func() (move, bool){s.add, s.await, s.promote, s.shed} {
		if m, is := step(); is {
			return m
		}
	}
	return move{kind: moveFinish}
}

// voters returns the servers that are to vote.
func (s *scene) voters() map[state.ServerID]bool {
	voters := map[state.ServerID]bool{}
	for _, x := range s.Servers {
		if x.Voter {
			voters[x.ID] = true
		}
	}
	return voters
}

// mayUndo reports that all old voters vote.
func (s *scene) mayUndo() bool {
	for id, voted := range s.Former {
		if voted && !s.now[id] {
			return false
		}
	}
	return true
}

// gained returns the voters that had no vote before, in their order.
func (s *scene) gained() (ids []state.ServerID) {
	for _, id := range slices.Sorted(maps.Keys(s.now)) {
		if s.now[id] && !s.Former[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *scene) open(id state.ServerID) bool { return id == s.self || s.sights[id].open }

// ready reports that a server is connected and has caught up.
func (s *scene) ready(id state.ServerID) bool {
	return id == s.self || s.sights[id].open && s.sights[id].behind == ""
}

// failed ends a reconfiguration that cannot go on.
func (s *scene) failed(code znode.Error, why string) (move, bool) {
	if s.mayUndo() {
		return move{kind: moveUndo, code: code, why: why}, true
	}
	if s.waited >= stuckTime {
		return move{kind: moveAbort, code: code, why: why}, true
	}
	return move{kind: moveWait, why: why}, true
}

// add takes in servers that are new, and finds those that have moved.
func (s *scene) add() (move, bool) {
	for _, x := range s.Servers {
		if _, in := s.now[x.ID]; !in {
			return move{kind: moveAdd, server: x.ID}, true
		}
		known, said := s.members[x.ID].Address(), x.Addr()
		if said == "" || said == known || known == "" && s.open(x.ID) {
			continue
		}
		_, port, _ := net.SplitHostPort(known)
		_, saidPort, _ := net.SplitHostPort(said)
		switch {
		case s.open(x.ID) && port == saidPort: // its host has several names
		case s.open(x.ID):
			why := fmt.Sprintf("server %d is connected as %s, not %s: its own configuration says where it is, so "+
				"change that, and restart it, first", x.ID, known, said)
			return s.failed(znode.ErrBadArguments, why)
		case s.waited < settleTime:
			return move{kind: moveWait, why: fmt.Sprintf("server %d, which may be elsewhere now", x.ID)}, true
		default:
			return move{kind: moveLocate, server: x.ID}, true
		}
	}
	return move{}, false
}

// await waits for the servers that are to vote, until the first of them has got its vote.
func (s *scene) await() (move, bool) {
	voters := s.voters()
	if len(s.gained()) > 0 || !s.mayUndo() {
		return move{}, false
	}
	need, open, ready, why := len(voters)/2+1, 0, 0, ""
	for _, id := range slices.Sorted(maps.Keys(voters)) {
		if s.open(id) {
			open++
		}
		if s.ready(id) {
			ready++
		} else {
			why += fmt.Sprintf("; server %d: %s", id, s.sights[id].behind)
		}
	}
	switch {
	case ready == len(voters), ready >= need && s.waited >= joinTime:
		return move{}, false
	case open < need && s.waited >= joinTime, s.waited >= catchUpTime:
		return s.failed(znode.ErrNewConfigNoQuorum, fmt.Sprintf("of the %d servers that will vote %d are connected "+
			"and have caught up, and %d are needed%s", len(voters), ready, need, why))
	}
	return move{kind: moveWait, why: "the servers that will vote" + why}, true
}

// promote gives votes to those that are to have one, and have caught up. Those that do not come get theirs later, when
// they do (RunAutopilot): await has waited for them already, so here they only get the time that a new leader needs to
// see who is connected.
func (s *scene) promote() (m move, is bool) {
	for _, x := range s.Servers {
		switch {
		case !x.Voter || s.now[x.ID]:
		case s.ready(x.ID):
			return move{kind: movePromote, server: x.ID}, true
		case s.waited < settleTime:
			m, is = move{kind: moveWait, why: fmt.Sprintf("server %d: %s", x.ID, s.sights[x.ID].behind)}, true
		}
	}
	return m, is
}

// shed takes votes; this server, which leads, comes last.
func (s *scene) shed() (move, bool) {
	voters := s.voters()
	if s.waited >= stuckTime || s.waited >= catchUpTime && s.mayUndo() {
		return s.failed(znode.ErrNewConfigNoQuorum, "too few servers are connected")
	}
	for _, id := range slices.Sorted(maps.Keys(s.now)) {
		if votes := s.now[id]; id != s.self && votes && !voters[id] {
			return move{kind: moveDemote, server: id}, true
		}
	}
	if s.now[s.self] && !voters[s.self] {
		return s.handOver(voters), true
	}
	return move{}, false
}

// handOver hands leadership to one of those that are to vote.
func (s *scene) handOver(to map[state.ServerID]bool) move {
	for _, id := range slices.Sorted(maps.Keys(to)) {
		if id != s.self && s.now[id] && s.open(id) {
			return move{kind: moveHandOver, server: id}
		}
	}
	return move{kind: moveWait, why: "a server that could lead"}
}

// back undoes what has been done.
func (s *scene) back() move {
	gained := s.gained()
	for _, id := range gained {
		if id != s.self {
			return move{kind: moveDemote, server: id}
		}
	}
	if len(gained) > 0 {
		return s.handOver(s.Former)
	}
	for _, x := range s.Servers {
		_, was := s.Former[x.ID]
		if _, in := s.now[x.ID]; in && !was {
			return move{kind: moveRemove, server: x.ID}
		}
	}
	return move{kind: moveAbort, code: s.undo}
}
