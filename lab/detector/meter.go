package detector

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// pair is an observing process and the process it watches.
type pair struct{ observer, subject sim.ID }

// Meter observes a run and measures the detectors in it.
type Meter struct {
	ids       []sim.ID
	down      map[sim.ID]bool
	crashedAt map[sim.ID]time.Duration
	since     map[pair]time.Duration // suspected since
	falsely   map[pair]bool          // the suspicion began while the subject was up
	wrong     time.Duration          // sum of times an up process suspected an up one
	mistakes  int
	found     []time.Duration // crash to suspicion
}

// NewMeter returns a meter for the processes ids.
func NewMeter(ids []sim.ID) *Meter {
	return &Meter{ids: ids, down: map[sim.ID]bool{}, crashedAt: map[sim.ID]time.Duration{},
		since: map[pair]time.Duration{}, falsely: map[pair]bool{}}
}

// Observe implements sim.Observer.
func (m *Meter) Observe(r sim.Record) {
	switch r.Kind {
	case sim.Crashed:
		m.crash(r.Process, r.At)
	case sim.Recovered:
		delete(m.down, r.Process)
	case sim.Noted:
		p := pair{r.Process, r.Fact.About}
		switch r.Fact.Name {
		case FactSuspect:
			m.since[p] = r.At
			if m.down[p.subject] {
				m.found = append(m.found, r.At-m.crashedAt[p.subject])
			} else {
				m.mistakes++
				m.falsely[p] = true
			}
		case FactTrust:
			m.close(p, r.At)
		}
	}
}

// close ends a suspicion and, if it was wrong, adds up how long it lasted.
func (m *Meter) close(p pair, at time.Duration) {
	if m.falsely[p] {
		m.wrong += at - m.since[p]
	}
	delete(m.falsely, p)
	delete(m.since, p)
}

// crash ends the suspicions that the process had, and turns wrong suspicions of it into right
// ones, which count as found at once.
func (m *Meter) crash(id sim.ID, at time.Duration) {
	m.down[id], m.crashedAt[id] = true, at
	for _, other := range m.ids {
		m.close(pair{id, other}, at)
		p := pair{other, id}
		if m.falsely[p] {
			m.close(p, at)
			m.since[p] = at
			m.found = append(m.found, 0)
		}
	}
}

// Quality is the result of the meter.
type Quality struct {
	// Completeness is the share of (up observer, crashed process) pairs in which the observer
	// suspects at the end; 1 if no process crashed.
	Completeness float64 `json:"completeness"`
	// Accuracy is the share of time, over all pairs of processes that are up at
	// the end, in which the observer did not suspect wrongly.
	Accuracy float64 `json:"accuracy"`
	// FalseSuspicions counts suspicions of a process that was up.
	FalseSuspicions int `json:"false_suspicions"`
	// DetectionMean and DetectionMax are from crash to suspicion, in units.
	DetectionMean float64 `json:"detection_mean"`
	DetectionMax  float64 `json:"detection_max"`
}

// Quality sums up the run, which ended at end.
func (m *Meter) Quality(end time.Duration) Quality {
	q := Quality{Completeness: 1, Accuracy: 1, FalseSuspicions: m.mistakes}
	var crashed, noticed, live int
	wrong := m.wrong
	for _, observer := range m.ids {
		if m.down[observer] {
			continue
		}
		live++
		for _, subject := range m.ids {
			p := pair{observer, subject}
			_, suspects := m.since[p]
			if m.down[subject] {
				crashed++
				if suspects {
					noticed++
				}
			}
			if m.falsely[p] {
				wrong += end - m.since[p]
			}
		}
	}
	if crashed > 0 {
		q.Completeness = float64(noticed) / float64(crashed)
	}
	if span := time.Duration(live*(live-1)) * end; span > 0 {
		q.Accuracy = max(0, 1-float64(wrong)/float64(span))
	}
	if len(m.found) > 0 {
		var sum time.Duration
		for _, d := range m.found {
			sum += d
		}
		q.DetectionMean = sim.Units(sum / time.Duration(len(m.found)))
		q.DetectionMax = sim.Units(slices.Max(m.found))
	}
	return q
}

// String writes the quality on one line.
func (q Quality) String() string {
	return fmt.Sprintf("completeness %.3f, accuracy %.4f, false suspicions %d, "+
		"detection mean %.2f max %.2f",
		q.Completeness, q.Accuracy, q.FalseSuspicions, q.DetectionMean, q.DetectionMax)
}
