package play

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/table"
)

type mutexOptions struct {
	network    network
	algorithm  string
	requests   int
	requesters []string
	first      string
	spacing    string
	think      string
	hold       string
	regenerate string
	work       string
	clocks     []string
	plain      bool
}

func mutexCommand(f *mutexOptions) *Command {
	var names []string
	for _, a := range mutex.Algorithms() {
		names = append(names, a.Name)
	}
	c := &Command{
		Name: "mutex", Short: "Run one mutual exclusion algorithm",
		Example: "  zk-lite lab mutex --algorithm ricart-agrawala --n 5 --requests 3 --json\n" +
			"  zk-lite lab mutex --algorithm maekawa --plain --n 9 --trace   # deadlocks\n" +
			"  zk-lite lab mutex --algorithm token-ring --duplicate token@3  # breaks safety",
		run: f.run,
	}
	c.Options = append([]*Option{
		text(&f.algorithm, "algorithm", "NAME", "central", "which algorithm runs", names...),
		number(&f.requests, "requests", 1, "how often each process asks for the lock"),
		each(&f.requesters, "requester", "ID", "process that asks (default: all)"),
		text(&f.first, "first", "TIME", "0", "when the first process asks, in units"),
		text(&f.spacing, "spacing", "TIME", "0", "how much later each further process asks, in units"),
		text(&f.think, "think", "TIME", "0", "how long a process stays out between turns, in units"),
		text(&f.hold, "hold", "TIME", "1", "how long a process stays in, in units"),
		text(&f.regenerate, "regenerate", "TIME", "",
			"token-ring: silence after which the first process makes a new token, in units"),
		text(&f.work, "work", "TIME", "",
			"central: how long the coordinator works on each message, in units (default: no time)"),
		each(&f.clocks, "clock", "ID=VALUE",
			"lamport, ricart-agrawala, maekawa: logical clock of a process at the start (default 0)"),
		toggle(&f.plain, "plain", "maekawa: do without fail, inquire and relinquish, so that it can deadlock"),
	}, f.network.options(5)...)
	return c
}

func (f *mutexOptions) config(c *Command) (mutex.Config, error) {
	config := mutex.Config{Algorithm: f.algorithm, Requests: f.requests, Plain: f.plain,
		Seed: f.network.seed, Keep: c.Keep, MaxEvents: c.Limit.Events}
	if f.requests < 1 || f.requests > mutex.MaxRequests {
		return config, fmt.Errorf("--requests %d: want 1 to %d", f.requests, mutex.MaxRequests)
	}
	var err error
	if config.IDs, config.Faults, config.Network, err = f.network.read(c); err != nil {
		return config, err
	}
	if config.Requesters, err = parseAll("--requester", f.requesters, sim.ParseID); err != nil {
		return config, err
	}
	if config.Clocks, err = parseClocks(f.clocks); err != nil {
		return config, err
	}
	err = f.times(&config)
	return config, err
}

func (f *mutexOptions) times(config *mutex.Config) (err error) {
	for _, t := range []struct {
		name, text string
		to         *time.Duration
	}{{"--first", f.first, &config.FirstRequest}, {"--spacing", f.spacing, &config.Spacing},
		{"--think", f.think, &config.Think}} {
		if *t.to, err = sim.ParseTime(t.text); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, t := range []struct {
		name, text string
		to         *time.Duration
	}{{"--hold", f.hold, &config.Hold}, {"--regenerate", f.regenerate, &config.Regenerate},
		{"--work", f.work, &config.Work}, {"--max-time", f.network.maxTime, &config.MaxTime}} {
		if *t.to, err = optionalTime(t.name, t.text); err != nil {
			return err
		}
	}
	return nil
}

// maxClock bounds the clocks that a user gives, so that they cannot overflow.
const maxClock = 1_000_000_000

func parseClocks(texts []string) (map[sim.ID]int, error) {
	clocks := map[sim.ID]int{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		id, errID := sim.ParseID(name)
		v, errValue := strconv.Atoi(value)
		if !ok || errID != nil || errValue != nil || v < 0 || v > maxClock {
			return nil, fmt.Errorf("--clock %q: want ID=VALUE, VALUE from 0 to %d, such as 2=14", text, maxClock)
		}
		clocks[id] = v
	}
	return clocks, nil
}

func (f *mutexOptions) run(c *Command) (Outcome, error) {
	algorithm, err := mutex.Lookup(f.algorithm)
	if err != nil {
		return Outcome{}, err
	}
	config, err := f.config(c)
	if err != nil {
		return Outcome{}, err
	}
	r, err := mutex.Run(config)
	if err != nil {
		return Outcome{}, err
	}
	title := fmt.Sprintf("%s, %d processes, seed %d", r.Algorithm, r.N, r.Seed)
	return Outcome{Title: title, Result: r, Words: func(w io.Writer) { writeMutex(w, r) },
		Notes: sessionNotes(f.algorithm, algorithm.Sessions(), config.Network), Ring: r.Ring, Service: r.Service,
		Records: r.Records, Truncated: r.Truncated, End: endOf(r.Time, r.CutOff, r.Records),
		algorithm: r.Algorithm, seed: r.Seed, Topology: topology(algorithm.Ring(), r.Service),
		safe: r.Safe, live: r.Live, ended: r.Ended,
		time: r.Time, cutOff: r.CutOff, broken: r.Violations, bounds: table.Bounds("mutex", r.Algorithm, r.N)}, nil
}

func writeMutex(w io.Writer, r mutex.Result) {
	fmt.Fprintf(w, "%s, %d processes, seed %d: %d of %d requests served, %s\n",
		r.Algorithm, r.N, r.Seed, r.Entries, r.Requests, timeWords(r.Time, r.CutOff))
	writeCounts(w, r.Messages, r.Lost)
	fmt.Fprintf(w, "per entry: %.2f messages   client delay: %s, at exit %s   synchronisation delay: %s\n",
		r.MessagesPerEntry, delayWords(r.ClientDelay), delayWords(r.ExitDelay), delayWords(r.SyncDelay))
	fmt.Fprintf(w, "wait: mean %g max %g   overtaken requests: %d   against happened-before: %d   twice: %d\n",
		r.Fairness.WaitMean, r.Fairness.WaitMax, r.Fairness.Overtakes, r.Fairness.OutOfOrder, r.Fairness.Twice)
	writeVerdict(w, r.Safe, r.Live, r.Ended, r.Violations)
	for _, v := range r.Fairness.Examples {
		fmt.Fprintf(w, "unfair: %v\n", v)
	}
}

func delayWords(d mutex.Delay) string {
	if d.Count == 0 {
		return "not seen"
	}
	return fmt.Sprintf("mean %g max %g", d.Mean, d.Max)
}
