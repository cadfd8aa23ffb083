package failover

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// Scenario is the fault and the load, beside the options of all suites.
type Scenario struct {
	servers  int
	settings []string // further lines of every zoo.cfg
	fault    string
	atOnce   int // servers that it hits, the leader among them
	load     int // writers beside the one that is measured
	goUsers  int // programs with package client
	web      int // programs that speak HTTP
	busy     bool
	rtt      time.Duration // between servers; 0: they are on loopback
	plan     string        // several configurations; "": this one
	logs     string        // directory
}

// Flags lets the user set s.
func (s *Scenario) Flags(f *flag.FlagSet) {
	f.IntVar(&s.servers, "servers", system.DefaultServers, "servers, all voters")
	f.Func("extra-setting", "`KEY=VALUE`, a further line of every zoo.cfg; repeatable", func(text string) error {
		if !strings.Contains(text, "=") {
			return errors.New("want KEY=VALUE")
		}
		s.settings = append(s.settings, text)
		return nil
	})
	f.StringVar(&s.fault, "fault", faultKill, "what happens to the leader: "+strings.Join(faultNames(), ", "))
	f.IntVar(&s.atOnce, "at-once", 1, "servers that it happens to, the leader among them")
	f.IntVar(&s.load, "load", 0, "writers at all servers, beside the one that is measured")
	f.IntVar(&s.goUsers, "go", 0, "programs with package client that write, at all servers")
	f.IntVar(&s.web, "http", 0, "programs that write over HTTP, at all servers")
	f.BoolVar(&s.busy, "busy", false, "keep every processor busy with something else")
	f.DurationVar(&s.rtt, "rtt", 0, "round-trip time between servers; needs root")
	f.StringVar(&s.plan, "plan", "", "measure several configurations: "+strings.Join(planNames(), ", "))
	f.StringVar(&s.logs, "logs", "", "directory for the servers' logs of the ten longest gaps; none: a new one")
}

// config is one configuration to measure. Rounds is how often the fault happens, Duration how long a follower that
// returns was down, and as long before; Znodes are there before, and Sessions only send pings.
type config struct {
	system.Options
	Scenario
	system string
}

// configs are the configurations that were asked for.
func configs(o *system.Options, s *Scenario) (all []*config, err error) {
	first := config{*o, *s, system.Ours}
	if first.Sync == nil {
		first.Sync = []slowdisk.Profile{{}} // they are counted
	}
	changes := []func(*config){func(*config) {}}
	if s.plan != "" {
		if changes = plans()[s.plan]; changes == nil {
			return nil, fmt.Errorf("-plan %q: there are %s", s.plan, strings.Join(planNames(), ", "))
		}
	}
	for _, name := range o.Names(system.Ours) {
		for _, change := range changes {
			c := first
			c.system = name
			change(&c)
			if err := c.check(); err != nil {
				return nil, err
			}
			all = append(all, &c)
		}
	}
	return all, nil
}

// hasLeader reports whether a system shows which of its servers leads.
func hasLeader(name string) bool { return name != "etcd" && name != "noop" }

// errNoLeader refuses a system.
func errNoLeader(name string) error {
	return fmt.Errorf("-systems %s: %s, %s and builds are possible", name, system.Ours, system.Apache)
}

// check returns an error if a configuration is impossible.
func (c *config) check() error {
	_, known := faults()[c.fault]
	switch survivors := c.servers - c.atOnce; {
	case !hasLeader(c.system):
		return errNoLeader(c.system)
	case !known:
		return fmt.Errorf("-fault %q: %s are possible", c.fault, strings.Join(faultNames(), ", "))
	case c.atOnce < 1 || 2*survivors <= c.servers:
		return fmt.Errorf("-servers %d -at-once %d: a majority must survive", c.servers, c.atOnce)
	case c.fault == faultReturn && c.atOnce > 1:
		return errors.New("-fault return is of one follower")
	case c.load < 0 || c.goUsers < 0 || c.web < 0 || c.Znodes > load.MaxKeys || c.Sessions > load.MaxConnections ||
		c.rtt < 0 || c.servers > 9:
		return errors.New("-servers to 9, -znodes to 20,000,000, -sessions to 60,000, nothing below 0")
	case c.system == system.Apache && (faults()[c.fault].onlyOurs || c.web > 0):
		return fmt.Errorf("-fault %s -http %d: ZooKeeper does not have it", c.fault, c.web)
	case c.rtt == 0 && faults()[c.fault].network:
		return fmt.Errorf("-fault %s needs a network: give -rtt, as 100us, as root", c.fault)
	}
	return nil
}

// String names the configuration in a table.
func (c *config) String() string {
	parts := []string{c.system, fmt.Sprintf("%d servers", c.servers), "sync +" + c.SyncText()}
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
	add(c.Znodes > 0, "%d znodes", c.Znodes)
	add(c.Sessions > 0, "%d sessions", c.Sessions)
	add(len(c.settings) > 0, "%s", strings.Join(c.settings, " "))
	return strings.Join(parts, ", ")
}

// plans are lists of configurations under a name; each gets the flags that it does not set.
func plans() map[string][]func(*config) {
	const ms = time.Millisecond
	sync := func(delays ...time.Duration) func(*config) {
		return func(c *config) {
			c.Sync = nil
			for _, d := range delays {
				c.Sync = append(c.Sync, slowdisk.Profile{Delay: d})
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
	theirs := func(c *config) { c.system = system.Apache }
	busy := func(c *config) { c.busy, c.load = true, 48 }
	five := func(c *config) { c.servers = 5 }
	rtt := func(d time.Duration) func(*config) { return func(c *config) { c.rtt = d } }
	tail := func(c *config) { c.Sync = []slowdisk.Profile{{Delay: 5 * ms, Tail: true}} }
	planned := func(d time.Duration, fault string) func(*config) {
		return with(sync(d), func(c *config) { c.fault, c.load, c.goUsers, c.web = fault, 9, 6, 6 })
	}
	return map[string][]func(*config){"issue": {
		sync(0), sync(1 * ms), sync(5 * ms), sync(15 * ms), tail, sync(15*ms, 1*ms),
		with(sync(0), busy), with(sync(5*ms), busy), with(sync(5*ms), five),
		with(sync(0), rtt(2*ms)), with(sync(5*ms), rtt(20*ms)),
		with(sync(5*ms), func(c *config) { c.Znodes = 1_000_000 }),
		with(sync(5*ms), func(c *config) { c.Sessions = 15_000 }),
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
