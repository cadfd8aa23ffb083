package ensemble

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// The faults of the leading candidate.
const (
	Kill   = "kill"   // its process ends, without a word
	Cut    = "cut"    // nothing passes between it and the servers
	Expire = "expire" // its session is ended, and it still has its connection
)

// mostDrawn bounds the candidates of a run that is drawn.
const mostDrawn = 16

// Experiment is a story of the lab on real servers: candidates run for election, and the
// leading one meets a fault. The servers' own leader is left alone.
type Experiment struct {
	Fault string
	Kill  election.KillLeader
	words []string
}

// ParseExperiment reads the words of a command line: ensemble --fault cut --n 5 --herd.
func ParseExperiment(words []string) (Experiment, error) {
	e := Experiment{words: words}
	f := flag.NewFlagSet("ensemble", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&e.Fault, "fault", Kill, "")
	f.IntVar(&e.Kill.Candidates, "n", 4, "")
	f.BoolVar(&e.Kill.Herd, "herd", false, "")
	if len(words) == 0 {
		return e, errors.New("no command: want ensemble")
	}
	if err := f.Parse(words[1:]); err != nil {
		return e, fmt.Errorf("ensemble: %w: want --fault, --n or --herd; other options are the simulator's", err)
	}
	if f.NArg() > 0 {
		return e, fmt.Errorf("ensemble: %q is no option of it", strings.Join(f.Args(), " "))
	}
	if !slices.Contains([]string{Kill, Cut, Expire}, e.Fault) {
		return e, fmt.Errorf("--fault %q: want %s, %s or %s", e.Fault, Kill, Cut, Expire)
	}
	if e.Kill.Candidates > mostDrawn {
		return e, fmt.Errorf("--n %d: want at most %d to draw", e.Kill.Candidates, mostDrawn)
	}
	return e, e.Kill.Check()
}

// Trace performs an experiment and returns the messages, as the candidates saw them.
func (r Runner) Trace(ctx context.Context, e Experiment) (t trace.Trace, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %v", patience))
	defer cancel()
	p := &run{leds: make(chan led, e.Kill.Candidates), stop: cancel, recorder: newRecorder()}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.connect(ctx, r.Servers, e.Kill.Candidates); err != nil {
		return t, err
	}
	p.campaign(ctx, e.Kill.Herd)
	first, err := p.lead(ctx)
	if err != nil {
		return t, err
	}
	if err := p.inLine(ctx, first.who); err != nil {
		return t, err
	}
	if err := p.harm(ctx, r.Servers, e.Fault, first); err != nil {
		return t, err
	}
	second, err := p.lead(ctx)
	if err != nil {
		return t, err
	}
	if err := p.inLine(ctx, first.who, second.who); err != nil {
		return t, err
	}
	for _, c := range p.all { // the answer follows all events of earlier writes
		if c != first.who {
			if err := c.client.Sync(ctx, "/"); err != nil {
				return t, explain(ctx, err)
			}
		}
	}
	return p.trace(e, first, second)
}

// lead waits for the next leader and notes when that was.
func (p *run) lead(ctx context.Context) (led, error) {
	l, err := p.leader(ctx)
	if err == nil {
		p.recorder.moment(sim.Told, l.who.tap.id, "is first in line", &sim.Fact{Name: "leader", About: l.who.tap.id})
	}
	return l, err
}

// harm injects the fault of the experiment into the leader. It returns when the leader knows,
// unless it is dead: before that it may believe that it leads.
func (p *run) harm(ctx context.Context, servers, fault string, first led) error {
	id := first.who.tap.id
	switch fault {
	case Kill:
		p.recorder.moment(sim.Crashed, id, "", nil)
		first.who.tap.kill()
		return nil
	case Cut:
		p.recorder.moment(sim.Told, id, "is cut off from the servers", nil)
		first.who.tap.cut()
	case Expire:
		p.recorder.moment(sim.Told, id, "has its session ended by somebody else", nil)
		other, err := client.Connect(ctx, servers, client.WithSession(first.who.client.Credentials()))
		if err != nil {
			return explain(ctx, fmt.Errorf("taking the leader's session over: %w", err))
		}
		if err := other.Close(); err != nil {
			return fmt.Errorf("ending the leader's session: %w", err)
		}
	}
	select {
	case <-first.lost:
		p.recorder.moment(sim.Told, id, "leads no more: its session is lost or in doubt",
			&sim.Fact{Name: "leader", About: sim.None})
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting until the leader knows that it leads no more: %w", context.Cause(ctx))
	}
}

// trace makes the run's trace and judges it.
func (p *run) trace(e Experiment, first, second led) (trace.Trace, error) {
	records := p.recorder.records()
	end := p.recorder.now()
	time := sim.Units(end.Round(sim.Unit / 1000))
	form := map[bool]string{true: "everybody watches the leader", false: "each watches the next lower"}[e.Kill.Herd]
	title := fmt.Sprintf("real servers: %s the leading candidate of %d, %s", e.Fault, e.Kill.Candidates, form)
	t := trace.Trace{Command: e.words, Title: title, Family: "ensemble", Algorithm: e.Fault, Topology: "star",
		Steps: []trace.Step{}, Messages: []trace.Message{}, Spans: []trace.Span{}, Broken: []trace.Broken{},
		Safe: first.who != second.who, Live: true, Ended: "settled", Time: &time,
		Bounds: []trace.Bound{{Case: "leader goes", Quantity: "watch events", Types: []string{"event"},
			Formula: map[bool]string{true: "N-1", false: "1"}[e.Kill.Herd], Value: float64(e.Kill.Events())}},
		Notes: []string{"On running servers: times are milliseconds, and other each time. When a server had a " +
			"request is put half-way between request and reply; pings are left out."}}
	t.Processes = append(t.Processes, trace.Process{ID: sim.Service, Name: sim.Service.String(), Service: true})
	for _, c := range p.all {
		t.Processes = append(t.Processes, trace.Process{ID: c.tap.id, Name: c.tap.id.String()})
	}
	t.Add(records, end)
	return t, p.count(&t, first, second)
}

// count fills in the result.
func (p *run) count(t *trace.Trace, first, second led) error {
	counts := sim.Messages{ByType: map[string]int{}}
	for _, m := range t.Messages {
		counts.Total++
		counts.ByType[m.Type]++
	}
	var err error
	t.Result, err = json.Marshal(map[string]any{"messages": counts, "leader": second.who.tap.id})
	t.Words = []string{t.Title, fmt.Sprintf("leader %v, then %v after %v", first.who.tap.id, second.who.tap.id,
		time.Duration(*t.Time*float64(sim.Unit)).Round(time.Millisecond)),
		fmt.Sprintf("messages: %d, of which events: %d", counts.Total, counts.ByType["event"])}
	return err
}
