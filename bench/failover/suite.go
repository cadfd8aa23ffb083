package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/system"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

// run measures all configurations. One that fails, as without root where it needs that, is told of and
// costs only itself.
func run(ctx context.Context, o *options) (err error) {
	all := []*config{&o.config}
	if o.plan != "" {
		all = nil
		for _, change := range plans()[o.plan] {
			c := o.config
			change(&c)
			if err := c.check(); err != nil {
				return err
			}
			all = append(all, &c)
		}
	}
	site, err := system.NewSite(o.dir)
	if err != nil {
		return err
	}
	defer site.Close()
	logs, err := newKeeper(o.logs)
	if err != nil {
		return err
	}
	head := system.Head{Began: time.Now(), How: fmt.Sprintf("%d faults each, seed %d", o.kills, o.seed)}
	systems := map[string]system.System{}
	outages, returns := "", ""
	failed := 0
	for _, c := range all {
		if systems[c.system] == nil {
			s, version, err := prepare(site, c)
			if err != nil {
				return err
			}
			systems[c.system] = s
			head.Versions = append(head.Versions, s.Name()+": "+version)
		}
		fmt.Printf("\n%s, seed %d\n", c, c.seed)
		r := &runner{c: c, system: systems[c.system], dir: site.Dir, logs: logs, out: os.Stdout,
			rng: rand.New(rand.NewPCG(c.seed, 3))}
		measured, err := r.run(ctx)
		if c.fault == faultReturn {
			returns += catchUpRow(c, measured.returns)
		} else {
			outages += row(c, measured.outages)
		}
		if err != nil {
			failed++
			fmt.Println(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if failed > 0 {
		head.End = fmt.Errorf("%d of %d configurations ended with an error, told above", failed, len(all))
	}
	fmt.Print(site.Head(&head))
	if outages != "" {
		fmt.Println(tableHead + outages)
	}
	if returns != "" {
		fmt.Println(catchUpHead + returns)
	}
	fmt.Printf("The logs of the longest gaps are in %s.\n", logs.dir)
	return head.End
}

// prepare builds or finds a configuration's system.
func prepare(site *system.Site, c *config) (s system.System, version string, err error) {
	switch {
	case c.system == zooKeeper:
		s, err = system.NewZooKeeper()
	case c.binary != "":
		s, err = system.NewBuild(zkLite, c.binary)
	default:
		s, err = system.NewZKLite(site.Root, site.Dir)
	}
	if err != nil {
		return nil, "", err
	}
	version, err = s.Version()
	return s, version, err
}
