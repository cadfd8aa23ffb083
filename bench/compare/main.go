package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// options are the flags.
type options struct {
	rounds, znodes         int
	duration, warmUp, heat time.Duration
	rows, systems          string
	dir, out, raw          string
	seed                   uint64
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the table has their medians")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "measured time of a row")
	flag.DurationVar(&o.warmUp, "warm-up", 2*time.Second, "time before that, not measured")
	flag.DurationVar(&o.heat, "heat", 10*time.Second,
		"load on each system after its start, before the first row")
	flag.IntVar(&o.znodes, "znodes", 1_000_000, "znodes of the row memory")
	flag.StringVar(&o.rows, "rows", "", "rows to measure, separated by commas; none: all")
	flag.StringVar(&o.systems, "systems", "", "systems to measure, separated by commas; none: all")
	flag.StringVar(&o.dir, "dir", "",
		"directory on the disk to measure; none: the system's for temporary files")
	flag.StringVar(&o.out, "out", "",
		`file for the table; none: docs/BENCHMARKS.md; "-": standard output`)
	flag.StringVar(&o.raw, "raw", "", "file for all results as JSON")
	flag.Uint64Var(&o.seed, "seed", 1, "of everything random")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	begin := time.Now()
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(root, "docs", "BENCHMARKS.md")
	}
	if o.dir, err = os.MkdirTemp(o.dir, "zk-lite-compare-"); err != nil {
		return fmt.Errorf("making a directory for the data: %w", err)
	}
	defer func() {
		if err := os.RemoveAll(o.dir); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
		}
	}()
	where, err := machine(o.dir)
	if err != nil {
		return err
	}
	c := &comparison{o: o, results: results{}}
	if c.rows, err = selected(o.rows); err != nil {
		return err
	}
	if c.systems, err = systems(root, o); err != nil {
		return err
	}
	if err := c.ask(ctx); err != nil {
		return err
	}
	// What was measured before an error is worth a look, but not a document.
	err = c.measure(ctx)
	if text := c.document(where, begin); o.out == "-" {
		fmt.Print(text)
	} else if err == nil {
		err = replace(o.out, text)
	}
	return errors.Join(err, c.writeRaw())
}

// ask finds out the systems' versions, before the checkout changes again, and
// whether perf can count syncs.
func (c *comparison) ask(ctx context.Context) error {
	c.versions = map[string]string{}
	for _, s := range c.systems {
		var err error
		if c.versions[s.name()], err = s.version(); err != nil {
			return err
		}
	}
	counter, err := countSyncs(ctx, []int{os.Getpid()})
	if err == nil {
		_, err = counter.finish()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr,
			"compare: only zk-lite's disk syncs are counted, by itself, as perf cannot:", err)
	}
	c.perf = err == nil
	return nil
}

// moduleRoot is where the module's go.mod is.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	path, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if path != "github.com/zk-lite/zk-lite" {
		return "", fmt.Errorf("run this inside zk-lite's module, not %s", path)
	}
	return dir, nil
}

// systems prepares those that were asked for and that a row needs.
func systems(root string, o *options) ([]system, error) {
	wanted := func(name string) bool {
		if o.systems == "" {
			return true
		}
		for _, s := range strings.Split(o.systems, ",") {
			if s == name {
				return true
			}
		}
		return false
	}
	var all []system
	if wanted("ZooKeeper") {
		z, err := newZooKeeper()
		if err != nil {
			return nil, err
		}
		all = append(all, z)
	}
	if wanted("etcd") {
		e, err := newEtcd(root, o.dir)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	ours, err := newZKLite(root, o.dir)
	if err != nil {
		return nil, err
	}
	if wanted("ceiling") {
		all = append(all, &canned{binary: ours.binary})
	}
	if wanted("zk-lite") {
		all = append(all, ours)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("-systems %q: there are %s", o.systems, strings.Join(columns(), ", "))
	}
	return all, nil
}

// document is the text of the results.
func (c *comparison) document(where []string, begin time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured on %s in %v: %d rounds of %v a row after %v of warm-up, "+
		"%v of heating up after each start.\n\n", begin.UTC().Format("2006-01-02"),
		time.Since(begin).Round(time.Second),
		c.o.rounds, c.o.duration, c.o.warmUp, c.o.heat)
	for _, line := range where {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, s := range c.systems {
		fmt.Fprintf(&b, "- %s: %s\n", s.name(), c.versions[s.name()])
	}
	fmt.Fprintf(&b, "\n### Aims\n\n%s", c.summary())
	fmt.Fprintf(&b, "\n### Details\n\nMedians over the rounds. CPU is that of all three servers. "+
		"Disk syncs are those of all three servers, %s.\n\n%s", c.counted(), c.details())
	if text := c.failovers(); text != "" {
		fmt.Fprintf(&b, "\n### The leader killed\n\n%s", text)
	}
	if text := c.memories(); text != "" {
		fmt.Fprintf(&b, "\n### Memory\n\n%s", text)
	}
	b.WriteString("\n### Settings\n\n")
	for _, s := range c.systems {
		for _, line := range s.settings() {
			fmt.Fprintf(&b, "- %s: `%s`\n", s.name(), line)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// counted says how syncs were counted.
func (c *comparison) counted() string {
	if c.perf {
		return "counted by the kernel (perf stat on fdatasync, fsync, msync, sync_file_range) during " +
			"the measured time"
	}
	return "zk-lite's counted by itself (mntr, fsync_count), the others' not counted"
}

// writeRaw writes every measurement.
func (c *comparison) writeRaw() error {
	if c.o.raw == "" {
		return nil
	}
	type line struct {
		Row    string       `json:"row"`
		System string       `json:"system"`
		Round  int          `json:"round"`
		Syncs  int64        `json:"syncs"`
		Heap   int64        `json:"heap_bytes,omitempty"`
		Result *load.Result `json:"result"`
	}
	var lines []line
	for _, r := range c.rows {
		for _, name := range columns() {
			for i, m := range c.results[r.id][name] {
				lines = append(lines, line{r.id, name, i + 1, m.syncs, m.heap, m.result})
			}
		}
	}
	text, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		return fmt.Errorf("writing all results: %w", err)
	}
	if err := os.WriteFile(c.o.raw, text, 0o644); err != nil {
		return fmt.Errorf("writing all results: %w", err)
	}
	return nil
}
