package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// The bounds of a Config: above them a machine runs out of ports, memory or
// patience before a server does.
const (
	MaxConnections = 60_000 // ports of one client address
	MaxInFlight    = 65_536
	MaxKeys        = 20_000_000
	MaxValueSize   = 64 << 20
	MaxMultiSize   = 10_000
	maxRate        = 100_000_000
	maxZipf        = 100
)

// OpenInFlight is the window (Config.InFlight) that an open loop should have: so large that only a
// server that has stalled fills it.
const OpenInFlight = 1024

// Config configures a load and its target.
type Config struct {
	Hosts       []string `json:"hosts"`       // host:port; connections are spread over them in turn
	Connections int      `json:"connections"` // each with a session of its own
	InFlight    int      `json:"in_flight"`   // requests of a connection without a reply, at most
	Mix         Mix      `json:"mix"`
	// Rate is the number of requests per second of all connections in an open loop; 0 is a
	// closed loop.
	Rate      float64       `json:"rate"`
	Duration  time.Duration `json:"duration_ns"` // the measured time
	WarmUp    time.Duration `json:"warm_up_ns"`  // before that, unmeasured
	ValueSize int           `json:"value_size"`  // bytes of a znode
	Keys      int           `json:"keys"`        // znodes that are read and written
	// Zipf is the exponent of the popularity of keys; 0 is uniform.
	Zipf float64 `json:"zipf"`
	// Latest counts keys from the newest: first those that the same connection has created, the last one first, as
	// other servers may not have another's yet, and then Keys from their end.
	Latest    bool   `json:"latest,omitempty"`
	MultiSize int    `json:"multi_size"` // operations of a Multi
	Prefix    string `json:"prefix"`     // all happens below it; deleted at start and end
	Keep      bool   `json:"keep"`       // leave the znodes at the end
	// Reuse finds the znodes of an earlier run with Keep, and as many Keys, in place.
	Reuse bool   `json:"reuse"`
	Seed  uint64 `json:"seed"`
	// SessionTimeout is the session timeout that clients request.
	SessionTimeout time.Duration `json:"session_timeout_ns"`
	// PIDs are the servers' processes, if they are on this machine and their
	// use of CPU and memory is wanted; in the order of Hosts where that matters.
	PIDs []int `json:"pids,omitempty"`
	// Interval is the time between two Samples.
	Interval time.Duration `json:"interval_ns"`
	// Local is the address from which clients connect; "" leaves it to the system.
	Local string `json:"local,omitempty"`
	// Auth is the identity of the clients, SCHEME:CREDENTIALS, as digest:user:password; "": none.
	Auth string `json:"-"`
	// Return has clients of Run return to their sessions, at another host and at once, when a connection ends or
	// nothing arrives for two thirds of the session timeout.
	Return bool `json:"return,omitempty"`
	// TLS is for servers' ports with TLS; nil: they have none.
	TLS *tls.Config `json:"-"`
	// Progress, if not nil, is called with every Sample, from one goroutine.
	Progress func(Sample) `json:"-"`
	// Measured, if not nil, is called at the beginning of the measured time with true and at
	// its end with false, from the goroutine of Progress, so that other counters can cover the
	// same time.
	Measured func(begun bool) `json:"-"`
	// Acknowledged, if not nil, is called with the zxid of every good answer of a mix, and when it came; by many
	// goroutines.
	Acknowledged func(zxid int64, at time.Time) `json:"-"`
}

// Default is a closed loop of 32 connections that get, 100 bytes a znode. Servers with
// their own defaults take 60 connections from an address, and those just closed may count.
func Default() Config {
	return Config{
		Connections: 32, InFlight: 1, Mix: Mix{{Get, 1}}, Duration: 10 * time.Second,
		WarmUp: 2 * time.Second, ValueSize: 100, Keys: 256, MultiSize: 10,
		Prefix: "/zk-lite-bench", Seed: 1, SessionTimeout: 30 * time.Second, Interval: time.Second,
	}
}

// Check returns an error if the settings are impossible.
func (c *Config) Check() error {
	within := func(name string, have, low, high int) error {
		if have < low || have > high {
			return fmt.Errorf("%s %d: %d to %d are possible", name, have, low, high)
		}
		return nil
	}
	errs := []error{
		within("connections", c.Connections, 1, MaxConnections),
		within("in flight", c.InFlight, 1, MaxInFlight),
		within("value size", c.ValueSize, 0, MaxValueSize),
		within("keys", c.Keys, 1, MaxKeys),
		within("multi size", c.MultiSize, 1, MaxMultiSize),
	}
	if len(c.Hosts) == 0 {
		errs = append(errs, errors.New("no server is named; one is 127.0.0.1:2181"))
	}
	if len(c.Mix) == 0 {
		errs = append(errs, errors.New("the mix is empty"))
	}
	if c.Rate < 0 || c.Rate > maxRate {
		errs = append(errs, fmt.Errorf("rate %g: 0 (a closed loop) to %d are possible", c.Rate, maxRate))
	}
	if !(c.Zipf >= 0 && c.Zipf <= maxZipf) {
		errs = append(errs, fmt.Errorf("zipf exponent %g: 0 (uniform) to %d are possible", c.Zipf, maxZipf))
	}
	if c.Latest && c.Mix.has(Delete) {
		errs = append(errs, errors.New("the latest znodes cannot be read while they are deleted"))
	}
	if c.Local != "" && net.ParseIP(c.Local) == nil {
		errs = append(errs, fmt.Errorf("local address %q: want an IP address of this machine", c.Local))
	}
	if c.Auth != "" && !strings.Contains(c.Auth, ":") {
		errs = append(errs, errors.New("the identity must be SCHEME:CREDENTIALS, as digest:user:password"))
	}
	if c.Duration <= 0 || c.WarmUp < 0 || c.Interval <= 0 || c.SessionTimeout <= 0 {
		errs = append(errs, errors.New("duration, interval and session timeout must be above 0, "+
			"the warm-up not below"))
	}
	if err := znode.ValidatePath(c.Prefix); err != nil || c.Prefix == znode.RootPath {
		errs = append(errs, fmt.Errorf("prefix %q: it must be a znode's path, and not %s, as all "+
			"below it is deleted", c.Prefix, znode.RootPath))
	}
	return errors.Join(errs...)
}
