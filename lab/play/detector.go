package play

import (
	"fmt"
	"io"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

type detectorOptions struct {
	network   network
	heartbeat heartbeat
	length    string
	sweep     bool
}

func detectorCommand() *Command {
	var f detectorOptions
	c := &Command{
		Name: "detector", Short: "Measure completeness and accuracy of a heartbeat failure detector",
		Long: "Every process sends a heartbeat to every other each T and suspects a peer that was\n" +
			"silent for T+D. safe says that nobody was suspected wrongly, live that every crash was\n" +
			"noticed by everybody. --sweep repeats the run as loss and delay grow and shows what the\n" +
			"mistakes do to the bully and ring elections.",
		run: f.run,
	}
	c.Options = append([]*Option{
		text(&f.length, "length", "TIME", "200", "length of the run in units"),
		toggle(&f.sweep, "sweep", "repeat as loss and delay grow, with elections"),
	}, append(f.network.options(6), f.heartbeat.options()...)...)
	return c
}

func (f *detectorOptions) config(c *Command) (detector.Config, error) {
	config := detector.Config{Seed: f.network.seed, Keep: c.Keep, MaxEvents: c.Limit.Events}
	err := c.refuse("that is for elections and locks: a detector runs for --length", "max-time")
	if err != nil {
		return config, err
	}
	if f.sweep {
		if err := c.refuse("--sweep has its own", "loss", "delay"); err != nil {
			return config, err
		}
		if c.Keep {
			return config, fmt.Errorf("--sweep is many runs, of which none is drawn")
		}
	}
	if config.IDs, config.Faults, config.Network, err = f.network.read(c); err != nil {
		return config, err
	}
	if config.Timing, err = f.heartbeat.timing(); err != nil {
		return config, err
	}
	config.Length, err = optionalTime("--length", f.length)
	return config, err
}

func (f *detectorOptions) run(c *Command) (Outcome, error) {
	config, err := f.config(c)
	if err != nil {
		return Outcome{}, err
	}
	if f.sweep {
		rows, err := sweep(config)
		return Outcome{Result: rows, Words: func(w io.Writer) { writeSweep(w, rows) }}, err
	}
	r, err := detector.Run(config)
	if err != nil {
		return Outcome{}, err
	}
	units := r.Time
	return Outcome{Title: fmt.Sprintf("heartbeats, %d processes, seed %d", r.N, r.Seed), Result: r,
		Words: func(w io.Writer) {
			fmt.Fprintf(w, "heartbeats, %d processes, seed %d, %g units\n", r.N, r.Seed, r.Time)
			writeCounts(w, r.Messages, 0)
			fmt.Fprintf(w, "%s\nsafe: %s   live: %s\n", r.Quality, yes(r.Safe), yes(r.Live))
		},
		Ring: r.Ring, Records: r.Records, Truncated: r.Truncated, End: config.Length,
		algorithm: r.Algorithm, seed: r.Seed, Topology: "mesh", safe: r.Safe, live: r.Live, ended: "limit",
		time: &units}, nil
}

// sweepRow is one setting of a sweep.
type sweepRow struct {
	DelayMax float64          `json:"delay_max"`
	Loss     float64          `json:"loss"`
	Quality  detector.Quality `json:"quality"`
	Bully    sweepElection    `json:"bully"`
	Ring     sweepElection    `json:"ring"`
}

// sweepElection is the effect of the detectors with that setting on an election.
type sweepElection struct {
	Declared int  `json:"declared"`
	Safe     bool `json:"safe"`
	Live     bool `json:"live"`
}

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

func writeSweep(w io.Writer, rows []sweepRow) {
	fmt.Fprintf(w, "%5s %5s %13s %9s %9s %9s   %-22s %-22s\n", "delay", "loss", "completeness",
		"accuracy", "mistakes", "detection", "bully: declared", "ring: declared")
	for _, r := range rows {
		fmt.Fprintf(w, "%5g %5g %13.3f %9.4f %9d %9.2f   %-22s %-22s\n", r.DelayMax, r.Loss,
			r.Quality.Completeness, r.Quality.Accuracy, r.Quality.FalseSuspicions,
			r.Quality.DetectionMean, r.Bully, r.Ring)
	}
}

// String shows an election of the sweep in a column.
func (e sweepElection) String() string {
	return fmt.Sprintf("%d, safe %s, live %s", e.Declared, yes(e.Safe), yes(e.Live))
}

// electWith runs an election whose processes have only this detector.
func electWith(c detector.Config, algorithm string) (sweepElection, error) {
	r, err := election.Run(election.Config{Algorithm: algorithm, IDs: c.IDs, Faults: c.Faults,
		Network: c.Network, Seed: c.Seed, Detector: election.DetectorHeartbeat,
		Heartbeat: c.Timing, MaxTime: c.Length})
	return sweepElection{r.Declared, r.Safe, r.Live}, err
}
