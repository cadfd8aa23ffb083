package system

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// Options are the flags that suites share. Each suite has defaults of its own.
type Options struct {
	Systems        []string           // names of those to measure; none: the suite's
	Builds         []Build            // further systems
	Rows           []string           // ids of those to measure; none: all
	Rounds         int                // how often each row is measured
	Duration       time.Duration      // measured time of a row
	WarmUp         time.Duration      // time before that, not measured
	JIT            time.Duration      // load on a system after its start, before its first row
	Znodes         int                // those of a large tree
	Sessions       int                // open sessions
	SessionTimeout time.Duration      // of clients that lose a server
	Sync           []slowdisk.Profile // added to the syncs of each server, of the last one to those of all that follow
	Seed           uint64             // of everything random
	Share          float64            // of what ZooKeeper can do, a rate; OfSlowest: of what the slowest system can do
	OfSlowest      bool
}

// Build is a zk-lite beside the one that is built from this checkout without TLS.
type Build struct {
	Name string
	Path string // of the binary; "": this checkout's, with the TLS that Name stands for
}

// The systems of -tls.
const (
	PeersTLS = "tls-between-servers"
	AllTLS   = "tls-everywhere"
)

// Known are the systems that are measured without being named, in the order of the tables.
func Known() []string { return []string{Apache, "etcd", "noop", Ours} }

// Flags lets the user change o, whose values are the defaults.
func (o *Options) Flags(f *flag.FlagSet) {
	list := func(into *[]string) func(string) error {
		return func(text string) error {
			*into = strings.Split(text, ",")
			return nil
		}
	}
	f.Func("systems", "systems to measure, separated by commas: "+strings.Join(Known(), ", ")+
		", or one of -binary (none: the suite's)", list(&o.Systems))
	f.Func("binary", "`NAME=PATH`: a zk-lite to compare with this checkout's, as a system of that name; repeatable",
		o.addBuild)
	f.BoolFunc("tls", "also measure this checkout with TLS between servers (system "+PeersTLS+
		"), and for clients as well ("+AllTLS+"), as systems to compare with; for the suite servers",
		func(string) error {
			o.Builds = append(o.Builds, Build{Name: PeersTLS}, Build{Name: AllTLS})
			return nil
		})
	f.Func("rows", "rows (of growth: curves) to measure, separated by commas (none: all)", list(&o.Rows))
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "`N` rounds; most tables have their medians (none: the suite's)")
	f.DurationVar(&o.Duration, "duration", o.Duration, "measured time of a row, as 10s (none: the suite's)")
	f.DurationVar(&o.WarmUp, "warm-up", o.WarmUp, "time before that, not measured (none: the suite's)")
	f.DurationVar(&o.JIT, "jit-warm-up", o.JIT,
		"load on each system after its start, before the first row (none: the suite's)")
	f.IntVar(&o.Znodes, "znodes", o.Znodes,
		"znodes of the row memory, the most in the suite growth, those that failover begins with (none: the suite's)")
	f.IntVar(&o.Sessions, "sessions", o.Sessions,
		"in the suite failover those that only send pings, in reconnect all (none: the suite's)")
	f.DurationVar(&o.SessionTimeout, "session-timeout", o.SessionTimeout,
		"of the sessions in the suites failover and reconnect (none: the suite's)")
	f.Float64Var(&o.Share, "share", 0.5, "of what ZooKeeper can do: the rates of the suite ycsb")
	f.BoolVar(&o.OfSlowest, "of-slowest", false, "-share is of what the slowest system can do")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of everything random (none: the suite's)")
	f.Func("sync", "`TIME` added to each disk sync of all systems, as 5ms, 5ms/tail (1 % take 100 times longer), or "+
		"15ms,1ms: the first server's, and that of those that follow", o.addSyncs)
}

// addBuild reads one flag -binary.
func (o *Options) addBuild(text string) error {
	name, path, ok := strings.Cut(text, "=")
	taken := slices.Contains(Known(), name) || name == PeersTLS || name == AllTLS || o.IsBuild(name)
	if !ok || path == "" || taken {
		return errors.New("want NAME=PATH with a name that no other system has")
	}
	o.Builds = append(o.Builds, Build{name, path})
	return nil
}

// addSyncs reads -sync.
func (o *Options) addSyncs(text string) error {
	o.Sync = nil
	for _, one := range strings.Split(text, ",") {
		p, err := slowdisk.Parse(one)
		if err != nil {
			return err
		}
		o.Sync = append(o.Sync, p)
	}
	return nil
}

// Names are the systems to measure: the requested ones, or else the defaults, and all builds.
func (o *Options) Names(defaults ...string) []string {
	names := slices.Clone(o.Systems)
	if names == nil {
		names = defaults
	}
	for _, b := range o.Builds {
		if !slices.Contains(names, b.Name) {
			names = append(names, b.Name)
		}
	}
	return names
}

// IsBuild reports whether a system is one of Builds.
func (o *Options) IsBuild(name string) bool {
	return slices.ContainsFunc(o.Builds, func(b Build) bool { return b.Name == name })
}

// SyncText is Sync as the user has written it.
func (o *Options) SyncText() string {
	var all []string
	for _, p := range o.Sync {
		all = append(all, p.String())
	}
	return strings.Join(all, ",")
}

// Conditions are lines that describe the effect of o on all systems.
func (o *Options) Conditions() []string {
	if o.Sync == nil {
		return nil
	}
	return []string{"added per sync: " + o.SyncText() +
		" (all systems alike, in fsync, fdatasync, msync, sync_file_range and pwritev2 with DSYNC)"}
}

// Check reports the first value that is out of range, and a system that is unknown.
func (o *Options) Check() error {
	switch {
	case o.Rounds < 1 || o.Duration <= 0 || o.WarmUp < 0 || o.JIT < 0 || o.SessionTimeout <= 0:
		return errors.New("-rounds from 1, -duration and -session-timeout above 0, no time below 0")
	case !(o.Share > 0 && o.Share <= 10):
		return errors.New("-share above 0, to 10")
	case o.Znodes < 0 || o.Sessions < 0:
		return errors.New("-znodes and -sessions from 0")
	}
	for _, name := range o.Systems {
		if !slices.Contains(Known(), name) && !o.IsBuild(name) {
			return fmt.Errorf("system %q is unknown; there are %s", name, strings.Join(Known(), ", "))
		}
	}
	return nil
}
