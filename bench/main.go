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

	"github.com/zk-lite/zk-lite/bench/growth"
	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// suite is a number of rows that belong together.
type suite struct {
	name        string
	long, short times
	rows        []row
}

func suites() []suite {
	const s, ms = time.Second, time.Millisecond
	return []suite{
		{"servers", times{5, 10 * s, 2 * s, 10 * s}, times{3, 3 * s, 700 * ms, 4 * s}, serverRows()},
		{"http", times{5, 5 * s, s, 4 * s}, times{3, 3 * s, 500 * ms, 2 * s}, httpRows()},
		{"clients", times{5, 5 * s, s, 8 * s}, times{3, 2 * s, 300 * ms, 4 * s}, clientRows()},
		{growth.Section, times{1, 3 * s, 700 * ms, 0}, times{1, s, 250 * ms, 0}, nil},
	}
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

func run(ctx context.Context, o *options) error {
	picked, err := o.selected()
	if err != nil {
		return err
	}
	site, err := system.NewSite(o.dir)
	if err != nil {
		return err
	}
	defer site.Close()
	for i := range picked {
		s := &picked[i]
		t, err := o.of(s)
		switch {
		case err != nil:
		case s.name == growth.Section:
			curves := slices.DeleteFunc(slices.Clone(o.rows), func(id string) bool {
				return !slices.Contains(growth.Curves(), id)
			})
			err = growth.Run(ctx, site, &growth.Options{Duration: t.duration, WarmUp: t.warmUp, Znodes: o.znodes,
				Curves: curves, Output: &o.output})
		default:
			err = o.compare(ctx, site, s, t)
		}
		if err != nil {
			return fmt.Errorf("suite %s: %w", s.name, err)
		}
	}
	return nil
}

// compare measures a suite of rows.
func (o *options) compare(ctx context.Context, site *system.Site, s *suite, t times) (err error) {
	c := &comparison{suite: s.name, times: t, o: o, site: site, began: time.Now(), rows: s.rows,
		results: results{}}
	if c.systems, err = c.prepare(); err != nil {
		return err
	}
	if s.name == "clients" {
		if c.loader, err = buildClients(site); err != nil {
			return err
		}
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
	return c.o.output.Save(c.o.output.File(c.site.Root, c.began), c.suite, c.document(), c.all(), c.end)
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

// prepare builds or finds the systems that were asked for and that a row needs, and all builds.
func (c *comparison) prepare() (all []system.System, err error) {
	o, asked := c.o, strings.Split(c.o.systems, ",")
	for _, name := range asked {
		isBuild := slices.ContainsFunc(o.builds, func(b build) bool { return b.name == name })
		if o.systems != "" && !isBuild && !slices.Contains(known(), name) {
			return nil, fmt.Errorf("system %q is unknown; there are %s", name, strings.Join(known(), ", "))
		}
	}
	ours, err := system.NewZKLite(c.site.Root, c.site.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range known() {
		needed := slices.ContainsFunc(c.rows, func(r row) bool { return slices.Contains(r.systems, name) })
		if !needed || o.systems != "" && !slices.Contains(asked, name) {
			continue
		}
		var s system.System = ours
		switch name {
		case "ZooKeeper":
			s, err = system.NewZooKeeper()
		case "etcd":
			s, err = system.NewEtcd(c.site.Root, c.site.Dir)
		case "noop":
			s = system.NewNoop(ours)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	for _, b := range o.builds {
		var z *system.ZKLite
		if b.path == "" {
			z, err = ours.Secure(b.name, c.site.Dir, b.name == allTLS)
		} else {
			z, err = system.NewBuild(b.name, b.path)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, z)
	}
	if len(all) == 0 {
		return nil, errors.New("no row and system that belong together were asked for")
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
