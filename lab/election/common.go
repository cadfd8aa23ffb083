package election

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// FactLeader is the fact a process states when the leader it holds changes.
// Fact.Number is the term, for algorithms that have terms.
const FactLeader = "leader"

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

// What a failure detector tells an election.
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

// without returns a sorted copy of ids that does not hold id.
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

// timing is what a process knows about the network.
type timing struct {
	bound  time.Duration // T: the longest a message is believed to take
	answer time.Duration // how long to wait for an answer, 2T when accurate
}
