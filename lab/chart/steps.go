package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// Run is the input of a chart.
type Run struct {
	Title   string
	Ring    []sim.ID // columns, from left to right
	Service bool     // draw a column for the service, at the far left
	Records []sim.Record
	// End is when the run ended.
	End time.Duration
	// Truncated is set if the run was longer than its records.
	Truncated bool
	// Round is set if messages go round the ring of the columns.
	Round bool
	// Variables draws the variables of processes when they change.
	Variables bool
	// Background draws heartbeats and pings as well.
	Background bool
}

// step is one thing drawn.
type step struct {
	at, sent time.Duration
	due      time.Duration // when a lost message would have arrived
	kind     sim.Kind
	from, to sim.ID // to is None for a step of one process
	text     string
	status   string // the new status of the process, if it changed; "-" for none
}

func (r Run) columns() []sim.ID {
	if r.Service {
		return append([]sim.ID{sim.Service}, r.Ring...)
	}
	return slices.Clone(r.Ring)
}

// steps selects the steps worth drawing: messages when they arrive or are lost, faults,
// commands, facts and timers.
func (r Run) steps() []step {
	var steps []step
	for _, record := range r.Records {
		if record.Quiet && !r.Background {
			continue
		}
		s := step{at: record.At, sent: record.SentAt, kind: record.Kind,
			from: record.Process, to: sim.None}
		switch record.Kind {
		case sim.Delivered:
			s.from, s.to, s.text = record.Peer, record.Process, record.Label
		case sim.Lost:
			s.to, s.text, s.due = record.Peer, record.Label, record.Due
		case sim.Crashed:
			s.text, s.status = fmt.Sprintf("%v crashes", record.Process), "down"
		case sim.Recovered:
			s.text, s.status = fmt.Sprintf("%v recovers", record.Process), "-"
		case sim.Told:
			if record.Label == "wants the lock" {
				continue // the process notes that it asks
			}
			s.text = fmt.Sprintf("%v %s", record.Process, record.Label)
		case sim.TimedOut:
			if trace.Upkeep(record.Type) && !r.Background {
				continue
			}
			s.text = fmt.Sprintf("%v: timer %q runs out", record.Process, record.Type)
		case sim.Noted:
			s.text, s.status = trace.Describe(record.Process, record.Fact)
		case sim.Changed:
			if !r.Variables {
				continue
			}
			s.text = fmt.Sprintf("%v: %s", record.Process, variables(record.Variables))
		default:
			continue
		}
		steps = append(steps, s)
	}
	return steps
}

func variables(list []sim.Variable) string {
	var texts []string
	for _, v := range list {
		texts = append(texts, v.Name+" "+v.Value)
	}
	return strings.Join(texts, ", ")
}

// EndOf is the moment of the last record.
func EndOf(records []sim.Record) time.Duration {
	if len(records) == 0 {
		return 0
	}
	return records[len(records)-1].At
}
