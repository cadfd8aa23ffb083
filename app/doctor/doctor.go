// Package doctor finds what is wrong, or will go wrong, with a server: its configuration, its machine, and the other
// servers, before it starts and while it runs. Each finding has a remedy.
//
// It changes nothing; to measure the disk it writes a file and removes it again. It asks a running server only what
// anyone may ask, without credentials. Its goroutines, one for each server that is asked, end with Examine.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// Error is what keeps the server from starting, or from serving.
	Error Severity = "error"
	// Warning is what will hurt later.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    string   `json:"check"` // which found it: configuration, ports, ...
	Problem  string   `json:"problem"`
	Do       string   `json:"do"` // what to do about it
}

// Options say what to examine.
type Options struct {
	Settings config.Settings
	Version  string // of this program, to compare with the servers'
	Memory   int64  // that a server may use, in bytes; 0: unknown
	// HTTP are the HTTP APIs of the other servers, as URLs. Empty: each is asked at the port that this server has.
	HTTP   []string
	Limits Limits
}

// Limits are the thresholds of findings.
type Limits struct {
	Sync   time.Duration // that a sync of the log's disk takes, the median
	Free   int64         // room on a disk, in bytes
	Clock  time.Duration // between this machine's clock and another's
	Expiry time.Duration // before a certificate expires
	Answer time.Duration // for another server to answer
}

// DefaultLimits are for a server of some use.
func DefaultLimits() Limits {
	return Limits{
		// Every write waits for a sync; disks that are made for it need less than a millisecond.
		Sync: 20 * time.Millisecond,
		// The log has two segments of 64 MiB from the beginning, and snapshots are beside it.
		Free:   1 << 30,
		Clock:  2 * time.Second,
		Expiry: 14 * 24 * time.Hour,
		Answer: 2 * time.Second,
	}
}

// doctor collects findings.
type doctor struct {
	Options
	ctx      context.Context
	findings []Finding
}

func (d *doctor) found(severity Severity, check, problem, do string) {
	d.findings = append(d.findings, Finding{severity, check, problem, do})
}

func (d *doctor) fail(check, problem, do string) { d.found(Error, check, problem, do) }
func (d *doctor) warn(check, problem, do string) { d.found(Warning, check, problem, do) }

// Configuration returns what config.Load and config.UnknownVariables have found.
func Configuration(err error, notices []config.Notice) (all []Finding) {
	for _, e := range each(err) {
		f := Finding{Error, "configuration", e.Error(), "correct it; docs/reference/settings.md lists the settings"}
		var at *config.Error
		if errors.As(e, &at) && at.Want != "" {
			short := *at
			short.Want = ""
			f.Problem, f.Do = short.Error(), at.Want
		}
		all = append(all, f)
	}
	for _, n := range notices {
		if n.Level < slog.LevelWarn {
			continue
		}
		all = append(all, Finding{Warning, "configuration", n.Source + ": " + n.Key + ": " + n.Text,
			"correct or remove it"})
	}
	return all
}

// each takes errors.Join apart.
func each(err error) []error {
	if err == nil {
		return nil
	}
	if joined, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // only what is joined at the top
		return joined.Unwrap()
	}
	return []error{err}
}

// Runs reports whether the server runs: it answers, or has its data directory open. An error says why that is not
// known. With Settings that have errors only true is reliable: the name of the directory may be wrong.
func Runs(ctx context.Context, o Options) (bool, error) {
	d := &doctor{Options: o, ctx: ctx}
	if d.own() != nil {
		return true, nil
	}
	return app.Runs(&o.Settings)
}

// Examine looks at everything, errors first. It takes some seconds at most.
func Examine(ctx context.Context, o Options) (findings []Finding) {
	d := &doctor{Options: o, ctx: ctx}
	own := d.own()
	open, _ := app.Runs(&d.Settings)
	d.start()
	d.settings()
	d.certificates()
	d.files()
	d.data()
	d.machine()
	d.others()
	switch {
	case own != nil:
		d.running(own)
	case open:
		d.warn("running", "a process has the data directory open, and does not answer over HTTP",
			"set admin.enableServer=true, so that it can be asked; if it is set: see the server's log")
	default:
		d.before()
		for _, err := range app.TryPorts(&d.Settings) {
			d.port(err)
		}
	}
	slices.SortStableFunc(d.findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return d.findings
}

// start finds what would stop it.
func (d *doctor) start() {
	quiet := slog.New(slog.DiscardHandler)
	for _, err := range each(app.Check(app.Options{Settings: d.Settings, Logger: quiet})) {
		d.fail("start", err.Error(), "correct what the message names: a server does not start with it")
	}
}

func (d *doctor) port(err error) {
	problem, do := err.Error(), "stop what uses it, or change the setting"
	var at *app.ListenError
	if errors.As(err, &at) {
		problem, do = at.Problem(), at.Remedy
	}
	if !d.Settings.AdminEnabled {
		do += "; if it is this server that runs: it cannot be asked without admin.enableServer"
	}
	d.fail("ports", problem, do)
}
