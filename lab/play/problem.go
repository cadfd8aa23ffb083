package play

import (
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/lab/problem"
	"github.com/zk-lite/zk-lite/lab/race"
	"github.com/zk-lite/zk-lite/lab/sim"
)

type problemOptions struct {
	network   network
	algorithm string
	rounds    int
	against   []string
	early     bool
	unbroken  bool
}

func problemCommand() *Command {
	var f problemOptions
	var names []string
	for _, p := range problem.Problems() {
		names = append(names, p.Name)
	}
	c := &Command{
		Name: "problem", Short: "Run the generals, a commit, a primary with its backup, or a deadlock",
		Example: "  zk-lite lab problem --algorithm two-generals --drop attack@3   # one attacks alone\n" +
			"  zk-lite lab problem --algorithm two-phase-commit --crash 1@2    # all others are in doubt\n" +
			"  zk-lite lab problem --algorithm zab --crash 1@2                 # the same crash, and no doubt",
		run: f.run,
	}
	c.Options = append([]*Option{
		text(&f.algorithm, "algorithm", "NAME", "two-generals", "which problem runs", names...),
		number(&f.rounds, "rounds", 3, "two-generals: messages; primary-backup: deposits of each client"),
		each(&f.against, "against", "ID", "two-phase-commit: participant that votes no"),
		toggle(&f.early, "early", "primary-backup: confirm before the backup has the deposit"),
		toggle(&f.unbroken, "unbroken", "deadlock: elect no victim"),
	}, f.network.options(4)...)
	c.Option("n").Help = "number of processes, with ids 1 to n (default: as the problem has it)"
	c.Option("n").Default = ""
	return c
}

func (f *problemOptions) config(c *Command, p problem.Problem) (problem.Config, error) {
	config := problem.Config{Problem: p.Name, Rounds: f.rounds, Early: f.early, Unbroken: f.unbroken,
		Seed: f.network.seed, Keep: c.Keep, MaxEvents: c.Limit.Events}
	if f.rounds < 1 || f.rounds > problem.MaxRounds {
		return config, fmt.Errorf("--rounds %d: want 1 to %d", f.rounds, problem.MaxRounds)
	}
	if !c.given("n") {
		f.network.n = p.N
	}
	var err error
	if config.IDs, config.Faults, config.Network, err = f.network.read(c); err != nil {
		return config, err
	}
	if config.Against, err = parseAll("--against", f.against, sim.ParseID); err != nil {
		return config, err
	}
	config.MaxTime, err = optionalTime("--max-time", f.network.maxTime)
	return config, err
}

func (f *problemOptions) run(c *Command) (Outcome, error) {
	p, err := problem.Lookup(f.algorithm)
	if err != nil {
		return Outcome{}, err
	}
	config, err := f.config(c, p)
	if err != nil {
		return Outcome{}, err
	}
	r, err := problem.Run(config)
	if err != nil {
		return Outcome{}, err
	}
	title := fmt.Sprintf("%s, %d processes, seed %d", r.Problem, r.N, r.Seed)
	return Outcome{Title: title, Result: r, Words: func(w io.Writer) { writeProblem(w, r) }, Ring: r.Ring,
		Records: r.Records, Truncated: r.Truncated, End: endOf(r.Time, r.CutOff, r.Records),
		algorithm: r.Problem, seed: r.Seed, Topology: p.Topology(), safe: r.Safe, live: r.Live, ended: r.Ended,
		time: r.Time, cutOff: r.CutOff, broken: r.Violations}, nil
}

func writeProblem(w io.Writer, r problem.Result) {
	fmt.Fprintf(w, "%s, %d processes, seed %d: %s\n", r.Problem, r.N, r.Seed, timeWords(r.Time, r.CutOff))
	writeCounts(w, r.Messages, r.Lost)
	for _, m := range r.Measures {
		fmt.Fprintf(w, "%s: %s\n", m.Name, m.Value)
	}
	writeVerdict(w, r.Safe, r.Live, r.Ended, r.Violations)
}

type raceOptions struct {
	program, schedule string
	atomic            bool
}

func raceCommand() *Command {
	var f raceOptions
	var names []string
	for _, p := range race.Programs() {
		names = append(names, p.Name)
	}
	c := &Command{
		Name: "race", Short: "Run two threads with one variable in every order of their steps",
		Example: "  zk-lite lab race --algorithm counter --schedule 112212 --trace\n" +
			"  zk-lite lab race --algorithm deposits --atomic",
		run: f.run,
	}
	c.Options = []*Option{
		text(&f.program, "algorithm", "NAME", "counter", "what the threads do", names...),
		text(&f.schedule, "schedule", "DIGITS", "",
			"the order to show: 112212 is two steps of thread 1, two of thread 2, ... (default: one that goes wrong)"),
		toggle(&f.atomic, "atomic", "let no thread be interrupted, as a lock does"),
	}
	return c
}

func (f *raceOptions) run(*Command) (Outcome, error) {
	r, err := race.Run(race.Config{Program: f.program, Schedule: f.schedule, Atomic: f.atomic})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Title: fmt.Sprintf("%s, order %s", r.Program, r.Shown), Result: r,
		Words: func(w io.Writer) {
			fmt.Fprintf(w, "%s: %d orders of the steps\n", r.Program, r.Schedules)
			for _, final := range r.Finals {
				verdict := map[bool]string{true: "right", false: "WRONG"}[final.Right]
				fmt.Fprintf(w, "ends with %d: %d, such as %s: %s\n", final.Value, final.Schedules, final.Example,
					verdict)
			}
			writeVerdict(w, r.Safe, r.Live, "quiet", r.Violations)
		},
		Ring: r.Ring, Service: true, Records: r.Records, End: endOf(r.Time, nil, r.Records),
		algorithm: r.Program, Topology: "star", safe: r.Safe, live: r.Live, ended: "quiet", time: r.Time,
		broken: r.Violations}, nil
}
