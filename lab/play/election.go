package play

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/table"
)

// heartbeat holds the options of a detector's timing.
type heartbeat struct{ period, silence string }

func (f *heartbeat) options() []*Option {
	return []*Option{
		text(&f.period, "heartbeat-period", "T", "2", "units between two heartbeats"),
		text(&f.silence, "heartbeat-timeout", "D", "2", "units of silence beyond T before suspicion"),
	}
}

func (f *heartbeat) timing() (detector.Timing, error) {
	period, err := sim.ParseTime(f.period)
	if err != nil {
		return detector.Timing{}, fmt.Errorf("--heartbeat-period: %w", err)
	}
	silence, err := sim.ParseTime(f.silence)
	if err != nil {
		return detector.Timing{}, fmt.Errorf("--heartbeat-timeout: %w", err)
	}
	t := detector.Timing{Period: period, Timeout: silence}
	return t, t.Check()
}

type electionOptions struct {
	network    network
	heartbeat  heartbeat
	algorithm  string
	initiators []string
	attributes []string
	timeout    string
	wait       string
	detector   string
	rule       string
	ask        string
	tell       string
	announce   string
	noSpread   bool
}

func electionCommand(f *electionOptions) *Command {
	var names []string
	for _, a := range election.Algorithms() {
		names = append(names, a.Name)
	}
	c := &Command{
		Name: "election", Short: "Run one leader election",
		Example: "  zk-lite lab election --algorithm bully --ids 3,5,6,12,32,80 " +
			"--crash 80@0 --initiator 6 --trace\n" +
			"  zk-lite lab election --algorithm ring --ids 3,32,5,80,6,12 --initiator 3 --json",
		run: f.run,
	}
	c.Options = append([]*Option{
		text(&f.algorithm, "algorithm", "NAME", "bully", "which algorithm runs", names...),
		each(&f.initiators, "initiator", "ID[@TIME]",
			"process that starts an election, by default at time 0, knowing of the crashes until then"),
		each(&f.attributes, "attribute", "ID=VALUE",
			"number by which bully and ring rank a process (default its id)"),
		text(&f.rule, "rule", "NAME", "initiator",
			"ring, several initiators: suppress the lower ones, or let a participant swallow smaller ids",
			"initiator", "participant"),
		text(&f.ask, "ask", "WHOM", "higher", "bully: whom a process sends its election message", "higher", "all"),
		text(&f.tell, "tell", "WHOM", "lower", "bully: whom the coordinator tells", "lower", "all"),
		text(&f.announce, "announce", "WHEN", "again",
			"bully: whether a coordinator that is asked announces itself again", "again", "once"),
		text(&f.timeout, "timeout", "TIME", "",
			"how long bully and broadcast wait for answers (default: two message times)"),
		text(&f.wait, "coordinator-timeout", "TIME", "",
			"how long bully waits for the coordinator after an answer (default: five message times)"),
		text(&f.detector, "detector", "NAME", "perfect", "who tells of crashes after time 0",
			string(election.DetectorPerfect), string(election.DetectorNone), string(election.DetectorNeighbour),
			string(election.DetectorSuccessor), string(election.DetectorHeartbeat)),
		toggle(&f.noSpread, "no-spread", "majority: give all processes the same election timeout"),
	}, append(f.network.options(6), f.heartbeat.options()...)...)
	return c
}

func (f *electionOptions) config(c *Command) (election.Config, error) {
	config := election.Config{Algorithm: f.algorithm, Seed: f.network.seed, NoSpread: f.noSpread,
		Detector: election.Detector(f.detector), Keep: c.Keep, MaxEvents: c.Limit.Events}
	var err error
	if config.Participants, err = choice("rule", f.rule, "initiator", "participant"); err != nil {
		return config, err
	}
	if config.AskAll, err = choice("ask", f.ask, "higher", "all"); err != nil {
		return config, err
	}
	if config.TellAll, err = choice("tell", f.tell, "lower", "all"); err != nil {
		return config, err
	}
	if config.AnnounceOnce, err = choice("announce", f.announce, "again", "once"); err != nil {
		return config, err
	}
	if config.IDs, config.Faults, config.Network, err = f.network.read(c); err != nil {
		return config, err
	}
	if config.Initiators, err = parseAll("--initiator", f.initiators, election.ParseInitiator); err != nil {
		return config, err
	}
	if config.Attributes, err = parseAttributes(f.attributes); err != nil {
		return config, err
	}
	err = f.times(c, &config)
	return config, err
}

func (f *electionOptions) times(c *Command, config *election.Config) (err error) {
	if f.detector != string(election.DetectorHeartbeat) {
		const why = "that is for --detector heartbeat"
		if err = c.refuse(why, "heartbeat-period", "heartbeat-timeout"); err != nil {
			return err
		}
	}
	if config.Heartbeat, err = f.heartbeat.timing(); err != nil {
		return err
	}
	if config.AnswerTimeout, err = optionalTime("--timeout", f.timeout); err != nil {
		return err
	}
	if config.CoordinatorTimeout, err = optionalTime("--coordinator-timeout", f.wait); err != nil {
		return err
	}
	config.MaxTime, err = optionalTime("--max-time", f.network.maxTime)
	return err
}

// choice reports whether the second of two words was given.
func choice(name, text, first, second string) (bool, error) {
	if text != first && text != second {
		return false, fmt.Errorf("--%s %q: want %s or %s", name, text, first, second)
	}
	return text == second, nil
}

func parseAttributes(texts []string) (map[sim.ID]float64, error) {
	attributes := map[sim.ID]float64{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		id, errID := sim.ParseID(name)
		v, errValue := strconv.ParseFloat(value, 64)
		if !ok || errID != nil || errValue != nil {
			return nil, fmt.Errorf("--attribute %q: want ID=VALUE, such as 3=100 or 3=0.5", text)
		}
		attributes[id] = v
	}
	return attributes, nil
}

func (f *electionOptions) run(c *Command) (Outcome, error) {
	algorithm, err := election.Lookup(f.algorithm)
	if err != nil {
		return Outcome{}, err
	}
	config, err := f.config(c)
	if err != nil {
		return Outcome{}, err
	}
	r, err := election.Run(config)
	if err != nil {
		return Outcome{}, err
	}
	title := fmt.Sprintf("%s, %d processes, seed %d", r.Algorithm, r.N, r.Seed)
	return Outcome{Title: title, Result: r, Words: func(w io.Writer) { writeElection(w, r) },
		Notes: sessionNotes(f.algorithm, algorithm.Sessions(), config.Network), Ring: r.Ring, Service: r.Service,
		Records: r.Records, Truncated: r.Truncated, End: endOf(r.Time, r.CutOff, r.Records),
		algorithm: r.Algorithm, seed: r.Seed, Topology: topology(algorithm.Ring(), r.Service),
		safe: r.Safe, live: r.Live, ended: r.Ended,
		time: r.Time, cutOff: r.CutOff, counted: countedUntil(r.Counted, r.Ended), broken: r.Violations,
		bounds: table.Bounds("election", r.Algorithm, r.N)}, nil
}

// countedUntil is the time up to which messages count in a run that was ended because it
// had settled.
func countedUntil(at time.Duration, ended string) *float64 {
	if ended != "settled" {
		return nil
	}
	units := sim.Units(at)
	return &units
}

func writeElection(w io.Writer, r election.Result) {
	leader := "no leader"
	if r.Leader != nil {
		leader = fmt.Sprintf("leader %v", *r.Leader)
	}
	fmt.Fprintf(w, "%s, %d processes, seed %d: %s, %s\n", r.Algorithm, r.N, r.Seed, leader,
		timeWords(r.Time, r.CutOff))
	writeCounts(w, r.Messages, r.Lost)
	if r.Algorithm == "hs" {
		writePhases(w, r)
	}
	writeVerdict(w, r.Safe, r.Live, r.Ended, r.Violations)
}

// writePhases compares the winners of Hirschberg-Sinclair's phases with the bounds of the
// lectures. The winner of a phase probes in the next one.
func writePhases(w io.Writer, r election.Result) {
	fmt.Fprint(w, "winners:")
	for phase, winners := range r.Winners {
		fmt.Fprintf(w, "  phase %d: %d of at most %.2f", phase, winners, table.HSWinners(r.N, phase))
	}
	fmt.Fprintf(w, "\nlast phase: %d of at most %d   messages: at most %.1f by the sum, %.1f by the formula\n",
		len(r.Winners), table.HSLastPhase(r.N), table.HSSum(r.N), table.HSBound(r.N))
}
