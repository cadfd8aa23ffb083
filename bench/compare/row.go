package compare

import (
	"context"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// column is a figure of a measurement that an aim is about.
type column int

// The columns.
const (
	throughput column = iota
	median            // p50
	tail              // p99
	farTail           // p99.9
	lastEvent         // p50 of the last event of a round
	outage
	cpuShare // of a core, all servers
	memory
)

// row is a load of the comparison.
type row struct {
	id, title string
	kind      system.Kind
	mix       string
	conns     int
	inFlight  int
	rate      float64 // requests per second of all connections, in an open loop; 0: a closed loop
	column    column
	// aim is the goal for zk-lite's figure, as a multiple of ZooKeeper's, or of the no-op
	// server's if ofNoop; aimTime and aimShare are absolute. Throughput should be at least
	// that, all else at most.
	aim      float64
	ofNoop   bool
	aimTime  time.Duration
	aimShare float64 // of a core
	systems  []string
	http     httpRun // over the HTTP API, not over the ZooKeeper port
	client   string  // a Go client does it, not the generator of package load
}

// httpRun is a load on an HTTP API.
type httpRun func(context.Context, load.Config, httpload.API) (*load.Result, error)

// failoverConnections are the clients of that row.
const failoverConnections = 64

// serverRows compare servers by the generator of package load.
func serverRows() []row {
	zoo := []string{"ZooKeeper", "zk-lite"}
	floor := []string{"ZooKeeper", "noop", "zk-lite"} // the cost of the machine and of Go to any system
	three := []string{"ZooKeeper", "etcd", "zk-lite"}
	all := []string{"ZooKeeper", "etcd", "noop", "zk-lite"}
	return []row{
		{id: "set-1", title: "set, 1 connection", mix: "set", conns: 1, inFlight: 1,
			column: median, aim: 0.6, systems: three},
		{id: "set-64", title: "set, 64 connections", mix: "set", conns: 64, inFlight: 1, aim: 3,
			systems: three},
		{id: "set-256", title: "set, 256 connections", mix: "set", conns: 256, inFlight: 1, aim: 3,
			systems: three},
		{id: "set-32x32", title: "set, 32 connections x 32 in flight", mix: "set", conns: 32,
			inFlight: 32, aim: 4, systems: three},
		{id: "create-64", title: "create, 64 connections", mix: "create", conns: 64, inFlight: 1,
			aim: 3, systems: three},
		{id: "get-64", title: "get, 64 connections", mix: "get", conns: 64, inFlight: 1, aim: 0.85,
			ofNoop: true, systems: all},
		{id: "get-32x32", title: "get, 32 connections x 32 in flight", mix: "get", conns: 32,
			inFlight: 32, aim: 0.5, ofNoop: true, systems: all},
		{id: "mix-64", title: "90 % get, 10 % set, 64 connections", mix: "get=90,set=10", conns: 64,
			inFlight: 1, aim: 3, systems: three},
		// In a closed loop the quicker system has the more to do. At one rate, which ZooKeeper can
		// bear on a slow day, both do the same.
		{id: "set-rate", title: "set, 2,000 a second on 64 connections", mix: "set", conns: 64,
			inFlight: load.OpenInFlight, rate: 2000, column: tail, aim: 1, systems: zoo},
		{id: "get-rate", title: "get, 8,000 a second on 64 connections", mix: "get", conns: 64,
			inFlight: load.OpenInFlight, rate: 8000, column: tail, aim: 1, systems: floor},
		{id: "mix-rate", title: "90 % get, 10 % set, 4,000 a second on 64 connections", mix: "get=90,set=10",
			conns: 64, inFlight: load.OpenInFlight, rate: 4000, column: tail, aim: 1, systems: zoo},
		{id: "watch-1000", title: "1,000 watchers of one znode, last event after", kind: system.Watch,
			conns: 1000, inFlight: 1, column: lastEvent, aim: 0.3, systems: zoo},
		{id: "sessions", title: "sessions opened and closed, 64 at a time", kind: system.Sessions,
			conns: 64, inFlight: 1, aim: 10, systems: floor},
		{id: "churn", title: "sessions with an ephemeral (etcd: lease and key) opened and closed, 64 at a time",
			kind: system.Churn, conns: 64, inFlight: 1, aim: 1, systems: three},
		{id: "idle-5000", title: "5,000 idle sessions, CPU of all servers", kind: system.Idle,
			conns: 5000, inFlight: 1, column: cpuShare, aimShare: 0.03, systems: floor},
		{id: "leader-killed", title: "leader killed with -9, nobody served for", kind: system.Failover,
			mix: "set", conns: failoverConnections, inFlight: 1, column: outage,
			aimTime: 40 * time.Millisecond, systems: three},
		{id: "memory", title: "live heap of a server with the tree of -znodes", kind: system.Memory,
			conns: 1, inFlight: 1, column: memory, aim: 0.5, systems: three},
	}
}

// httpRows compare HTTP APIs: zk-lite's and etcd's JSON gateway.
func httpRows() []row {
	both := []string{"etcd", system.Ours}
	all := []row{
		{id: "get-1", title: "GET, 1 connection", conns: 1, mix: "get", http: httpload.Run},
		{id: "get-64", title: "GET, 64 connections", conns: 64, mix: "get", http: httpload.Run},
		{id: "put-1", title: "PUT, 1 connection", conns: 1, mix: "set", http: httpload.Run},
		{id: "put-64", title: "PUT, 64 connections", conns: 64, mix: "set", http: httpload.Run},
		{id: "put-256", title: "PUT, 256 connections", conns: 256, mix: "set", http: httpload.Run},
		{id: "lock-1", title: "a lock taken and given back, 1 session", conns: 1, http: httpload.Locks},
		{id: "lock-64", title: "a lock each taken and given back, 64 sessions", conns: 64, http: httpload.Locks},
		{id: "streams-1000", title: "events to 1,000 streams of one key", conns: 1000, http: httpload.Streams},
	}
	for i := range all {
		all[i].inFlight, all[i].systems = 1, both
	}
	return all
}

// config is the load of a row.
func (c *comparison) config(r *row, e *system.Ensemble) (load.Config, error) {
	cfg := load.Default()
	cfg.Hosts, cfg.PIDs = e.Hosts, e.PIDs()
	if r.http != nil {
		cfg.Hosts = e.HTTP
	}
	cfg.Connections, cfg.InFlight, cfg.Rate = r.conns, r.inFlight, r.rate
	cfg.Duration, cfg.WarmUp, cfg.Seed = c.o.Duration, c.o.WarmUp, c.o.Seed
	switch r.kind {
	case system.Failover:
		cfg.SessionTimeout = 10 * time.Second
		cfg.Duration = max(cfg.Duration, failoverLeast)
	case system.Idle:
		cfg.Duration, cfg.WarmUp = max(cfg.Duration, idleLeast), max(cfg.WarmUp, idleSettle)
	case system.Memory:
		cfg.Keys, cfg.Prefix, cfg.Keep = c.o.Znodes, "/fill", true
	}
	if r.mix == "" {
		return cfg, nil
	}
	if r.isYCSB() {
		cfg.Keys, cfg.ValueSize, cfg.Keep, cfg.Reuse = c.o.Znodes, ycsbValue, true, c.filled[e]
	}
	return cfg, cfg.SetMix(r.mix)
}

// answers reports whether a row's latencies are those of answers to clients.
func (r *row) answers() bool {
	return r.kind == system.Load || r.kind == system.Sessions || r.kind == system.Churn
}

// failoverLeast is the shortest time for a server to be killed in and another
// to be elected: ZooKeeper has needed seconds.
const failoverLeast = 9 * time.Second

// idleLeast is one round of pings: a third of the session timeout, 30 s.
const idleLeast = 10 * time.Second

// idleSettle is how long the opening of 5,000 sessions may still keep servers
// busy.
const idleSettle = 2 * time.Second

// figure is the value of a measurement that the row compares: answers per second, nanoseconds
// or bytes.
func (r *row) figure(m *measurement) float64 {
	switch r.column {
	case median:
		return float64(m.result.Total.Latency.P50)
	case tail:
		return p99(m)
	case farTail:
		return p999(m)
	case lastEvent:
		for _, o := range m.result.Ops {
			if o.Name == "last event" {
				return float64(o.Latency.P50)
			}
		}
		return 0
	case outage:
		return float64(m.result.Failover.Longest)
	case cpuShare:
		return m.result.CPUShare()
	case memory:
		return float64(m.heap)
	}
	return m.result.Total.PerSecond
}

// selected are the rows with a requested id, all if none was requested, in their own order:
// after the killed leader a server is missing.
func selected(all []row, ids []string) (picked []row) {
	for _, r := range all {
		if len(ids) == 0 || slices.Contains(ids, r.id) {
			picked = append(picked, r)
		}
	}
	return picked
}
