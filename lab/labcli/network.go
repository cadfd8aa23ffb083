package labcli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// commonFlags describe the processes, the network and the faults of a run.
type commonFlags struct {
	n           int
	ids         string
	delay       string
	loss        float64
	duplication float64
	seed        uint64
	crash       []string
	recover     []string
	partition   []string
	slow        []string
	drop        []string
	duplicate   []string
	reorder     bool
	staticRing  bool
	maxTime     string
}

func (f *commonFlags) register(c *cobra.Command, n int) {
	flags := c.Flags()
	flags.IntVar(&f.n, "n", n, "number of processes, with ids 1 to n")
	flags.StringVar(&f.ids, "ids", "", "ids of the processes in ring order, clockwise, such as 3,32,5")
	flags.StringVar(&f.delay, "delay", "1", "message `delay` in units: D, or MIN-MAX drawn uniformly")
	flags.Float64Var(&f.loss, "loss", 0, "probability that a message is lost")
	flags.Float64Var(&f.duplication, "duplication", 0, "probability that a message arrives twice")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of all randomness")
	flags.StringSliceVar(&f.crash, "crash", nil, "crash a process: `ID@TIME`; may be repeated")
	flags.StringSliceVar(&f.recover, "recover", nil,
		"bring a process back: `ID@TIME`; may be repeated")
	flags.StringArrayVar(&f.partition, "partition", nil,
		"split the processes: `IDS|IDS@FROM-UNTIL`; may be repeated")
	flags.StringSliceVar(&f.slow, "slow", nil,
		"set the delay of one link: `FROM-TO@DELAY`; may be repeated")
	flags.StringSliceVar(&f.drop, "drop", nil,
		"lose the K-th message of a type: `TYPE@K`; may be repeated")
	flags.StringSliceVar(&f.duplicate, "duplicate", nil,
		"deliver the K-th message of a type twice: `TYPE@K`; may be repeated")
	flags.BoolVar(&f.reorder, "reorder", false, "let messages overtake one another on a link")
	flags.BoolVar(&f.staticRing, "static-ring", false,
		"do not repair the ring around crashed processes")
	flags.StringVar(&f.maxTime, "max-time", "",
		"end the run at this `time` at the latest (default: by size)")
}

// processes returns the ids in ring order.
func (f *commonFlags) processes(c *cobra.Command) ([]sim.ID, error) {
	if f.ids == "" {
		if f.n < 1 || f.n > sim.MaxProcesses {
			return nil, fmt.Errorf("--n %d: want 1 to %d", f.n, sim.MaxProcesses)
		}
		ids := make([]sim.ID, f.n)
		for i := range ids {
			ids[i] = sim.ID(i + 1)
		}
		return ids, nil
	}
	ids, err := sim.ParseIDs(f.ids)
	if err != nil {
		return nil, fmt.Errorf("--ids: %w", err)
	}
	if c.Flags().Changed("n") && f.n != len(ids) {
		return nil, fmt.Errorf("--n %d but --ids names %d processes: want one of the two, or both alike",
			f.n, len(ids))
	}
	return ids, nil
}

func (f *commonFlags) faults() ([]sim.Fault, error) {
	crashes, err := parseAll("--crash", f.crash, func(text string) (sim.Fault, error) {
		return sim.ParseFault(text, false)
	})
	if err != nil {
		return nil, err
	}
	recoveries, err := parseAll("--recover", f.recover, func(text string) (sim.Fault, error) {
		return sim.ParseFault(text, true)
	})
	return append(crashes, recoveries...), err
}

func (f *commonFlags) network() (sim.Network, error) {
	n := sim.Network{Loss: f.loss, Duplication: f.duplication, Reorder: f.reorder,
		StaticRing: f.staticRing}
	for name, p := range map[string]float64{"--loss": f.loss, "--duplication": f.duplication} {
		if !(p >= 0 && p <= 1) {
			return n, fmt.Errorf("%s %g: want a probability from 0 to 1", name, p)
		}
	}
	var errs [5]error
	n.Delay, errs[0] = sim.ParseDelay(f.delay)
	n.Partitions, errs[1] = parseAll("--partition", f.partition, sim.ParsePartition)
	n.Slow, errs[2] = parseAll("--slow", f.slow, sim.ParseSlowLink)
	n.Drop, errs[3] = parseAll("--drop", f.drop, sim.ParseNth)
	n.Duplicate, errs[4] = parseAll("--duplicate", f.duplicate, sim.ParseNth)
	if errs[0] != nil {
		errs[0] = fmt.Errorf("--delay: %w", errs[0])
	}
	return n, errors.Join(errs[:]...)
}

func parseAll[T any](flag string, texts []string, parse func(string) (T, error)) ([]T, error) {
	var values []T
	for _, text := range texts {
		v, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		values = append(values, v)
	}
	return values, nil
}
