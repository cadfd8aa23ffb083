package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// section is the part of the document that this command writes.
const section = "servers"

// options are the flags.
type options struct {
	rounds, znodes        int
	duration, warmUp, jit time.Duration
	short                 bool
	rows, systems         string
	builds                []build
	dir                   string
	output                report.Output
	seed                  uint64
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// build is a zk-lite that was built before.
type build struct{ name, path string }

// addBuild reads one flag -binary.
func (o *options) addBuild(text string) error {
	name, path, ok := strings.Cut(text, "=")
	taken := slices.Contains(known(), name) || slices.ContainsFunc(o.builds, func(b build) bool { return b.name == name })
	if !ok || path == "" || taken {
		return errors.New("want NAME=PATH with a name that no other system has")
	}
	o.builds = append(o.builds, build{name, path})
	return nil
}

// parse reads the flags.
func parse(args []string) (*options, error) {
	o := &options{output: report.Output{Section: section}}
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 5, "rounds; the table has their medians")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "measured time of a row")
	f.DurationVar(&o.warmUp, "warm-up", 2*time.Second, "time before that, not measured")
	f.DurationVar(&o.jit, "jit-warm-up", 10*time.Second,
		"load on each system after its start, before the first row")
	f.BoolVar(&o.short, "short", false,
		"3 rounds of 3s, 700ms of warm-up, 4s of JIT warm-up, where they are not given: about 17 minutes")
	f.IntVar(&o.znodes, "znodes", 1_000_000, "znodes of the row memory")
	f.StringVar(&o.rows, "rows", "", "rows to measure, separated by commas; none: all")
	f.StringVar(&o.systems, "systems", "", "systems to measure, separated by commas; none: all")
	f.Func("binary", "NAME=PATH: a zk-lite to compare with this checkout's, as a system of that name; repeatable",
		o.addBuild)
	f.StringVar(&o.dir, "dir", "",
		"directory on the disk to measure; none: the system's for temporary files")
	o.output.Flags(f)
	f.Uint64Var(&o.seed, "seed", 1, "of everything random")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if o.short {
		given := map[string]bool{}
		f.Visit(func(f *flag.Flag) { given[f.Name] = true })
		for name, value := range map[string]string{"rounds": "3", "duration": "3s",
			"warm-up": "700ms", "jit-warm-up": "4s"} {
			if given[name] {
				continue
			}
			if err := f.Set(name, value); err != nil {
				return nil, err
			}
		}
	}
	if f.NArg() > 0 || o.rounds < 1 || o.duration <= 0 || o.warmUp < 0 || o.jit < 0 || o.znodes < 1 {
		return nil, errors.New("want no arguments, and flags above 0")
	}
	return o, nil
}

func run(ctx context.Context, o *options) error {
	c := &comparison{o: o, began: time.Now(), results: results{}}
	var err error
	if c.rows, err = selected(o.rows); err != nil {
		return err
	}
	if c.site, err = system.NewSite(o.dir); err != nil {
		return err
	}
	defer c.site.Close()
	if c.systems, err = systems(c.site, o); err != nil {
		return err
	}
	for _, s := range c.systems {
		c.names = append(c.names, s.Name())
	}
	if err := c.ask(ctx); err != nil {
		return err
	}
	c.end = errors.New("still running")
	err = c.measure(ctx, c.save)
	c.end = err
	return errors.Join(err, c.save())
}

// save writes what there is, so that an end at any moment leaves it.
func (c *comparison) save() error {
	return c.o.output.Save(c.o.output.File(c.site.Root, c.began), c.document(), c.all(), c.end)
}

// ask finds out the systems' versions, before the checkout changes again, and
// whether perf can count syncs.
func (c *comparison) ask(ctx context.Context) error {
	c.versions = map[string]string{}
	for _, s := range c.systems {
		var err error
		if c.versions[s.Name()], err = s.Version(); err != nil {
			return err
		}
	}
	counter, err := system.CountSyncs(ctx, []int{os.Getpid()})
	if err == nil {
		_, err = counter.Finish()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr,
			"compare: only zk-lite's disk syncs are counted, by itself, as perf cannot:", err)
	}
	c.perf = err == nil
	return nil
}

// systems prepares those that were asked for, and all builds.
func systems(site *system.Site, o *options) ([]system.System, error) {
	asked := strings.Split(o.systems, ",")
	for _, name := range asked {
		isBuild := slices.ContainsFunc(o.builds, func(b build) bool { return b.name == name })
		if o.systems != "" && !isBuild && !slices.Contains(known(), name) {
			return nil, fmt.Errorf("system %q is unknown; there are %s", name, strings.Join(known(), ", "))
		}
	}
	wanted := func(name string) bool { return o.systems == "" || slices.Contains(asked, name) }
	var all []system.System
	if wanted("ZooKeeper") {
		z, err := system.NewZooKeeper()
		if err != nil {
			return nil, err
		}
		all = append(all, z)
	}
	if wanted("etcd") {
		e, err := system.NewEtcd(site.Root, site.Dir)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	ours, err := system.NewZKLite(site.Root, site.Dir)
	if err != nil {
		return nil, err
	}
	if wanted("noop") {
		all = append(all, system.NewNoop(ours))
	}
	if wanted(system.Ours) {
		all = append(all, ours)
	}
	for _, b := range o.builds {
		z, err := system.NewBuild(b.name, b.path)
		if err != nil {
			return nil, err
		}
		all = append(all, z)
	}
	return all, nil
}

// line is a measurement in the file of all results.
type line struct {
	Row    string       `json:"row"`
	System string       `json:"system"`
	Round  int          `json:"round"`
	Syncs  int64        `json:"syncs"`
	Heap   int64        `json:"heap_bytes,omitempty"`
	Result *load.Result `json:"result"`
}

// all is every measurement.
func (c *comparison) all() (lines []line) {
	for _, r := range c.rows {
		for _, name := range c.names {
			for _, m := range c.results[r.id][name] {
				lines = append(lines, line{r.id, name, m.round, m.syncs, m.heap, m.result})
			}
		}
	}
	return lines
}
