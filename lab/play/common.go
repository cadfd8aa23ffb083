package play

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// network contains the options of processes, network and faults, which all commands share.
type network struct {
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
	late        []string
	reorder     bool
	staticRing  bool
	maxTime     string
}

func (f *network) options(n int) []*Option {
	return []*Option{
		number(&f.n, "n", n, "number of processes, with ids 1 to n"),
		text(&f.ids, "ids", "IDS", "", "ids of the processes in ring order, clockwise, such as 3,32,5"),
		text(&f.delay, "delay", "DELAY", "1", "time of a message in units: D, or MIN-MAX drawn uniformly"),
		probability(&f.loss, "loss", "probability that a message is lost"),
		probability(&f.duplication, "duplication", "probability that a message arrives twice"),
		seed(&f.seed),
		each(&f.crash, "crash", "ID@TIME", "crash a process, or the coordinator S of central"),
		each(&f.recover, "recover", "ID@TIME", "bring a process back"),
		whole(&f.partition, "partition", "IDS|IDS@FROM-UNTIL", "split the processes"),
		each(&f.slow, "slow", "FROM-TO@DELAY", "set the delay of one link; S is the coordinator of central"),
		each(&f.drop, "drop", "TYPE@K", "lose the K-th message of a type"),
		each(&f.duplicate, "duplicate", "TYPE@K", "deliver the K-th message of a type twice"),
		each(&f.late, "late", "TYPE@K=DELAY", "set the delay of the K-th message of a type"),
		toggle(&f.reorder, "reorder", "let messages overtake one another on a link"),
		toggle(&f.staticRing, "static-ring", "do not repair the ring around crashed processes"),
		text(&f.maxTime, "max-time", "TIME", "", "end the run at this time at the latest (default: by size)"),
	}
}

// read returns the values of the options.
func (f *network) read(c *Command) (ids []sim.ID, faults []sim.Fault, n sim.Network, err error) {
	if ids, err = f.processes(c); err != nil {
		return nil, nil, n, err
	}
	if faults, err = f.faults(); err != nil {
		return nil, nil, n, err
	}
	n, err = f.network()
	return ids, faults, n, err
}

// topology is how the processes are drawn.
func topology(ring, service bool) string {
	switch {
	case service:
		return "star"
	case ring:
		return "ring"
	}
	return "mesh"
}

// processes returns the ids, up to the command's limit.
func (f *network) processes(c *Command) ([]sim.ID, error) {
	ids, err := f.named(c)
	if most := c.Limit.Processes; err == nil && most > 0 && len(ids) > most {
		return nil, fmt.Errorf("%d processes: want %d at most, here; the command line takes more", len(ids), most)
	}
	return ids, err
}

func (f *network) named(c *Command) ([]sim.ID, error) {
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
	if c.given("n") && f.n != len(ids) {
		return nil, fmt.Errorf("--n %d but --ids names %d processes: want one of the two, or both alike",
			f.n, len(ids))
	}
	return ids, nil
}

func (f *network) faults() ([]sim.Fault, error) {
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

func (f *network) network() (sim.Network, error) {
	n := sim.Network{Loss: f.loss, Duplication: f.duplication, Reorder: f.reorder,
		StaticRing: f.staticRing}
	var errs [6]error
	n.Delay, errs[0] = sim.ParseDelay(f.delay)
	n.Partitions, errs[1] = parseAll("--partition", f.partition, sim.ParsePartition)
	n.Slow, errs[2] = parseAll("--slow", f.slow, sim.ParseSlowLink)
	n.Drop, errs[3] = parseAll("--drop", f.drop, sim.ParseNth)
	n.Duplicate, errs[4] = parseAll("--duplicate", f.duplicate, sim.ParseNth)
	n.Late, errs[5] = parseAll("--late", f.late, sim.ParseLate)
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

// sessionNotes notes that probabilities of the network have no effect on messages of sessions.
func sessionNotes(algorithm string, sessions bool, n sim.Network) []string {
	if !sessions || n.Loss == 0 && n.Duplication == 0 {
		return nil
	}
	return []string{algorithm + " talks over sessions (TCP), which lose and repeat nothing: " +
		"--loss and --duplication have no effect"}
}

func writeCounts(w io.Writer, m sim.Messages, lost int) {
	fmt.Fprintf(w, "messages: %d", m.Total)
	for _, kind := range slices.Sorted(maps.Keys(m.ByType)) {
		fmt.Fprintf(w, "  %s %d", kind, m.ByType[kind])
	}
	if lost > 0 {
		fmt.Fprintf(w, "  (not delivered: %d)", lost)
	}
	fmt.Fprintln(w)
}

func writeVerdict(w io.Writer, safe, live bool, ended string, broken []sim.Violation) {
	fmt.Fprintf(w, "safe: %s   live: %s   ended: %s\n", yes(safe), yes(live), ended)
	for _, v := range broken {
		fmt.Fprintf(w, "broken promise: %v\n", v)
	}
}

// timeWords describe the time of a run, or when one that did not end was cut off.
func timeWords(units, cutOff *float64) string {
	if units == nil {
		return fmt.Sprintf("time -, cut off at %g", *cutOff)
	}
	return fmt.Sprintf("time %g", *units)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}

// endOf is the time at which a run's spans end.
func endOf(units, cutOff *float64, records []sim.Record) (end time.Duration) {
	for _, t := range []*float64{units, cutOff} {
		if t != nil {
			end = max(end, time.Duration(*t*float64(sim.Unit)))
		}
	}
	if len(records) > 0 && cutOff == nil {
		end = max(end, records[len(records)-1].At)
	}
	return end
}
