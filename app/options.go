package app

import (
	"cmp"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/sdnotify"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/server/changes"
)

// Options say what to run.
type Options struct {
	Settings config.Settings
	Version  string    // zk-lite's own
	Built    time.Time // of the program's source; zero: not known
	Logger   *slog.Logger
	Manager  *sdnotify.Socket // the service manager's; nil: none
	// Memory is how much this server may use, in bytes; 0: unknown. Limits that are not set
	// follow from it.
	Memory int64
	// Fatal is called, at most once, when the server cannot go on: the process
	// should end with an error.
	Fatal func(error)
}

// limitByMemory sets the limits that follow from the memory, unless the settings have them. Without either a limit
// is 0: the default of its package, and none for the tree.
func (o *Options) limitByMemory() {
	if o.Memory == 0 {
		return
	}
	const (
		leastPending, mostPending = 1 << 20, 64 << 20
		program, leastTree        = 32 << 20, 4 << 20
	)
	c, part := &o.Settings, o.Memory/16
	if c.Consensus.MaxPendingBytes == 0 {
		c.Consensus.MaxPendingBytes = int(min(max(part, leastPending), mostPending))
	}
	if c.Consensus.TreeLimit == 0 {
		// As much again is for what the collector has yet to find; the rest is for the program, requests, replies,
		// watches, a snapshot and the restart.
		c.Consensus.TreeLimit = max((o.Memory-program)/5*2, leastTree)
	}
	c.Server.WatchBytes = cmp.Or(c.Server.WatchBytes, part)
	c.Server.ChangesWindow = cmp.Or(c.Server.ChangesWindow, min(part/4, changes.DefaultWindow))
	c.ZooKeeper.OutboxTotal = cmp.Or(c.ZooKeeper.OutboxTotal, part)
}

func (o *Options) storage() storage.Config {
	cfg := o.Settings.Storage
	cfg.Dir, cfg.LogDir = o.Settings.DataDir, o.Settings.DataLogDir
	cfg.Logger, cfg.OnFatal = o.Logger, o.Fatal
	return cfg
}

func (o *Options) server(who *auth.Authenticator) server.Config {
	cfg := o.Settings.Server
	cfg.ID, cfg.Grace = state.ServerID(o.Settings.MyID), o.Settings.LeaderContactLimit()
	cfg.Auth, cfg.Logger = who, o.Logger
	return cfg
}

func (o *Options) consensus() consensus.Config {
	cfg := o.Settings.Consensus
	cfg.ID, cfg.Servers, cfg.Publish = state.ServerID(o.Settings.MyID), ensemble(&o.Settings), publish(o)
	if !o.Settings.Autopilot {
		cfg.Autopilot = membership.Autopilot{}
	}
	cfg.Logger, cfg.Fatal = o.Logger, o.Fatal
	return cfg
}

// ensemble is the configured servers, or this one alone.
func ensemble(s *config.Settings) []membership.Server {
	if alone(s) {
		return []membership.Server{{ID: state.ServerID(s.MyID), Voter: true}}
	}
	var all []membership.Server
	for _, x := range s.Servers {
		all = append(all, membership.Server{
			ID: state.ServerID(x.ID), Addr: x.PeerAddress(), Voter: x.Role != config.Observer,
		})
	}
	return all
}

// alone reports that no other server ever reaches this one, so that it has no peer port.
func alone(s *config.Settings) bool { return s.Standalone || len(s.Servers) == 0 }

// publish is this server's release, and its line of /zookeeper/config, unless it is standalone.
func publish(o *Options) *state.Member {
	s := &o.Settings
	m := &state.Member{ID: state.ServerID(s.MyID)}
	m.Version, m.Commit, _ = strings.Cut(o.Version, "+")
	own, ok := s.Own()
	if !ok || s.Standalone {
		return m
	}
	m.Peer = net.JoinHostPort(own.Host, strconv.Itoa(own.PeerPort)) + ":" + strconv.Itoa(own.ElectionPort)
	m.Client = reached(s.ClientPortAddress, s.ClientPort, own.Host)
	if own.ClientPort > 0 && !isUnspecified(own.ClientHost) { // the line says where
		m.Client = net.JoinHostPort(own.ClientHost, strconv.Itoa(own.ClientPort))
	}
	if s.AdminEnabled {
		m.HTTP = reached(s.AdminAddress, s.AdminPort, own.Host)
	}
	return m
}

// reached is where other hosts reach a port of this server's that listens at an address; empty if they do not: it is
// on the loopback interface of an ensemble that is not, there is none, or its number is only known once it is open.
// own is the host of this server's line.
func reached(address string, port int, own string) string {
	local := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "localhost" || ip != nil && ip.IsLoopback()
	}
	switch {
	case port <= 0 || local(address) && !local(own):
		return ""
	case isUnspecified(address): // it listens there, too
		return net.JoinHostPort(own, strconv.Itoa(port))
	default:
		return net.JoinHostPort(address, strconv.Itoa(port))
	}
}

// isUnspecified reports whether an address to listen at means all interfaces.
func isUnspecified(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }

// zooKeeper is the Config of ZooKeeper's port, but for the parts of the server that it asks.
func (o *Options) zooKeeper() zk.Config {
	c := &o.Settings
	own, _ := c.Own()
	cfg := c.ZooKeeper
	cfg.Version, cfg.BuildDate, cfg.Logger = o.Version, o.buildDate(), o.Logger
	cfg.Settings.DataDir, cfg.Settings.DataLogDir, cfg.Settings.SyncLimit = c.DataDir, c.DataLogDir, c.SyncLimit
	cfg.Settings.ElectionPort, cfg.Settings.QuorumPort = own.ElectionPort, own.PeerPort
	cfg.Settings.Observer = own.Role == config.Observer
	if cfg.MinVoters = 1; c.StandaloneEnabled {
		cfg.MinVoters = 2 // as for ZooKeeper, which could not become standalone
	}
	return cfg
}

// buildDate is what four-letter words and AdminServer's commands print.
func (o *Options) buildDate() string {
	if o.Built.IsZero() {
		return zk.UnknownBuildDate
	}
	return o.Built.UTC().Format(zk.BuildDateFormat)
}

// hosts are the names that the header Host may have when the HTTP port is on loopback: the
// configured ones, and the address that it listens on.
func hosts(s *config.Settings) []string {
	if s.AdminAddress == "" {
		return s.HTTP.Hosts
	}
	return append([]string{s.AdminAddress}, s.HTTP.Hosts...)
}
