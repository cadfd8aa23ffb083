// Package app puts one server together: storage, consensus, the request path
// and the doors, from a server's settings. It is what `zk-lite server` runs
// once and `zk-lite dev` three times.
//
// It decides nothing that a package below could decide; it opens, connects and
// closes in the right order.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
)

// shutdownTimeout is how long clients' last replies may take at the end.
const shutdownTimeout = 5 * time.Second

// Options say what to run.
type Options struct {
	Settings config.Settings
	Version  string // zk-lite's own
	Logger   *slog.Logger
	// Fatal is called, at most once, when the server cannot go on: the process
	// should end with an error.
	Fatal func(error)
}

// Node is a running server.
type Node struct {
	logger    *slog.Logger
	listeners listeners
	agree     *consensus.Node
	server    *server.Server
	zk        *zk.Door
	http      *api.Door // nil when switched off
}

// Open starts a server. It serves clients as soon as the ensemble has a leader.
func Open(o Options) (*Node, error) {
	n := &Node{logger: o.Logger}
	if err := n.listeners.open(&o.Settings); err != nil {
		n.listeners.close()
		return nil, err
	}
	if err := n.start(&o); err != nil {
		n.listeners.close()
		return nil, err
	}
	return n, nil
}

func (n *Node) start(o *Options) error {
	s := &o.Settings
	o.Logger.Info("starting", "version", o.Version, "server", s.MyID, "dataDir", s.DataDir,
		"clients", n.listeners.client.Addr().String(), "ensemble", len(s.Servers))
	storage, err := consensus.OpenStorage(consensus.StorageConfig{
		Dir: s.DataDir, LogDir: s.DataLogDir, Kind: consensus.LogStoreKind(s.LogStore),
		NoDirectLog: !s.DirectLog, Retain: s.SnapRetainCount, Logger: o.Logger, OnFatal: o.Fatal,
	})
	if err != nil {
		return err
	}
	n.server = server.New(server.Config{
		ID: state.ServerID(s.MyID), Tick: s.TickTime,
		MinSessionTimeout: s.MinSessionTimeout, MaxSessionTimeout: s.MaxSessionTimeout,
		Grace:         s.LeaderContactLimit(),
		ExtendedTypes: s.ExtendedTypes, EnforceQuota: s.EnforceQuota, SuperDigest: s.SuperDigest,
		WatchLimit: s.WatchesPerConnection,
		Reap: server.ReapConfig{
			Interval: s.ContainerCheckInterval, MaxPerMinute: s.ContainerMaxPerMinute,
			NeverUsed: s.ContainerMaxNeverUsed,
		},
		Logger: o.Logger,
	})
	n.agree, err = consensus.Open(consensus.Config{
		ID: state.ServerID(s.MyID), Servers: ensemble(s), Publish: publish(s),
		Listener: n.listeners.peer, Dial: dialPeer, Storage: storage, Handler: n.server, Logger: o.Logger,
		Fatal: o.Fatal, ElectionTimeout: s.ElectionTimeout, SnapshotCommands: s.SnapCount,
		MaxPending: s.GlobalOutstandingLimit, MaxPendingBytes: int(s.PendingBytes),
		NoPush: !s.CommitPush, NoOverlap: !s.OverlapSync, NoFailover: !s.FastFailover,
	})
	if err != nil {
		return errors.Join(err, storage.Close())
	}
	n.server.Start(n.agree)
	n.openDoors(o)
	return nil
}

func (n *Node) openDoors(o *Options) {
	s := &o.Settings
	own, _ := s.Own()
	n.zk = zk.New(n.server, zk.Config{
		Version: o.Version, MaxFrame: s.MaxBuffer, OutboxBytes: int(s.OutboxBytes),
		MaxPerAddress: s.MaxClientCnxns, MaxConnections: s.MaxCnxns, Words: s.FourLetterWords,
		Settings: zk.Settings{
			ClientPort: n.listeners.client.Addr().(*net.TCPAddr).Port,
			DataDir:    s.DataDir, DataLogDir: s.DataLogDir, ListenBacklog: s.ClientPortListenBacklog,
			InitLimit: s.InitLimit, SyncLimit: s.SyncLimit,
			ElectionPort: own.ElectionPort, QuorumPort: own.PeerPort,
			Observer: own.Role == config.Observer,
		},
		Digests: func() []zk.Digest {
			zxid, digest := n.server.Digest()
			return []zk.Digest{{Zxid: uint64(zxid), Value: digest}}
		},
		Proposals: n.agree,
		Metrics:   n.metrics,
		Logger:    o.Logger,
	})
	go n.serve("the ZooKeeper port", func() error { return n.zk.Serve(n.listeners.client) })
	if n.listeners.http != nil {
		n.http = api.New(n.server, api.Config{
			Version: o.Version, Logger: o.Logger, Origins: s.AdminOrigins, MaxBody: s.MaxBuffer,
			Hosts:   hosts(s),
			Metrics: n.metrics, Port: n.zk,
			Settings: &api.Settings{
				ClientPort: n.listeners.client.Addr().(*net.TCPAddr).Port,
				DataDir:    s.DataDir, DataLogDir: s.DataLogDir,
				MaxClientCnxns: s.MaxClientCnxns, ListenBacklog: s.ClientPortListenBacklog,
			},
		})
		go n.serve("the HTTP port", func() error { return n.http.Serve(n.listeners.http) })
	}
}

// serve runs a door until Close; the door's own Shutdown waits for it.
func (n *Node) serve(what string, run func() error) {
	if err := run(); err != nil && !errors.Is(err, net.ErrClosed) {
		n.logger.Error("no new clients are accepted", "at", what, "error", err)
	}
}

// metrics adds what only consensus knows to mntr.
func (n *Node) metrics(emit func(key string, value any)) {
	for _, m := range n.agree.Metrics() {
		emit(m.Key, m.Value)
	}
}

// ClientAddr is where ZooKeeper clients connect.
func (n *Node) ClientAddr() net.Addr { return n.listeners.client.Addr() }

// HTTPAddr is where the HTTP API is, nil when it is switched off.
func (n *Node) HTTPAddr() net.Addr {
	if n.listeners.http == nil {
		return nil
	}
	return n.listeners.http.Addr()
}

// Server is the server's request path, for looking at its state.
func (n *Node) Server() *server.Server { return n.server }

// Close stops the server in good order: leadership is handed over while
// clients are still served, then clients are let go, then the log is closed.
func (n *Node) Close() error {
	if err := n.agree.Transfer(); err != nil {
		n.logger.Warn("handing leadership over failed; the others will elect", "error", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var errs []error
	if n.http != nil {
		errs = append(errs, n.http.Shutdown(ctx))
	}
	n.server.Stop()
	errs = append(errs, n.zk.Shutdown(ctx), n.agree.Close())
	n.logger.Info("stopped")
	return errors.Join(errs...)
}

// ensemble is the configured servers, or this one alone.
func ensemble(s *config.Settings) []consensus.Server {
	if s.Standalone || len(s.Servers) == 0 {
		return []consensus.Server{{ID: state.ServerID(s.MyID), Voter: true}}
	}
	var all []consensus.Server
	for _, x := range s.Servers {
		all = append(all, consensus.Server{
			ID: state.ServerID(x.ID), Addr: x.PeerAddress(), Voter: x.Role != config.Observer,
		})
	}
	return all
}

// hosts are the names by which the HTTP port may be called when it is on loopback: the
// configured ones, and that which it was told to listen on.
func hosts(s *config.Settings) []string {
	if s.AdminAddress == "" {
		return s.AdminHosts
	}
	return append([]string{s.AdminAddress}, s.AdminHosts...)
}

// publish is this server's line of /zookeeper/config. Clients are told a
// client address only if the configuration has one, as in ZooKeeper: Curator
// connects to whatever stands there.
func publish(s *config.Settings) *state.Member {
	own, ok := s.Own()
	if !ok || s.Standalone {
		return nil
	}
	m := &state.Member{
		ID: state.ServerID(own.ID),
		Peer: net.JoinHostPort(own.Host, strconv.Itoa(own.PeerPort)) +
			":" + strconv.Itoa(own.ElectionPort),
	}
	if own.ClientPort > 0 {
		host := own.ClientHost
		if host == "" {
			host = "0.0.0.0"
		}
		m.Client = net.JoinHostPort(host, strconv.Itoa(own.ClientPort))
	}
	m.HTTP = httpAddress(s, own.Host)
	return m
}

// httpAddress is where other hosts reach the HTTP port; empty if they do not: it is
// switched off, or on the loopback interface of an ensemble that is not.
func httpAddress(s *config.Settings, own string) string {
	local := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "localhost" || ip != nil && ip.IsLoopback()
	}
	switch host := s.AdminAddress; {
	case !s.AdminEnabled || s.AdminPort == 0 || local(host) && !local(own):
		return ""
	case host == "":
		return net.JoinHostPort(own, strconv.Itoa(s.AdminPort))
	default:
		return net.JoinHostPort(host, strconv.Itoa(s.AdminPort))
	}
}
