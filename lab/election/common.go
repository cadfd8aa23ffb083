package election

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// FactLeader is the fact a process states when the leader it holds changes.
// Fact.Number is the term, for algorithms that have terms.
const FactLeader = "leader"

// Initiator is a process that starts an election at a time.
type Initiator struct {
	ID sim.ID
	At time.Duration
}

// ParseInitiator reads ID or ID@TIME.
func ParseInitiator(text string) (Initiator, error) {
	name, at, timed := strings.Cut(text, "@")
	id, err := sim.ParseID(name)
	if err != nil {
		return Initiator{}, fmt.Errorf("%q: want ID or ID@TIME, such as 6@2.5: %w", text, err)
	}
	i := Initiator{ID: id}
	if timed {
		if i.At, err = sim.ParseTime(at); err != nil {
			return Initiator{}, fmt.Errorf("%q: want ID or ID@TIME, such as 6@2.5: %w", text, err)
		}
	}
	return i, nil
}

// FactWinner is the fact that a process won a phase; Fact.Number is the phase.
const FactWinner = "winner"

// Elect tells a process to start an election, knowing that the Suspected
// processes have crashed.
type Elect struct{ Suspected []sim.ID }

// String labels the command on charts.
func (e Elect) String() string {
	if len(e.Suspected) == 0 {
		return "starts an election"
	}
	return fmt.Sprintf("detects failure of %v", e.Suspected)
}

// The events that a failure detector reports to an election.
type (
	// Suspect is detector.Suspect.
	Suspect = detector.Suspect
	// Trust is detector.Trust.
	Trust = detector.Trust
)

// with returns a sorted copy of ids that holds id.
func with(ids []sim.ID, id sim.ID) []sim.ID {
	at, found := slices.BinarySearch(ids, id)
	if found {
		return ids
	}
	return slices.Insert(slices.Clone(ids), at, id)
}

// without returns a sorted copy of ids without id.
func without(ids []sim.ID, id sim.ID) []sim.ID {
	at, found := slices.BinarySearch(ids, id)
	if !found {
		return ids
	}
	return slices.Delete(slices.Clone(ids), at, at+1)
}

func holds(ids []sim.ID, id sim.ID) bool {
	_, found := slices.BinarySearch(ids, id)
	return found
}

// timing is the network as a process knows it.
type timing struct {
	bound  time.Duration // T: the longest a message is believed to take
	answer time.Duration // how long to wait for an answer, 2T when accurate
	// coordinator is how long to wait for the announcement after an answer: 5T, the
	// longest that an election takes.
	coordinator time.Duration
}

// elected writes a leader as the lectures do.
func elected(id sim.ID) string {
	if id == sim.None {
		return "⊥"
	}
	return id.String()
}

func list(ids []sim.ID) string {
	if len(ids) == 0 {
		return "-"
	}
	var names []string
	for _, id := range ids {
		names = append(names, id.String())
	}
	return strings.Join(names, " ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
