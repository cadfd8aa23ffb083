package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/client"
)

// section is the part of the document that this command writes.
const section = "clients"

// options are the flags.
type options struct {
	rounds                int
	duration, warmUp, jit time.Duration
	short                 bool
	systems, clients      string
	dir, profile          string
	output                report.Output
}

func main() {
	o := options{output: report.Output{Section: section}}
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the table has their medians")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "measured time of a row")
	flag.DurationVar(&o.warmUp, "warm-up", time.Second, "time before that, not measured")
	flag.DurationVar(&o.jit, "jit-warm-up", 8*time.Second, "load on the servers after each start")
	flag.BoolVar(&o.short, "short", false,
		"3 rounds of 2s, 300ms of warm-up, 4s of JIT warm-up: about 4 minutes")
	flag.StringVar(&o.systems, "systems", "zk-lite,ZooKeeper", "whose servers")
	flag.StringVar(&o.clients, "clients", strings.Join(clients(), ","), "which clients")
	flag.StringVar(&o.dir, "dir", "", "directory on the disk; none: that for temporary files")
	o.output.Flags(flag.CommandLine)
	flag.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of the clients")
	flag.Parse()
	if o.short {
		o.rounds, o.duration, o.warmUp, o.jit = 3, 2*time.Second, 300*time.Millisecond, 4*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// The clients, in the order of the columns.
const (
	goZooKeeper = "go-zookeeper"
	blocking    = "zk-lite"
	async       = "zk-lite async"
)

func clients() []string { return []string{goZooKeeper, blocking, async} }

func depths() []int { return []int{1, 64, 1024} }

// run measures all rounds and writes the table also when it is interrupted.
func run(ctx context.Context, o *options) error {
	site, err := system.NewSite(o.dir)
	if err != nil {
		return err
	}
	defer site.Close()
	t := &table{o: o, site: site, began: time.Now(), versions: map[string]string{}}
	systems, err := t.prepare()
	if err != nil {
		return err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for round := range o.rounds {
		for i := range systems {
			s := systems[(i+round)%len(systems)]
			err := t.round(ctx, s, round)
			if ctx.Err() != nil {
				t.end = err
				return errors.Join(err, t.save())
			}
			if err != nil { // costs the other systems nothing
				fmt.Fprintf(os.Stderr, "  %v\n", err)
				first, _, _ := strings.Cut(err.Error(), "\n")
				t.troubles = append(t.troubles, fmt.Sprintf("%s, round %d: `%s`", s.Name(), round+1, first))
			}
			t.end = errors.New("still running")
			if err := t.save(); err != nil {
				return err
			}
		}
	}
	t.end = nil
	return t.save()
}

// prepare builds what is asked for.
func (t *table) prepare() (all []system.System, err error) {
	for _, name := range strings.Split(t.o.systems, ",") {
		var s system.System
		switch name {
		case "zk-lite":
			s, err = system.NewZKLite(t.site.Root, t.site.Dir)
		case "ZooKeeper":
			s, err = system.NewZooKeeper()
		default:
			err = fmt.Errorf("-systems %q: there are zk-lite and ZooKeeper", name)
		}
		if err != nil {
			return nil, err
		}
		if t.versions[name], err = s.Version(); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// round measures all clients at the servers of one system.
func (t *table) round(ctx context.Context, s system.System, round int) error {
	fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, t.o.rounds, s.Name())
	e, err := system.Up(ctx, s, t.site.Dir, system.Options{})
	if err != nil {
		return err
	}
	defer e.Down()
	leader, err := load.Leader(ctx, e.Hosts)
	if err != nil {
		return err
	}
	host := e.Hosts[leader]
	if err := fill(ctx, host); err != nil {
		return err
	}
	hot := options{duration: t.o.jit / 2}
	for _, op := range []load.Op{load.Get, load.Set} {
		if t.o.jit == 0 {
			break
		}
		if _, err := one(ctx, &hot, blocking, host, op, 64); err != nil {
			return fmt.Errorf("JIT warm-up: %w", err)
		}
	}
	asked := strings.Split(t.o.clients, ",")
	for _, op := range []load.Op{load.Set, load.Get} {
		for _, depth := range depths() {
			for i := range clients() {
				name := clients()[(i+round)%len(clients())]
				if !slices.Contains(asked, name) || name == async && depth == 1 {
					continue // with one call under way there is nothing to be asynchronous about
				}
				m, err := one(ctx, t.o, name, host, op, depth)
				if ctx.Err() != nil {
					return fmt.Errorf("interrupted: %w", context.Cause(ctx))
				}
				if err != nil { // a server's stall costs one figure of one round
					t.troubles = append(t.troubles, fmt.Sprintf("%s, %s, %d in flight, %s: %v", s.Name(), op,
						depth, name, err))
					continue
				}
				m.Server, m.Client, m.Op, m.Depth = s.Name(), name, op, depth
				t.all = append(t.all, m)
				fmt.Fprintf(os.Stderr, "  %s x %d, %s: %s/s, p50 %s, %s of client CPU, %.1f allocations\n", op,
					depth, name, report.Count(m.PerSecond), report.Time(m.P50), report.Time(m.CPU), m.Allocs)
			}
		}
	}
	return nil
}

// fill creates the znodes.
func fill(ctx context.Context, host string) error {
	o, err := dialOurs(host)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }() // the session's end has no say in what was created
	if err := o.c.EnsurePath(ctx, "/clients", client.Persistent); err != nil {
		return err
	}
	for _, p := range o.paths {
		if _, _, err := o.c.Create(ctx, p, make([]byte, 100), client.Persistent); err != nil {
			return err
		}
	}
	return nil
}

// measurement is one client at one server with one load.
type measurement struct {
	Server, Client string
	Op             load.Op
	Depth          int
	PerSecond      float64
	P50, P99, P999 time.Duration
	CPU            time.Duration // of this process, an answer
	Allocs         float64       // of this process, an answer
	Errors         uint64
}

// one measures one client.
func one(
	ctx context.Context, o *options, name, host string, op load.Op, depth int,
) (*measurement, error) {
	cfg := load.Default()
	cfg.Hosts, cfg.Connections, cfg.InFlight, cfg.Keys = []string{host}, 1, depth, keys
	cfg.Mix, cfg.Duration, cfg.WarmUp = load.Mix{{Op: op, Weight: 1}}, o.duration, o.warmUp
	var before, after runtime.MemStats
	var used [2]load.Process
	cfg.Measured = func(begun bool) {
		if begun {
			used[0], _ = load.ReadProcess(os.Getpid()) // our own is always there
			runtime.ReadMemStats(&before)
			return
		}
		used[1], _ = load.ReadProcess(os.Getpid())
		runtime.ReadMemStats(&after)
	}
	runtime.GC() // what the client before has left
	r, err := drive(ctx, name, host, &cfg)
	if err != nil {
		return nil, err
	}
	l := r.Total.Latency
	n := max(r.Total.PerSecond*r.Elapsed.Seconds(), 1)
	m := &measurement{PerSecond: r.Total.PerSecond, P50: l.P50.Duration(), P99: l.P99.Duration(),
		P999: l.P999.Duration(), CPU: time.Duration(float64(used[1].CPU-used[0].CPU) / n),
		Allocs: float64(after.Mallocs-before.Mallocs) / n, Errors: r.Unanswered}
	for _, k := range r.Total.Errors {
		m.Errors += k
	}
	return m, nil
}

func drive(ctx context.Context, name, host string, cfg *load.Config) (*load.Result, error) {
	if name == async {
		o, err := dialOurs(host)
		if err != nil {
			return nil, err
		}
		defer func() { _ = o.Close() }() // it has been measured
		return runAsync(ctx, o, cfg, make([]byte, cfg.ValueSize))
	}
	return load.RunCallers(ctx, *cfg, func(int) (load.Caller, error) {
		if name == goZooKeeper {
			return dialTheirs(host)
		}
		return dialOurs(host)
	})
}

// save writes the table and everything that was measured.
func (t *table) save() error {
	return t.o.output.Save(t.o.output.File(t.site.Root, t.began), t.text(), t.all, t.end)
}
