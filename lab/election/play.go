package election

import (
	"cmp"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// detectionTime is how long the perfect detector takes, in message times. It is more than one,
// so that the messages that a process sent before its crash arrive before the news of it.
const detectionTime = 2

// schedule puts the initiators' commands and the perfect detector's news into
// the queue.
func (r *run) schedule() {
	for _, i := range r.config.Starters() {
		var known []sim.ID
		if r.algorithm.detects {
			known = r.config.downAt(i.At)
		}
		r.sim.Command(i.At, i.ID, Elect{Suspected: known})
	}
	if r.config.Detector != DetectorPerfect || !r.algorithm.detects {
		return
	}
	for _, f := range r.config.Faults {
		if f.Recover {
			r.tellOthers(f.At, f.ID, Trust{ID: f.ID})
		} else if at := f.At + detectionTime*r.timing.bound; f.At > 0 && !r.upAgain(f, at) {
			r.tellOthers(at, f.ID, Suspect{ID: f.ID})
		}
	}
}

func (r *run) tellOthers(at time.Duration, about sim.ID, news sim.Event) {
	for _, id := range r.config.IDs {
		if id != about {
			r.sim.Command(at, id, news)
		}
	}
}

// upAgain reports whether the process of a crash recovers before at.
func (r *run) upAgain(crash sim.Fault, at time.Duration) bool {
	return slices.ContainsFunc(r.config.Faults, func(f sim.Fault) bool {
		return f.Recover && f.ID == crash.ID && f.At >= crash.At && f.At <= at
	})
}

// downAt returns which processes are down after the faults up to a time.
func (c Config) downAt(at time.Duration) []sim.ID {
	var down []sim.ID
	faults := slices.SortedStableFunc(slices.Values(c.Faults), func(a, b sim.Fault) int {
		return cmp.Compare(a.At, b.At)
	})
	for _, f := range faults {
		switch {
		case f.At > at:
		case f.Recover:
			down = without(down, f.ID)
		default:
			down = with(down, f.ID)
		}
	}
	return down
}

// Starters returns the processes that start the election: those named, or as Config.Initiators
// describes.
func (c Config) Starters() []Initiator {
	a, err := c.lookup()
	switch {
	case len(c.Initiators) > 0:
		return c.Initiators
	case err != nil || a.perpetual && c.Program == nil:
		return nil // they start by themselves
	case a.all:
		var all []Initiator
		for _, id := range c.IDs {
			all = append(all, Initiator{ID: id})
		}
		return all
	}
	crashed := c.downAt(0)
	for _, id := range c.ranked() {
		if !holds(crashed, id) {
			return []Initiator{{ID: id}}
		}
	}
	return nil
}

// settleTime is how long a perpetual algorithm must not change, in message times: longer than a
// session or an election timeout with its spread.
const settleTime = 30

// play runs to the end and returns how the run ended.
func (r *run) play() string {
	stopped := false
	empty := r.sim.Run(func() bool {
		stopped = r.perpetual && r.standstill()
		return stopped
	})
	switch {
	case stopped:
		return "settled"
	case empty:
		return "quiet"
	}
	return "limit"
}

// standstill reports whether the state has been good for settleTime.
func (r *run) standstill() bool {
	// Every fact is checked as it happens. Places in the queue change without a fact, and
	// schedules end: both are checked at intervals.
	if r.checker.dirty || r.sim.Now()-r.lookedAt >= r.timing.bound {
		r.checker.dirty, r.lookedAt = false, r.sim.Now()
		v, _ := r.checker.judge(r.inLine)
		content := v.live && v.safe && !r.sim.Pending() && !r.partitioned()
		if content && (!r.settled || r.checker.lastChange > r.settledAt) {
			r.settledAt = r.sim.Now()
		}
		r.settled = content
	}
	if r.settled && r.sim.Now() == r.settledAt { // to the end of the instant
		r.time, r.counts, r.lost = r.completion(), r.sim.Counts(), r.sim.LostCount()
	}
	return r.settled && r.sim.Now()-r.settledAt > settleTime*r.timing.bound
}

func (r *run) partitioned() bool {
	for _, p := range r.config.Network.Partitions {
		if r.sim.Now() < p.Until {
			return true
		}
	}
	return false
}

func (r *run) inLine(id sim.ID) bool {
	switch n := detector.Inner(r.sim.Node(id)).(type) {
	case zookeeperNode:
		return n.inLine()
	case drawn:
		return true // it leads or polls
	}
	return false
}

func (r *run) completion() time.Duration {
	if r.perpetual && !r.algorithm.service {
		return r.checker.lastChange
	}
	return max(r.checker.lastChange, r.sim.LastWork())
}

func (r *run) finish(ended string) Result {
	r.checker.checkOverlap(r.sim.Now())
	v, wrong := r.checker.judge(r.inLine)
	for i := range wrong {
		wrong[i].At = r.sim.Now()
	}
	result := Result{
		Algorithm: r.algorithm.Name, N: len(r.config.IDs), Seed: r.config.Seed,
		Live: v.live && ended != "limit", Declared: r.checker.changes, Ended: ended,
		Violations: append(append([]sim.Violation{}, r.checker.violations...), wrong...),
		Counted:    r.settledAt, Winners: r.checker.winners,
		Ring: r.sim.Ring(), Service: r.algorithm.service,
	}
	result.Safe = len(result.Violations) == 0
	if v.leader != sim.None {
		result.Leader = &v.leader
	}
	counts, lost, at := r.sim.Counts(), r.sim.LostCount(), r.completion()
	if ended == "settled" {
		counts, lost, at = r.counts, r.lost, r.time
	}
	units := sim.Units(at)
	if ended == "limit" {
		units = sim.Units(r.sim.Limit())
		result.CutOff = &units
	} else {
		result.Time = &units
	}
	result.Lost = lost
	result.Messages = sim.Tally(counts)
	result.Records, result.Truncated = r.sim.Records()
	return result
}
