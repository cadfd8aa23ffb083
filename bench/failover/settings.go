package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// The systems.
const (
	zkLite    = "zk-lite"
	zooKeeper = "zookeeper"
)

// config is what is measured: an ensemble, what it has to do, and what happens to it.
type config struct {
	system   string
	binary   string // of zk-lite; "": this checkout's
	servers  int
	sync     []slowdisk.Profile // of the servers, in their order; the last is that of all that follow
	settings []string           // further lines of every zoo.cfg
	fault    string
	atOnce   int // servers that it hits, the leader among them
	kills    int
	load     int // writers beside the one that is measured
	goUsers  int // programs with package client
	web      int // programs that speak HTTP
	busy     bool
	znodes   int
	sessions int
	rtt      time.Duration // between servers; 0: they are on loopback
	down     time.Duration // for how long a follower that returns was down
	timeout  time.Duration // of sessions
	seed     uint64
}

// options are all flags.
type options struct {
	config
	plan string
	dir  string
	logs string
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{config: config{sync: []slowdisk.Profile{{}}}}
	f := flag.NewFlagSet("failover", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.system, "system", zkLite, zkLite+" or "+zooKeeper+" (Debian's package)")
	f.StringVar(&o.binary, "binary", "", "a zk-lite to measure, none: built from this checkout")
	f.IntVar(&o.servers, "servers", 3, "servers, all voters")
	f.Func("sync", "`TIME` added to each disk sync: 5ms, 5ms/tail (1 % take 100 times longer), or 15ms,1ms: the first "+
		"server's, and that of those that follow (default 0)", func(text string) error {
		o.sync = nil
		for _, one := range strings.Split(text, ",") {
			p, err := slowdisk.Parse(one)
			if err != nil {
				return err
			}
			o.sync = append(o.sync, p)
		}
		return nil
	})
	f.Func("extra-setting", "`KEY=VALUE`, a further line of every zoo.cfg; repeatable", func(text string) error {
		if !strings.Contains(text, "=") {
			return errors.New("want KEY=VALUE")
		}
		o.settings = append(o.settings, text)
		return nil
	})
	f.StringVar(&o.fault, "fault", faultKill, "what happens to the leader: "+strings.Join(faultNames(), ", "))
	f.IntVar(&o.atOnce, "at-once", 1, "servers that it happens to, the leader among them")
	f.IntVar(&o.kills, "kills", 30, "how often")
	f.IntVar(&o.load, "load", 0, "writers at all servers, beside the one that is measured")
	f.IntVar(&o.goUsers, "go", 0, "programs with package client that write, at all servers")
	f.IntVar(&o.web, "http", 0, "programs that write over HTTP, at all servers")
	f.BoolVar(&o.busy, "busy", false, "keep every processor busy with something else")
	f.IntVar(&o.znodes, "znodes", 0, "znodes of 100 bytes that are there before")
	f.IntVar(&o.sessions, "sessions", 0, "sessions that only send pings")
	f.DurationVar(&o.rtt, "rtt", 0, "round-trip time between servers; needs root")
	f.DurationVar(&o.down, "down", 10*time.Second,
		"with -fault return: for how long a follower is down, and as long before")
	f.DurationVar(&o.timeout, "session-timeout", 10*time.Second, "of the sessions")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of everything random; none: another one every time")
	f.StringVar(&o.plan, "plan", "", "measure several configurations: "+strings.Join(planNames(), ", "))
	f.StringVar(&o.dir, "dir", "", "directory on the disk to use; none: the system's for temporary files")
	f.StringVar(&o.logs, "logs", "", "directory for the servers' logs of the ten longest gaps; none: a new one")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q: there are only flags", f.Arg(0))
	}
	if o.plan != "" && !slices.Contains(planNames(), o.plan) {
		return nil, fmt.Errorf("-plan %q: there are %s", o.plan, strings.Join(planNames(), ", "))
	}
	return o, o.check()
}

// check finds what is wrong with a configuration.
func (c *config) check() error {
	_, known := faults()[c.fault]
	switch survivors := c.servers - c.atOnce; {
	case c.system != zkLite && c.system != zooKeeper:
		return fmt.Errorf("-system %q: %s and %s are possible", c.system, zkLite, zooKeeper)
	case !known:
		return fmt.Errorf("-fault %q: %s are possible", c.fault, strings.Join(faultNames(), ", "))
	case c.atOnce < 1 || 2*survivors <= c.servers:
		return fmt.Errorf("-servers %d -at-once %d: a majority must survive", c.servers, c.atOnce)
	case c.fault == faultReturn && (c.atOnce > 1 || c.down <= 0):
		return errors.New("-fault return is of one follower, and -down above 0")
	case c.kills < 1 || c.load < 0 || c.goUsers < 0 || c.web < 0 || c.znodes < 0 || c.znodes > load.MaxKeys ||
		c.sessions < 0 || c.sessions > load.MaxConnections || c.rtt < 0 || c.timeout <= 0 || c.servers > 9:
		return errors.New("-kills from 1, -servers to 9, -znodes to 20,000,000, -sessions to 60,000, nothing below 0")
	case c.system == zooKeeper && (faults()[c.fault].onlyOurs || c.web > 0):
		return fmt.Errorf("-fault %s -http %d: ZooKeeper does not have it", c.fault, c.web)
	case c.rtt == 0 && faults()[c.fault].network:
		return fmt.Errorf("-fault %s needs a network: give -rtt, as 100us, as root", c.fault)
	}
	return nil
}

// String names the configuration in a table.
func (c *config) String() string {
	var syncs []string
	for _, p := range c.sync {
		syncs = append(syncs, p.String())
	}
	parts := []string{c.system, fmt.Sprintf("%d servers", c.servers), "sync +" + strings.Join(syncs, ",")}
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.fault != faultKill, "%s", c.fault)
	add(c.atOnce > 1, "%d at once", c.atOnce)
	add(c.load > 0, "%d writers more", c.load)
	add(c.goUsers > 0, "%d Go clients", c.goUsers)
	add(c.web > 0, "%d HTTP clients", c.web)
	add(c.busy, "busy machine")
	add(c.rtt > 0, "round trip %v", c.rtt)
	add(c.znodes > 0, "%d znodes", c.znodes)
	add(c.sessions > 0, "%d sessions", c.sessions)
	add(len(c.settings) > 0, "%s", strings.Join(c.settings, " "))
	return strings.Join(parts, ", ")
}

// plans are lists of configurations under a name; each gets the flags that it does not set.
func plans() map[string][]func(*config) {
	const ms = time.Millisecond
	sync := func(delays ...time.Duration) func(*config) {
		return func(c *config) {
			c.sync = nil
			for _, d := range delays {
				c.sync = append(c.sync, slowdisk.Profile{Delay: d})
			}
		}
	}
	with := func(all ...func(*config)) func(*config) {
		return func(c *config) {
			for _, f := range all {
				f(c)
			}
		}
	}
	theirs := func(c *config) { c.system = zooKeeper }
	busy := func(c *config) { c.busy, c.load = true, 48 }
	five := func(c *config) { c.servers = 5 }
	rtt := func(d time.Duration) func(*config) { return func(c *config) { c.rtt = d } }
	tail := func(c *config) { c.sync = []slowdisk.Profile{{Delay: 5 * ms, Tail: true}} }
	planned := func(d time.Duration, fault string) func(*config) {
		return with(sync(d), func(c *config) { c.fault, c.load, c.goUsers, c.web = fault, 9, 6, 6 })
	}
	return map[string][]func(*config){"issue": {
		sync(0), sync(1 * ms), sync(5 * ms), sync(15 * ms), tail, sync(15*ms, 1*ms),
		with(sync(0), busy), with(sync(5*ms), busy), with(sync(5*ms), five),
		with(sync(0), rtt(2*ms)), with(sync(5*ms), rtt(20*ms)),
		with(sync(5*ms), func(c *config) { c.znodes = 1_000_000 }),
		with(sync(5*ms), func(c *config) { c.sessions = 15_000 }),
		with(theirs, sync(0)), with(theirs, sync(5*ms)), with(theirs, sync(5*ms), busy), with(theirs, sync(5*ms), five),
	}, "faults": {
		with(sync(1*ms), func(c *config) { c.fault = faultStop }),
		with(sync(1*ms), func(c *config) { c.fault = faultHang }),
		with(sync(1*ms), func(c *config) { c.fault = faultFull }),
		with(sync(1*ms), rtt(100*time.Microsecond), func(c *config) { c.fault = faultCut }),
		with(sync(1*ms), five, func(c *config) { c.atOnce = 2 }),
	}, "planned": {
		planned(0, faultTransfer), planned(0, faultDrain), planned(0, faultTerm),
		with(sync(1*ms), func(c *config) { c.fault, c.load = faultReturn, 47 }),
		planned(5*ms, faultTransfer), planned(5*ms, faultDrain), planned(5*ms, faultTerm),
	}}
}

func planNames() (names []string) {
	for name := range plans() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
