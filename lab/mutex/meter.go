package mutex

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// maxViolations bounds how many broken promises a run lists.
const maxViolations = 20

// meter observes a run: it checks that at most one process is inside, and measures the
// quantities that the lectures compare.
type meter struct {
	down     map[sim.ID]bool
	inside   map[sim.ID]bool
	asked    map[sim.ID]time.Duration // open requests
	alone    map[sim.ID]bool          // the open request met no other
	lastExit time.Duration
	waited   bool // a process waited at lastExit

	entries    int
	served     map[sim.ID]int
	exits      []sim.ID // since the driver last looked
	clientSum  time.Duration
	clientMax  time.Duration
	clients    int
	syncSum    time.Duration
	syncMax    time.Duration
	syncs      int
	waitSum    time.Duration
	waitMax    time.Duration
	overtakes  int
	wantsOut   map[sim.ID]time.Duration // when the process that is inside was done
	exitSum    time.Duration
	exitMax    time.Duration
	exitCount  int
	violations []sim.Violation
}

func newMeter() *meter {
	return &meter{down: map[sim.ID]bool{}, inside: map[sim.ID]bool{},
		asked: map[sim.ID]time.Duration{}, alone: map[sim.ID]bool{}, served: map[sim.ID]int{},
		wantsOut: map[sim.ID]time.Duration{}}
}

// Observe implements sim.Observer.
func (m *meter) Observe(r sim.Record) {
	switch r.Kind {
	case sim.Crashed:
		m.down[r.Process] = true
		delete(m.inside, r.Process)
		delete(m.asked, r.Process)
	case sim.Recovered:
		delete(m.down, r.Process)
	case sim.TimedOut:
		if r.Type == leaveTimer {
			m.wantsOut[r.Process] = r.At
		}
	case sim.Noted:
		switch r.Fact.Name {
		case FactRequest:
			m.request(r)
		case FactEnter:
			m.enter(r)
		case FactExit:
			m.exit(r)
			m.lastExit, m.waited = r.At, len(m.asked) > 0
			m.exits = append(m.exits, r.Process)
		}
	}
}

func (m *meter) exit(r sim.Record) {
	delete(m.inside, r.Process)
	if since, ok := m.wantsOut[r.Process]; ok {
		m.exitCount++
		m.exitSum += r.At - since
		m.exitMax = max(m.exitMax, r.At-since)
		delete(m.wantsOut, r.Process)
	}
}

func (m *meter) request(r sim.Record) {
	m.alone[r.Process] = len(m.asked) == 0 && len(m.inside) == 0
	for id := range m.asked {
		m.alone[id] = false
	}
	m.asked[r.Process] = r.At
}

func (m *meter) enter(r sim.Record) {
	inside := sim.None
	if len(m.inside) > 0 && len(m.violations) < maxViolations {
		for id := range m.inside {
			inside = lower(inside, id)
		}
		m.violations = append(m.violations, sim.Violation{At: r.At,
			Text: fmt.Sprintf("%v enters while %v is inside", r.Process, inside)})
	}
	asked := m.asked[r.Process]
	wait := r.At - asked
	delete(m.asked, r.Process)
	m.waitSum += wait
	m.waitMax = max(m.waitMax, wait)
	for _, earlier := range m.asked {
		if earlier < asked {
			m.overtakes++
		}
	}
	if m.alone[r.Process] {
		m.clients++
		m.clientSum += wait
		m.clientMax = max(m.clientMax, wait)
	}
	// A process waited at the last exit, or asked at that very moment.
	if m.entries > 0 && (m.waited || asked == m.lastExit) && len(m.inside) == 0 {
		gap := r.At - m.lastExit
		m.syncs++
		m.syncSum += gap
		m.syncMax = max(m.syncMax, gap)
	}
	m.entries++
	m.served[r.Process]++
	m.inside[r.Process] = true
}

// Delay is a measured delay in units.
type Delay struct {
	Mean  float64 `json:"mean"`
	Max   float64 `json:"max"`
	Count int     `json:"count"`
}

func delayOf(sum, most time.Duration, count int) Delay {
	d := Delay{Max: sim.Units(most), Count: count}
	if count > 0 {
		d.Mean = sim.Units(sum / time.Duration(count))
	}
	return d
}
