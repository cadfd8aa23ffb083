package trace

import (
	"encoding/json"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Trace is a run.
type Trace struct {
	// Command is the run's command line after "zk-lite lab".
	Command   []string `json:"command"`
	Title     string   `json:"title"`
	Family    string   `json:"family"` // election, mutex, ...
	Algorithm string   `json:"algorithm"`
	Seed      uint64   `json:"seed"`
	// Topology is how a picture lays out the processes: ring, mesh, or star round the
	// service.
	Topology  string    `json:"topology"`
	Processes []Process `json:"processes"`
	Steps     []Step    `json:"steps"`
	Messages  []Message `json:"messages"`
	Spans     []Span    `json:"spans"`
	Bounds    []Bound   `json:"bounds"`
	Broken    []Broken  `json:"broken"`
	Safe      bool      `json:"safe"`
	Live      bool      `json:"live"`
	Ended     string    `json:"ended"` // quiet, settled or limit
	// Time is the reported time of the run; null if it did not end, and then CutOff is when it
	// was ended.
	Time   *float64 `json:"time"`
	CutOff *float64 `json:"cut_off"`
	// CountedUntil is the time up to which messages count; null for all.
	CountedUntil *float64 `json:"counted_until"`
	// Result is printed by the command with --json.
	Result json.RawMessage `json:"result"`
	// Words are printed by the command without it, and Notes beside them.
	Words []string `json:"words"`
	Notes []string `json:"notes"`
	// Truncated: the run was longer than the part that is kept.
	Truncated bool `json:"truncated"`
}

// Process is one column.
type Process struct {
	ID      sim.ID `json:"id"`
	Name    string `json:"name"` // N6, or S for the service
	Service bool   `json:"service"`
}

// Step is one thing that happened to one process, with all that it caused.
type Step struct {
	At      float64 `json:"at"`
	Kind    string  `json:"kind"` // started, told, delivered, lost, timed-out, crashed or recovered
	Process sim.ID  `json:"process"`
	// Message is a place in Messages, for kinds delivered and lost; otherwise -1.
	Message int            `json:"message"`
	Text    string         `json:"text"`
	Quiet   bool           `json:"quiet"`
	Facts   []string       `json:"facts"`
	Status  string         `json:"status"`
	Changes []sim.Variable `json:"changes"`
	Timers  []Timer        `json:"timers"`
	Sends   []int          `json:"sends"`
	Sent    int            `json:"sent"`
}

// Timer is one that was set or, if Due is null, is no longer set.
type Timer struct {
	Name string   `json:"name"`
	Due  *float64 `json:"due"`
}

// Message is one message, or a copy of one.
type Message struct {
	Type     string   `json:"type"`
	Nth      int      `json:"nth"` // of its type, from 1; copies share it
	Label    string   `json:"label"`
	From     sim.ID   `json:"from"`
	To       sim.ID   `json:"to"`
	Sent     float64  `json:"sent"`
	Ends     float64  `json:"ends"`
	Received *float64 `json:"received"`
	Lost     string   `json:"lost"` // why, or empty
	Copy     bool     `json:"copy"`
	Quiet    bool     `json:"quiet"`

	number  int
	settled bool // it arrived or is known to be lost
}

// Span is a time in which a process was in one state: down, leads, asks or inside.
type Span struct {
	Process sim.ID  `json:"process"`
	What    string  `json:"what"`
	From    float64 `json:"from"`
	Until   float64 `json:"until"`
	// Open: it was so at the end.
	Open bool `json:"open"`
}

// Bound is a formula of the lectures at this number of processes.
type Bound struct {
	Case     string   `json:"case"`     // worst, best, ...
	Quantity string   `json:"quantity"` // election messages, time, ...
	Types    []string `json:"types"`    // the messages counted, null for all; no use for a time
	Formula  string   `json:"formula"`
	Value    float64  `json:"value"`
}

// Broken is a broken promise.
type Broken struct {
	At       float64 `json:"at"`
	End      bool    `json:"end"`
	Sentence string  `json:"sentence"`
}

// State is a process after some steps.
type State struct {
	Up        bool
	Status    string
	Variables []sim.Variable
	Timers    map[string]float64
}

// At returns each process as it is after the first k steps.
func (t Trace) At(k int) map[sim.ID]*State {
	states := map[sim.ID]*State{}
	for _, p := range t.Processes {
		states[p.ID] = &State{Up: true, Status: "-", Timers: map[string]float64{}}
	}
	for _, s := range t.Steps[:k] {
		states[s.Process].apply(s)
	}
	return states
}

func (s *State) apply(step Step) {
	switch step.Kind {
	case string(sim.Crashed):
		s.Up = false
	case string(sim.Recovered):
		s.Up = true
	}
	if step.Status != "" {
		s.Status = step.Status
	}
	for _, timer := range step.Timers {
		delete(s.Timers, timer.Name)
		if timer.Due != nil {
			s.Timers[timer.Name] = *timer.Due
		}
	}
changes:
	for _, change := range step.Changes {
		for i := range s.Variables {
			if s.Variables[i].Name == change.Name {
				s.Variables[i] = change
				continue changes
			}
		}
		s.Variables = append(s.Variables, change)
	}
}
