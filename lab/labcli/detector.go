package labcli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/chart"
	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// heartbeatFlags are the parameters of the heartbeat detector.
type heartbeatFlags struct{ period, silence string }

func (f *heartbeatFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.period, "heartbeat-period", "2", "T: units between two heartbeats")
	c.Flags().StringVar(&f.silence, "heartbeat-timeout", "2",
		"D: units of silence beyond T before suspicion")
}

func (f *heartbeatFlags) timing() (detector.Timing, error) {
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

type detectorFlags struct {
	common    commonFlags
	output    outputFlags
	heartbeat heartbeatFlags
	length    string
	sweep     bool
}

func detectorCommand(o Options) *cobra.Command {
	var f detectorFlags
	c := &cobra.Command{
		Use:   "detector",
		Short: "Measure completeness and accuracy of a heartbeat failure detector",
		Long: "Every process sends a heartbeat to every other each T and suspects a peer that was\n" +
			"silent for T+D. safe says that nobody was suspected wrongly, live that every crash was\n" +
			"noticed by everybody. --sweep repeats the run as loss and delay grow and shows what the\n" +
			"mistakes do to the bully and ring elections.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c, o) },
	}
	c.Flags().StringVar(&f.length, "length", "200", "length of the run in units")
	c.Flags().BoolVar(&f.sweep, "sweep", false, "repeat as loss and delay grow, with elections")
	f.common.register(c, 6)
	f.heartbeat.register(c)
	f.output.register(c)
	return c
}

func (f *detectorFlags) config(c *cobra.Command) (detector.Config, error) {
	config := detector.Config{Seed: f.common.seed, Keep: f.output.keep()}
	if err := f.output.check(); err != nil {
		return config, err
	}
	if err := f.refuse(c); err != nil {
		return config, err
	}
	var err error
	if config.IDs, err = f.common.processes(c); err != nil {
		return config, err
	}
	if config.Faults, err = f.common.faults(); err != nil {
		return config, err
	}
	if config.Network, err = f.common.network(); err != nil {
		return config, err
	}
	if config.Timing, err = f.heartbeat.timing(); err != nil {
		return config, err
	}
	config.Length, err = optionalTime("--length", f.length)
	return config, err
}

// refuse reports flags that would be ignored.
func (f *detectorFlags) refuse(c *cobra.Command) error {
	if err := refuse(c, "that is for elections and locks: a detector runs for --length",
		"max-time"); err != nil || !f.sweep {
		return err
	}
	if err := refuse(c, "--sweep has its own", "loss", "delay"); err != nil {
		return err
	}
	return refuse(c, "--sweep is many runs, of which none is drawn",
		"trace", "svg", "html", "all-messages", "width", "rows")
}

func (f *detectorFlags) run(c *cobra.Command, o Options) error {
	config, err := f.config(c)
	if err != nil {
		return o.usage(err)
	}
	if f.sweep {
		rows, err := sweep(config)
		if err != nil {
			return o.usage(err)
		}
		return f.writeSweep(c.OutOrStdout(), rows)
	}
	result, err := detector.Run(config)
	if err != nil {
		return o.usage(err) // all that it refuses is in the flags
	}
	run := chart.Run{Title: fmt.Sprintf("heartbeats, %d processes, seed %d", result.N, result.Seed),
		Ring: result.Ring, Records: result.Records, Truncated: result.Truncated,
		Background: f.output.background}
	return f.output.finish(c.OutOrStdout(), run, result, func(w io.Writer) {
		fmt.Fprintf(w, "heartbeats, %d processes, seed %d, %g units\n", result.N, result.Seed,
			result.Time)
		writeCounts(w, result.Messages, 0)
		fmt.Fprintf(w, "%s\nsafe: %s   live: %s\n", result.Quality, yes(result.Safe), yes(result.Live))
	})
}

// sweepRow is one cell of the sweep.
type sweepRow struct {
	DelayMax float64          `json:"delay_max"`
	Loss     float64          `json:"loss"`
	Quality  detector.Quality `json:"quality"`
	Bully    sweepElection    `json:"bully"`
	Ring     sweepElection    `json:"ring"`
}

// sweepElection is what the election of a cell came to.
type sweepElection struct {
	Declared int  `json:"declared"`
	Safe     bool `json:"safe"`
	Live     bool `json:"live"`
}

// sweep repeats the run and the elections as loss and delay grow.
func sweep(config detector.Config) (rows []sweepRow, err error) {
	for _, most := range []string{"1", "2", "4"} {
		for _, loss := range []float64{0, 0.05, 0.2, 0.4} {
			delay, err := sim.ParseDelay("0.5-" + most)
			if err != nil {
				return nil, err
			}
			config.Network.Delay, config.Network.Loss = delay, loss
			result, err := detector.Run(config)
			if err != nil {
				return nil, err
			}
			row := sweepRow{DelayMax: sim.Units(delay.Max), Loss: loss, Quality: result.Quality}
			if row.Bully, err = electWith(config, "bully"); err != nil {
				return nil, err
			}
			if row.Ring, err = electWith(config, "ring"); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (f *detectorFlags) writeSweep(w io.Writer, rows []sweepRow) error {
	if f.output.json {
		return writeJSON(w, rows)
	}
	fmt.Fprintf(w, "%5s %5s %13s %9s %9s %9s   %-22s %-22s\n", "delay", "loss", "completeness",
		"accuracy", "mistakes", "detection", "bully: declared", "ring: declared")
	for _, r := range rows {
		fmt.Fprintf(w, "%5g %5g %13.3f %9.4f %9d %9.2f   %-22s %-22s\n", r.DelayMax, r.Loss,
			r.Quality.Completeness, r.Quality.Accuracy, r.Quality.FalseSuspicions,
			r.Quality.DetectionMean, r.Bully, r.Ring)
	}
	return nil
}

// String shows an election of the sweep in a column.
func (e sweepElection) String() string {
	return fmt.Sprintf("%d, safe %s, live %s", e.Declared, yes(e.Safe), yes(e.Live))
}

// electWith runs an election whose processes have no detector but this one.
func electWith(c detector.Config, algorithm string) (sweepElection, error) {
	r, err := election.Run(election.Config{Algorithm: algorithm, IDs: c.IDs, Faults: c.Faults,
		Network: c.Network, Seed: c.Seed, Detector: election.DetectorHeartbeat,
		Heartbeat: c.Timing, MaxTime: c.Length})
	return sweepElection{r.Declared, r.Safe, r.Live}, err
}
