package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// section is the part of the document that this command writes.
const section = "http"

// options are the flags.
type options struct {
	rounds                int
	duration, warmUp, jit time.Duration
	short                 bool
	systems, dir          string
	output                report.Output
}

func main() {
	o := options{output: report.Output{Section: section}}
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the table has their medians")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "measured time of a row")
	flag.DurationVar(&o.warmUp, "warm-up", time.Second, "time before that, not measured")
	flag.DurationVar(&o.jit, "jit-warm-up", 4*time.Second, "load on the servers after each start")
	flag.BoolVar(&o.short, "short", false,
		"3 rounds of 3s, 500ms of warm-up, 2s of JIT warm-up: about 3 minutes")
	flag.StringVar(&o.systems, "systems", "etcd,zk-lite", "systems to measure")
	flag.StringVar(&o.dir, "dir", "", "directory on the disk; none: that for temporary files")
	o.output.Flags(flag.CommandLine)
	flag.Parse()
	if o.short {
		o.rounds, o.duration, o.warmUp, o.jit = 3, 3*time.Second, 500*time.Millisecond, 2*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

// measurement is one row on one system.
type measurement struct {
	Row, System string
	Syncs       int64 // in the measured time, of all servers; below 0: not counted
	Result      *load.Result
}

// peer is a system with its dialect.
type peer struct {
	system.System
	api httpload.API
}

// run measures all rounds and writes the table also when it is interrupted.
func run(ctx context.Context, o *options) error {
	site, err := system.NewSite(o.dir)
	if err != nil {
		return err
	}
	defer site.Close()
	t := &table{o: o, site: site, began: time.Now(), versions: map[string]string{}}
	peers, err := t.prepare()
	if err != nil {
		return err
	}
	for round := range o.rounds {
		for i := range peers {
			p := peers[(i+round)%len(peers)]
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.rounds, p.Name())
			err := t.round(ctx, p)
			if ctx.Err() != nil {
				t.end = err
				return errors.Join(err, t.save())
			}
			if err != nil { // costs the other systems nothing
				fmt.Fprintf(os.Stderr, "  %v\n", err)
				first, _, _ := strings.Cut(err.Error(), "\n")
				t.troubles = append(t.troubles, fmt.Sprintf("%s, round %d: `%s`", p.Name(), round+1, first))
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
func (t *table) prepare() (all []peer, err error) {
	for _, name := range strings.Split(t.o.systems, ",") {
		p := peer{}
		switch name {
		case "zk-lite":
			p.api = httpload.ZKLite{}
			p.System, err = system.NewZKLite(t.site.Root, t.site.Dir)
		case "etcd":
			p.api = httpload.Etcd{}
			p.System, err = system.NewEtcd(t.site.Root, t.site.Dir)
		default:
			err = fmt.Errorf("-systems %q: there are zk-lite and etcd", name)
		}
		if err != nil {
			return nil, err
		}
		if t.versions[name], err = p.Version(); err != nil {
			return nil, err
		}
		t.peers, all = append(t.peers, p), append(all, p)
	}
	return all, nil
}

// row is a load.
type row struct {
	id, title string
	conns     int
	mix       load.Mix
	run       func(context.Context, load.Config, httpload.API) (*load.Result, error)
}

func rows() []row {
	mix := func(op load.Op) load.Mix { return load.Mix{{Op: op, Weight: 1}} }
	return []row{
		{"get-1", "GET, 1 connection", 1, mix(load.Get), httpload.Run},
		{"get-64", "GET, 64 connections", 64, mix(load.Get), httpload.Run},
		{"put-1", "PUT, 1 connection", 1, mix(load.Set), httpload.Run},
		{"put-64", "PUT, 64 connections", 64, mix(load.Set), httpload.Run},
		{"put-256", "PUT, 256 connections", 256, mix(load.Set), httpload.Run},
		{"lock-1", "a lock taken and given back, 1 session", 1, nil, httpload.Locks},
		{"lock-64", "a lock each taken and given back, 64 sessions", 64, nil, httpload.Locks},
		{"streams-1000", "events to 1,000 streams of one key", 1000, nil, httpload.Streams},
	}
}

// config is the load of a row.
func (r *row) config(o *options, e *system.Ensemble) load.Config {
	cfg := load.Default()
	cfg.Hosts, cfg.PIDs, cfg.Connections = e.HTTP, e.PIDs(), r.conns
	cfg.Duration, cfg.WarmUp = o.duration, o.warmUp
	if r.mix != nil {
		cfg.Mix = r.mix
	}
	return cfg
}

// round measures all rows on a fresh ensemble.
func (t *table) round(ctx context.Context, p peer) error {
	e, err := system.Up(ctx, p, t.site.Dir, system.Options{HTTP: true})
	if err != nil {
		return err
	}
	defer e.Down()
	if t.o.jit > 0 {
		hot := row{conns: 32, mix: load.Mix{{Op: load.Get, Weight: 1}, {Op: load.Set, Weight: 1}}}
		cfg := hot.config(t.o, e)
		cfg.Duration, cfg.WarmUp = t.o.jit, 0
		if _, err := httpload.Run(ctx, cfg, p.api); err != nil {
			return fmt.Errorf("JIT warm-up: %w", err)
		}
	}
	for _, r := range rows() {
		m := &measurement{Row: r.id, System: p.Name(), Syncs: -1}
		cfg := r.config(t.o, e)
		counter, noPerf := system.CountSyncs(ctx, e.PIDs())
		if noPerf == nil {
			cfg.Measured = counter.Measured
		}
		m.Result, err = r.run(ctx, cfg, p.api)
		if noPerf == nil {
			if n, err := counter.Finish(); err == nil {
				m.Syncs = n
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "  %s: %v\n", r.id, err)
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.troubles = append(t.troubles, fmt.Sprintf("%s, %s: `%s`", p.Name(), r.id, first))
			continue
		}
		t.all = append(t.all, m)
		total := &m.Result.Total
		fmt.Fprintf(os.Stderr, "  %s: %s/s, p50 %s, p99 %s, %v\n", r.id, report.Count(total.PerSecond),
			report.Time(total.Latency.P50.Duration()), report.Time(total.Latency.P99.Duration()), total.Errors)
	}
	return nil
}

// save writes the table and everything that was measured.
func (t *table) save() error {
	return t.o.output.Save(t.o.output.File(t.site.Root, t.began), t.text(), t.all, t.end)
}
