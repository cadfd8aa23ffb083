package election

import (
	"context"
	"fmt"
)

// MaxCandidates bounds a scenario: each candidate is a session of its own.
const MaxCandidates = 2000

// KillLeader is an experiment that the simulator and a running ensemble can both perform
// (Runner), so that their outcomes can be compared. Candidates processes run for election; it
// waits until one leads and all others watch, kills the leader without warning, and waits until
// another leads.
type KillLeader struct {
	// Candidates is the number of processes; the killed leader is one of them.
	Candidates int
	// Herd makes all others watch the leader's znode; otherwise each watches the next lower
	// one.
	Herd bool
}

// Check reports a scenario that cannot be performed.
func (k KillLeader) Check() error {
	if k.Candidates < 2 || k.Candidates > MaxCandidates {
		return fmt.Errorf("%d candidates: want 2 to %d, one to be killed and one to follow",
			k.Candidates, MaxCandidates)
	}
	return nil
}

// Events returns how many watch events the death of the leader must cause: one
// for each process that waits in the herd form, one in all in the other.
func (k KillLeader) Events() int {
	if k.Herd {
		return k.Candidates - 1
	}
	return 1
}

// Outcome is what a runner saw from the kill until there was a new leader.
type Outcome struct {
	// Events counts the watch events delivered.
	Events int `json:"events"`
	// Requests counts the requests that candidates sent because of them.
	Requests int `json:"requests"`
	// Messages counts these, and the replies; only the simulator sees them all.
	Messages int `json:"-"`
	// Leaders counts the processes that lead at the end; it must be 1.
	Leaders int `json:"leaders"`
	// Changed is set if the leader at the end is not the killed one.
	Changed bool `json:"changed"`
}

// Runner performs the scenario.
type Runner interface {
	KillLeader(ctx context.Context, k KillLeader) (Outcome, error)
}

// Judge returns how an outcome differs from the guarantees of the recipe.
func (k KillLeader) Judge(o Outcome) error {
	switch {
	case o.Leaders != 1:
		return fmt.Errorf("%d processes lead after the kill: want 1", o.Leaders)
	case !o.Changed:
		return fmt.Errorf("the killed process still leads")
	case o.Events != k.Events():
		return fmt.Errorf("the kill caused %d watch events: want %d", o.Events, k.Events())
	}
	return nil
}
