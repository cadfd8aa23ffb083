package play

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// Outcome is the result of a command.
type Outcome struct {
	Title string
	// Result is printed with --json.
	Result any
	// Words writes the result for people.
	Words func(io.Writer)
	// Notes are remarks on the command line that are no part of the result.
	Notes []string

	// The input of pictures; kept if Command.Keep was set.
	Ring      []sim.ID
	Service   bool
	Records   []sim.Record
	Truncated bool
	End       time.Duration

	algorithm    string
	seed         uint64
	Topology     string // ring, mesh or star
	safe, live   bool
	ended        string
	time, cutOff *float64
	counted      *float64
	broken       []sim.Violation
	bounds       []trace.Bound
}

// Run runs the command given by words, which begin with its name, and returns its trace.
func Run(words []string) (trace.Trace, error) { return RunWithin(Limit{}, words) }

// RunWithin does so within a limit.
func RunWithin(limit Limit, words []string) (trace.Trace, error) {
	if len(words) == 0 {
		return trace.Trace{}, fmt.Errorf("no command: want election, mutex or another")
	}
	c, err := find(words[0])
	if err != nil {
		return trace.Trace{}, err
	}
	if err := c.parse(words[1:]); err != nil {
		return trace.Trace{}, err
	}
	c.Keep, c.Limit = true, limit
	o, err := c.Run()
	if err != nil {
		return trace.Trace{}, err
	}
	return o.trace(words)
}

// Run runs the command with the options that were set.
func (c *Command) Run() (Outcome, error) { return c.run(c) }

func (o Outcome) trace(words []string) (trace.Trace, error) {
	result, err := json.Marshal(o.Result)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("encoding the result: %w", err)
	}
	var b strings.Builder
	o.Words(&b)
	t := trace.Trace{Command: words, Title: o.Title, Family: words[0], Algorithm: o.algorithm, Seed: o.seed,
		Topology: o.Topology, Steps: []trace.Step{}, Messages: []trace.Message{}, Spans: []trace.Span{},
		Bounds: append([]trace.Bound{}, o.bounds...), Broken: []trace.Broken{}, Safe: o.safe, Live: o.live,
		Ended: o.ended, Time: o.time, CutOff: o.cutOff, CountedUntil: o.counted, Result: result,
		Words: strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), Notes: append([]string{}, o.Notes...),
		Truncated: o.Truncated}
	if o.Service {
		t.Processes = append(t.Processes, trace.Process{ID: sim.Service, Name: sim.Service.String(), Service: true})
	}
	for _, id := range o.Ring {
		t.Processes = append(t.Processes, trace.Process{ID: id, Name: id.String()})
	}
	for _, v := range o.broken {
		t.Broken = append(t.Broken, trace.Broken{At: sim.Units(v.At), End: v.End, Sentence: v.String()})
	}
	t.Add(o.Records, o.End)
	return t, nil
}
