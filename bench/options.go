package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/growth"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// options are the flags.
type options struct {
	suites, systems string
	rows            []string // ids; none: all
	times           map[string]string
	short           bool
	znodes          int
	builds          []build
	tls             bool // also with TLS
	dir             string
	output          report.Output
	seed            uint64
	sync            []slowdisk.Profile // what is added to each sync; none: syncs are left alone
}

// times are how often and for how long a suite measures.
type times struct {
	rounds                int
	duration, warmUp, jit time.Duration
}

// The systems of -tls.
const (
	peersTLS = "tls-between-servers"
	allTLS   = "tls-everywhere"
)

// build is a zk-lite that was built before, or this checkout's with TLS.
type build struct{ name, path string }

// addBuild reads one flag -binary.
func (o *options) addBuild(text string) error {
	name, path, ok := strings.Cut(text, "=")
	taken := slices.Contains(known(), name) || name == peersTLS || name == allTLS ||
		slices.ContainsFunc(o.builds, func(b build) bool { return b.name == name })
	if !ok || path == "" || taken {
		return errors.New("want NAME=PATH with a name that no other system has")
	}
	o.builds = append(o.builds, build{name, path})
	return nil
}

// parse reads the flags.
func parse(args []string) (*options, error) {
	o := &options{times: map[string]string{}}
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.StringVar(&o.suites, "suite", "servers", "what to measure, separated by commas: servers, http, clients, growth")
	for name, usage := range map[string]string{
		"rounds": "`N` rounds; the tables have their medians", "duration": "measured time of a row, as 10s",
		"warm-up":     "time before that, not measured",
		"jit-warm-up": "load on each system after its start, before the first row",
	} {
		f.Func(name, usage+" (none: the suite's)", func(text string) error {
			o.times[name] = text
			return (&times{}).set(name, text)
		})
	}
	f.BoolVar(&o.short, "short", false, "fewer and shorter rounds, where these are not given")
	f.IntVar(&o.znodes, "znodes", 1_000_000, "znodes of the row memory, and the most in the suite growth")
	f.Func("rows", "rows (of growth: curves) to measure, separated by commas; none: all", func(text string) error {
		o.rows = strings.Split(text, ",")
		return nil
	})
	f.StringVar(&o.systems, "systems", "", "systems to measure, separated by commas; none: all")
	f.Func("binary", "NAME=PATH: a zk-lite to compare with this checkout's, as a system of that name; repeatable",
		o.addBuild)
	f.BoolVar(&o.tls, "tls", false, "also measure this checkout with TLS between servers (system "+peersTLS+
		"), and for clients as well ("+allTLS+"), as systems to compare with; for the suite servers")
	f.StringVar(&o.dir, "dir", "",
		"directory on the disk to measure; none: the system's for temporary files")
	o.output.Flags(f)
	f.Uint64Var(&o.seed, "seed", 1, "of everything random")
	f.Func("sync", "add `TIME` to each disk sync of all systems, as 5ms, or 5ms/tail, where 1 % take 100 times longer",
		func(text string) error {
			p, err := slowdisk.Parse(text)
			o.sync = []slowdisk.Profile{p}
			return err
		})
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 || o.znodes < 1 {
		return nil, errors.New("want no arguments, and flags above 0")
	}
	if o.tls {
		if o.suites != "servers" {
			return nil, errors.New("-tls is for the suite servers")
		}
		o.builds = append(o.builds, build{name: peersTLS}, build{name: allTLS})
	}
	if o.sync != nil && slices.Contains(strings.Split(o.suites, ","), growth.Section) {
		return nil, errors.New("-sync is for the suites servers, http and clients, not for growth")
	}
	return o, nil
}

// set reads one of the flags about times.
func (t *times) set(name, text string) (err error) {
	switch name {
	case "rounds":
		t.rounds, err = strconv.Atoi(text)
		if err == nil && t.rounds < 1 {
			err = errors.New("want 1 or more")
		}
		return err
	case "duration":
		if t.duration, err = time.ParseDuration(text); err == nil && t.duration <= 0 {
			err = errors.New("want a time above 0")
		}
	case "warm-up":
		t.warmUp, err = time.ParseDuration(text)
	case "jit-warm-up":
		t.jit, err = time.ParseDuration(text)
	}
	return err
}

// selected are the suites that were asked for, each with its rows.
func (o *options) selected() (picked []suite, err error) {
	var known, ids []string
	for _, s := range suites() {
		known = append(known, s.name)
		if !slices.Contains(strings.Split(o.suites, ","), s.name) {
			continue
		}
		for _, r := range s.rows {
			ids = append(ids, r.id)
		}
		if s.name == growth.Section {
			ids = append(ids, growth.Curves()...)
		}
		s.rows = selected(s.rows, o.rows)
		picked = append(picked, s)
	}
	for _, name := range strings.Split(o.suites, ",") {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("suite %q is unknown; there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, id := range o.rows {
		if !slices.Contains(ids, id) {
			return nil, fmt.Errorf("row %q is unknown; there are %s", id, strings.Join(ids, ", "))
		}
	}
	return picked, nil
}

// of are the times of a suite.
func (o *options) of(s *suite) (times, error) {
	t := s.long
	if o.short {
		t = s.short
	}
	for name, text := range o.times {
		if err := t.set(name, text); err != nil {
			return t, err
		}
	}
	return t, nil
}
