package labcli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/chart"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

type electionFlags struct {
	common     commonFlags
	output     outputFlags
	heartbeat  heartbeatFlags
	algorithm  string
	initiators []string
	attributes []string
	timeout    string
	detector   string
	noSpread   bool
}

func electionCommand(o Options) *cobra.Command {
	var f electionFlags
	c := &cobra.Command{
		Use:   "election",
		Short: "Run one leader election",
		Example: "  zk-lite lab election --algorithm bully --ids 3,5,6,12,32,80 " +
			"--crash 80@0 --initiator 6 --trace\n" +
			"  zk-lite lab election --algorithm ring --ids 3,32,5,80,6,12 --initiator 3 --json",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c, o) },
	}
	var names []string
	for _, a := range election.Algorithms() {
		names = append(names, a.Name)
	}
	flags := c.Flags()
	flags.StringVar(&f.algorithm, "algorithm", "bully", strings.Join(names, "|"))
	flags.StringSliceVar(&f.initiators, "initiator", nil,
		"process that starts at time 0, knowing of the crashes at time 0; may be repeated")
	flags.StringSliceVar(&f.attributes, "attribute", nil,
		"`ID=VALUE` by which the ring ranks a process (default its id); may be repeated")
	flags.StringVar(&f.timeout, "timeout", "",
		"how long bully and broadcast wait for answers (default: two message times)")
	flags.StringVar(&f.detector, "detector", "perfect",
		"who tells of crashes after time 0: perfect|none|neighbour|heartbeat")
	flags.BoolVar(&f.noSpread, "no-spread", false,
		"majority: give all processes the same election timeout")
	completeWith(c, "algorithm", names...)
	completeWith(c, "detector", string(election.DetectorPerfect), string(election.DetectorNone),
		string(election.DetectorNeighbour), string(election.DetectorHeartbeat))
	f.common.register(c, 6)
	f.heartbeat.register(c)
	f.output.register(c)
	return c
}

func (f *electionFlags) config(c *cobra.Command) (election.Config, error) {
	config := election.Config{Algorithm: f.algorithm, Seed: f.common.seed, NoSpread: f.noSpread,
		Detector: election.Detector(f.detector), Keep: f.output.keep()}
	algorithm, err := election.Lookup(f.algorithm)
	if err != nil {
		return config, err
	}
	if err := f.output.check(); err != nil {
		return config, err
	}
	if config.IDs, err = f.common.processes(c); err != nil {
		return config, err
	}
	if config.Initiators, err = parseAll("--initiator", f.initiators, sim.ParseID); err != nil {
		return config, err
	}
	if config.Attributes, err = parseAttributes(f.attributes); err != nil {
		return config, err
	}
	if config.Faults, err = f.common.faults(); err != nil {
		return config, err
	}
	if config.Network, err = f.common.network(); err != nil {
		return config, err
	}
	noteSessions(c, f.algorithm, algorithm.Sessions(), config.Network)
	if f.detector != string(election.DetectorHeartbeat) {
		const why = "that is for --detector heartbeat"
		if err = refuse(c, why, "heartbeat-period", "heartbeat-timeout"); err != nil {
			return config, err
		}
	}
	if config.Heartbeat, err = f.heartbeat.timing(); err != nil {
		return config, err
	}
	if config.AnswerTimeout, err = optionalTime("--timeout", f.timeout); err != nil {
		return config, err
	}
	config.MaxTime, err = optionalTime("--max-time", f.common.maxTime)
	return config, err
}

// optionalTime reads a time that must be above zero if it is given.
func optionalTime(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	t, err := sim.ParseTime(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", flag, err)
	}
	if t <= 0 {
		return 0, fmt.Errorf("%s %s: want a time above 0", flag, text)
	}
	return t, nil
}

func parseAttributes(texts []string) (map[sim.ID]int, error) {
	attributes := map[sim.ID]int{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		id, errID := sim.ParseID(name)
		v, errValue := strconv.Atoi(value)
		if !ok || errID != nil || errValue != nil {
			return nil, fmt.Errorf("--attribute %q: want ID=VALUE, such as 3=100", text)
		}
		attributes[id] = v
	}
	return attributes, nil
}

func (f *electionFlags) run(c *cobra.Command, o Options) error {
	config, err := f.config(c)
	if err != nil {
		return o.usage(err)
	}
	result, err := election.Run(config)
	if err != nil {
		return o.usage(err) // all that it refuses is in the flags
	}
	title := fmt.Sprintf("%s, %d processes, seed %d", result.Algorithm, result.N, result.Seed)
	run := chart.Run{Title: title, Ring: result.Ring, Service: result.Service,
		Records: result.Records, Truncated: result.Truncated, Background: f.output.background}
	return f.output.finish(c.OutOrStdout(), run, result, func(w io.Writer) {
		writeElection(w, result)
	})
}

// finish writes pictures, chart and result, in JSON or in words.
func (f *outputFlags) finish(w io.Writer, run chart.Run, result any, words func(io.Writer)) error {
	if err := f.pictures(run); err != nil {
		return err
	}
	var text bytes.Buffer
	if f.trace {
		if err := run.Text(&text, f.width, f.rows); err != nil {
			return err
		}
	}
	if f.json && f.trace {
		return writeJSON(w, traced{result, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")})
	}
	if f.json {
		return writeJSON(w, result)
	}
	if f.trace {
		text.WriteByte('\n')
	}
	words(&text)
	_, err := w.Write(text.Bytes())
	return err
}

func writeElection(w io.Writer, r election.Result) {
	leader := "no leader"
	if r.Leader != nil {
		leader = fmt.Sprintf("leader %v", *r.Leader)
	}
	fmt.Fprintf(w, "%s, %d processes, seed %d: %s, time %g\n", r.Algorithm, r.N, r.Seed, leader,
		r.Time)
	writeCounts(w, r.Messages, r.Lost)
	fmt.Fprintf(w, "safe: %s   live: %s   ended: %s\n", yes(r.Safe), yes(r.Live), r.Ended)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "broken promise: %s\n", v)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}
