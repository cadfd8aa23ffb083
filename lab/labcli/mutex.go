package labcli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/chart"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

type mutexFlags struct {
	common     commonFlags
	output     outputFlags
	algorithm  string
	requests   int
	requesters []string
	first      string
	spacing    string
	think      string
	hold       string
	regenerate string
	plain      bool
}

func mutexCommand(o Options) *cobra.Command {
	var f mutexFlags
	c := &cobra.Command{
		Use:   "mutex",
		Short: "Run one mutual exclusion algorithm",
		Example: "  zk-lite lab mutex --algorithm ricart-agrawala --n 5 --requests 3 --json\n" +
			"  zk-lite lab mutex --algorithm maekawa --plain --n 9 --trace   # deadlocks\n" +
			"  zk-lite lab mutex --algorithm token-ring --duplicate token@3  # breaks safety",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c, o) },
	}
	var names []string
	for _, a := range mutex.Algorithms() {
		names = append(names, a.Name)
	}
	flags := c.Flags()
	flags.StringVar(&f.algorithm, "algorithm", "central", strings.Join(names, "|"))
	flags.IntVar(&f.requests, "requests", 1, "how often each process asks for the lock")
	flags.StringSliceVar(&f.requesters, "requester", nil,
		"process that asks (default: all); may be repeated")
	flags.StringVar(&f.first, "first", "0", "when the first process asks, in units")
	flags.StringVar(&f.spacing, "spacing", "0", "how much later each further process asks, in units")
	flags.StringVar(&f.think, "think", "0", "how long a process stays out between turns, in units")
	flags.StringVar(&f.hold, "hold", "1", "how long a process stays in, in units")
	flags.StringVar(&f.regenerate, "regenerate", "",
		"token-ring: silence after which the first process makes a new token, in units")
	flags.BoolVar(&f.plain, "plain", false,
		"maekawa: do without fail, inquire and relinquish, so that it can deadlock")
	completeWith(c, "algorithm", names...)
	f.common.register(c, 5)
	f.output.register(c)
	return c
}

func (f *mutexFlags) config(c *cobra.Command) (mutex.Config, error) {
	config := mutex.Config{Algorithm: f.algorithm, Requests: f.requests, Plain: f.plain,
		Seed: f.common.seed, Keep: f.output.keep()}
	algorithm, err := mutex.Lookup(f.algorithm)
	if err != nil {
		return config, err
	}
	if err := f.output.check(); err != nil {
		return config, err
	}
	if f.requests < 1 || f.requests > mutex.MaxRequests {
		return config, fmt.Errorf("--requests %d: want 1 to %d", f.requests, mutex.MaxRequests)
	}
	if config.IDs, err = f.common.processes(c); err != nil {
		return config, err
	}
	if config.Requesters, err = parseAll("--requester", f.requesters, sim.ParseID); err != nil {
		return config, err
	}
	if config.Faults, err = f.common.faults(); err != nil {
		return config, err
	}
	if config.Network, err = f.common.network(); err != nil {
		return config, err
	}
	noteSessions(c, f.algorithm, algorithm.Sessions(), config.Network)
	if config.FirstRequest, err = sim.ParseTime(f.first); err != nil {
		return config, fmt.Errorf("--first: %w", err)
	}
	if config.Spacing, err = sim.ParseTime(f.spacing); err != nil {
		return config, fmt.Errorf("--spacing: %w", err)
	}
	if config.Think, err = sim.ParseTime(f.think); err != nil {
		return config, fmt.Errorf("--think: %w", err)
	}
	if config.Hold, err = optionalTime("--hold", f.hold); err != nil {
		return config, err
	}
	if config.Regenerate, err = optionalTime("--regenerate", f.regenerate); err != nil {
		return config, err
	}
	config.MaxTime, err = optionalTime("--max-time", f.common.maxTime)
	return config, err
}

func (f *mutexFlags) run(c *cobra.Command, o Options) error {
	config, err := f.config(c)
	if err != nil {
		return o.usage(err)
	}
	result, err := mutex.Run(config)
	if err != nil {
		return o.usage(err) // all that it refuses is in the flags
	}
	title := fmt.Sprintf("%s, %d processes, seed %d", result.Algorithm, result.N, result.Seed)
	run := chart.Run{Title: title, Ring: result.Ring, Service: result.Service,
		Records: result.Records, Truncated: result.Truncated, Background: f.output.background}
	return f.output.finish(c.OutOrStdout(), run, result, func(w io.Writer) {
		writeMutex(w, result)
	})
}

func writeMutex(w io.Writer, r mutex.Result) {
	fmt.Fprintf(w, "%s, %d processes, seed %d: %d of %d requests served, time %g\n",
		r.Algorithm, r.N, r.Seed, r.Entries, r.Requests, r.Time)
	writeCounts(w, r.Messages, r.Lost)
	fmt.Fprintf(w, "per entry: %.2f messages   client delay: %s   synchronisation delay: %s\n",
		r.MessagesPerEntry, delayWords(r.ClientDelay), delayWords(r.SyncDelay))
	fmt.Fprintf(w, "wait: mean %g max %g   overtaken requests: %d\n",
		r.Fairness.WaitMean, r.Fairness.WaitMax, r.Fairness.Overtakes)
	fmt.Fprintf(w, "safe: %s   live: %s   ended: %s\n", yes(r.Safe), yes(r.Live), r.Ended)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "broken promise: %s\n", v)
	}
}

func delayWords(d mutex.Delay) string {
	if d.Count == 0 {
		return "not seen"
	}
	return fmt.Sprintf("mean %g max %g", d.Mean, d.Max)
}
