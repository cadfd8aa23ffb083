// Command bench measures zk-lite on this machine, side by side with other systems, all of them real server processes
// that sync to the same disk. Its suites:
//
//	servers    the same loads on zk-lite, Apache ZooKeeper (Debian's package), etcd, and a server that does no work:
//	           the upper bound
//	http       zk-lite's HTTP API and etcd's JSON gateway
//	ycsb       YCSB's workloads A to D on the same systems, at rates that ZooKeeper can serve
//	clients    package client and go-zookeeper, each in a process of its own (bench/clients)
//	growth     zk-lite alone, as connections, trees, watches and servers grow
//	failover   the leader is taken away again and again: how long clients of the other servers have no answer
//	reconnect  all clients of a killed leader come back, without TLS and with it
//	overload   clients with a modest rate alone, and beside a flood of ten times what the servers can serve
//	scale      what requests cost, a simulation that is checked with it, and the limits of larger machines
//
// Each writes a section of a file in bench/results (package report). A suite has defaults of its own for the flags
// that suites share; -short has shorter ones.
//
//	go run ./bench                        # the suite servers, five rounds: 50 minutes
//	go run ./bench -short                 # three rounds of 3 s a row: 17 minutes
//	go run ./bench -suite http,clients,growth -short   # 18 minutes
//	go run ./bench -rounds 1 -duration 1s -warm-up 300ms -jit-warm-up 1s -znodes 100000 -out -
//	go run ./bench -systems zk-lite -binary base=/tmp/zk-lite -rounds 10 -short -out -
//	go run ./bench -sync 5ms -rows set-64 -short -out -
//
// The fourth takes three minutes and only shows that everything works. The fifth compares this checkout with
// another build, both in turn within each round. The last adds 5 ms to each disk sync of every system, as on a
// cloud's volume (internal/testkit/slowdisk).
//
//	go run ./bench -suite ycsb                        # one hour; -rows ycsb-a: a quarter of it
//	go run ./bench -suite ycsb -share 0.8 -of-slowest -short
//	go run ./bench -suite failover -sync 5ms -out -
//	go run ./bench -suite failover -sync 5ms -servers 5 -load 48 -busy
//	go run ./bench -suite failover -sync 5ms -systems ZooKeeper
//	go run ./bench -suite failover -sync 15ms,1ms          # server 1 has a slow disk, the others a fast one
//	go run ./bench -suite failover -fault stop             # or hang, fulldisk, transfer, drain, sigterm
//	go run ./bench -suite failover -rtt 20ms               # between servers; needs root
//	go run ./bench -suite failover -rtt 100us -fault cut   # needs root
//	go run ./bench -suite failover -rounds 5 -fault return -load 47   # a follower returns, with a long log to read
//	go run ./bench -suite failover -plan issue             # about twelve configurations, one table
//	go run ./bench -suite reconnect -sessions 10000
//	go run ./bench -suite overload -short -zookeeper 3.9.5 -out -
//	go run ./bench -suite growth -rows steady -duration 1h   # memory and latency at half load
//	go run ./bench -suite growth -rows snapshot   # a million znodes: memory, snapshots, restarts
//	go run ./bench -suite growth -rows feed -duration 30s -warm-up 5s   # followers of changes
//
// # Concurrency
//
// One thing is measured at a time, by the main goroutine.
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

	"github.com/zk-lite/zk-lite/bench/compare"
	"github.com/zk-lite/zk-lite/bench/failover"
	"github.com/zk-lite/zk-lite/bench/growth"
	"github.com/zk-lite/zk-lite/bench/overload"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/scale"
	"github.com/zk-lite/zk-lite/bench/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// suite is a set of measurements, with the defaults of its options.
type suite struct {
	name        string
	rows        []string // that -rows may name
	long, short system.Options
	run         func(context.Context, *system.Site, *options) error
}

func suites() []suite {
	const s, ms = time.Second, time.Millisecond
	times := func(rounds int, duration, warmUp, jit time.Duration) system.Options {
		return system.Options{Rounds: rounds, Duration: duration, WarmUp: warmUp, JIT: jit, Znodes: 1_000_000,
			SessionTimeout: 30 * s, Seed: 1}
	}
	returns := func(rounds int) system.Options {
		o := times(rounds, s, 0, 0)
		o.Sessions = 10_000
		return o
	}
	faults := func(rounds int, down time.Duration) system.Options {
		return system.Options{Rounds: rounds, Duration: down, SessionTimeout: 10 * s,
			Seed: uint64(time.Now().UnixNano())} // another one every time
	}
	comparison := func(name string, long, short system.Options) suite {
		return suite{name, compare.Rows(name), long, short,
			func(ctx context.Context, site *system.Site, o *options) error {
				return compare.Run(ctx, site, name, &o.Options)
			}}
	}
	return []suite{
		comparison(compare.Servers, times(5, 10*s, 2*s, 10*s), times(3, 3*s, 700*ms, 4*s)),
		comparison(compare.HTTP, times(5, 5*s, s, 4*s), times(3, 3*s, 500*ms, 2*s)),
		comparison(compare.YCSB, times(5, 10*s, 2*s, 10*s), times(3, 3*s, 700*ms, 4*s)),
		comparison(compare.Clients, times(5, 5*s, s, 8*s), times(3, 2*s, 300*ms, 4*s)),
		{growth.Section, growth.Curves(), times(1, 3*s, 700*ms, 0), times(1, s, 250*ms, 0),
			func(ctx context.Context, site *system.Site, o *options) error {
				return growth.Run(ctx, site, &o.Options)
			}},
		{failover.Section, nil, faults(30, 10*s), faults(5, 3*s),
			func(ctx context.Context, site *system.Site, o *options) error {
				return failover.Run(ctx, site, &o.Options, &o.scenario)
			}},
		{failover.Returns, nil, returns(3), returns(1),
			func(ctx context.Context, site *system.Site, o *options) error {
				return failover.Reconnect(ctx, site, &o.Options)
			}},
		{overload.Section, nil, times(3, 10*s, 2*s, 10*s), times(1, 5*s, s, 4*s),
			func(ctx context.Context, site *system.Site, o *options) error {
				return overload.Run(ctx, site, &o.Options, &o.overload)
			}},
		{scale.Section, nil, times(1, 10*s, 2*s, 0), times(1, 3*s, s, 0),
			func(ctx context.Context, site *system.Site, o *options) error {
				return scale.Run(ctx, site, &o.Options)
			}},
	}
}

// options are all flags.
type options struct {
	suites   []string
	short    bool
	dir      string
	output   report.Output
	scenario failover.Scenario
	overload overload.Scenario

	zooKeeper string // version
	system.Options
}

// parse reads the flags, with the defaults of a suite.
func parse(args []string, defaults system.Options) (*options, error) {
	o := &options{suites: []string{compare.Servers}, Options: defaults}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.Func("suite", "what to measure, separated by commas: "+strings.Join(names(), ", ")+" (none: servers)",
		func(text string) error {
			o.suites = strings.Split(text, ",")
			return nil
		})
	f.BoolVar(&o.short, "short", false, "fewer and shorter rounds, where these are not given")
	f.StringVar(&o.dir, "dir", "", "directory on the disk to measure; none: the system's for temporary files")
	f.StringVar(&o.zooKeeper, "zookeeper", "", "version from Maven Central, as 3.9.5; none: Debian's package")
	o.output.Flags(f)
	o.Options.Flags(f)
	o.scenario.Flags(f)
	o.overload.Flags(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q: there are only flags", f.Arg(0))
	}
	return o, nil
}

// names are those of all suites.
func names() (all []string) {
	for _, s := range suites() {
		all = append(all, s.name)
	}
	return all
}

// picked are the suites that the arguments name, and the options of each.
func picked(args []string) (all []suite, each []*options, err error) {
	asked, err := parse(args, system.Options{})
	if err != nil {
		return nil, nil, err
	}
	var rows []string
	for _, s := range suites() {
		if !slices.Contains(asked.suites, s.name) {
			continue
		}
		defaults := s.long
		if asked.short {
			defaults = s.short
		}
		o, err := parse(args, defaults)
		if err == nil {
			err = o.Check()
		}
		if err != nil {
			return nil, nil, err
		}
		all, each, rows = append(all, s), append(each, o), append(rows, s.rows...)
	}
	for _, name := range asked.suites {
		if !slices.Contains(names(), name) {
			return nil, nil, fmt.Errorf("suite %q is unknown; there are %s", name, strings.Join(names(), ", "))
		}
	}
	for _, id := range asked.Rows {
		if !slices.Contains(rows, id) {
			return nil, nil, fmt.Errorf("row %q is unknown; there are %s", id, strings.Join(rows, ", "))
		}
	}
	return all, each, nil
}

// run measures the suites that the arguments ask for.
func run(ctx context.Context, args []string) error {
	all, each, err := picked(args)
	if err != nil {
		return err
	}
	site, err := system.NewSite(each[0].dir, &each[0].output)
	if err != nil {
		return err
	}
	defer site.Close()
	site.ZooKeeper = each[0].zooKeeper
	for i, s := range all {
		if err := s.run(ctx, site, each[i]); err != nil {
			return fmt.Errorf("suite %s: %w", s.name, err)
		}
	}
	return nil
}
