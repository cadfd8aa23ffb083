// Package app puts one server together from its settings: storage, consensus, the
// request path, the HTTP server and the ZooKeeper listener. `zk-lite server` runs
// one, `zk-lite dev` three.
//
// It opens, connects and closes them in the right order, and decides nothing that a
// package below could decide. It starts one goroutine per listener, and one that tells
// the service manager how the server is; they end with Close.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/descriptors"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/sdnotify"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/server/backup"
)

// shutdownTimeout is how long each step of a stop waits for others, such as clients who take their last replies.
const shutdownTimeout = 5 * time.Second

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

// Server is a running server.
type Server struct {
	logger      *slog.Logger
	listeners   listeners
	tls         *ports     // nil: no port speaks TLS
	peerTLS     *peerTLS   // nil: nor does the peer port
	audit       *audit.Log // nil: none
	descriptors *descriptors.Pool
	consensus   *consensus.Node
	server      *server.Server
	zk          *zk.Listener
	http        *api.Server       // nil when switched off
	dirs        []string          // of the data and the backups
	backups     *backup.Scheduler // nil: there are none
	stopBackups func() (done <-chan struct{})
	// stopReporting tells the service manager, and returns what waits for the reporter.
	stopReporting func() (wait func())
}

// Open starts a server. It serves clients as soon as the ensemble has a leader.
func Open(o Options) (*Server, error) {
	o.leaveRoom()
	s := &Server{logger: o.Logger, descriptors: descriptors.ForProcess()}
	var err error
	if s.peerTLS, err = newPeerTLS(&o.Settings, o.Logger); err != nil {
		return nil, err
	}
	if s.tls, err = newPorts(&o.Settings, o.Logger); err != nil {
		return nil, err
	}
	if err := s.listeners.open(&o.Settings); err != nil {
		s.listeners.close()
		return nil, err
	}
	if err := s.start(&o); err != nil {
		s.listeners.close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(o *Options) error {
	c := &o.Settings
	o.Logger.Info("starting", "version", o.Version, "server", c.MyID, "dataDir", c.DataDir,
		"clients", s.ClientAddr().String(), "ensemble", len(c.Servers))
	if c.Storage.Kind == storage.LogBolt {
		o.Logger.Warn("log.store=boltdb is deprecated: it does not notice damaged entries; to change, remove this " +
			"server from the ensemble, empty its data directory, and add it with log.store=raftlog")
	}
	store, err := storage.Open(o.storage())
	if err != nil {
		return err
	}
	if s.dirs = []string{c.DataDir}; c.DataLogDir != "" && c.DataLogDir != c.DataDir {
		s.dirs = append(s.dirs, c.DataLogDir)
	}
	who, err := authenticator(o, portOf(s.listeners.http))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	keys, err := peerKeys(c, o.Logger)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	s.server = server.New(o.server(who))
	cfg := o.consensus()
	cfg.Storage, cfg.Keys, cfg.Handler = store, keys, s.server.Handler()
	cfg.Listener, cfg.Verify = s.peerTLS.listener(s.listeners.peer), s.peerTLS.verify()
	cfg.Dial = s.peerTLS.dial(dialPeer(c))
	s.consensus, err = consensus.Open(cfg)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	s.server.Start(s.consensus, s.consensus.Ensemble())
	s.audit = auditLog(o)
	s.tls.watch(c)
	s.peerTLS.watch(o.Logger)
	s.takeBackups(o)
	s.serveClients(o)
	s.stopReporting = s.report(o)
	return nil
}

// Check finds what would stop the start, as far as that can be known without opening or
// creating anything. The error joins all that it has found.
func Check(o Options) error {
	_, peers := newPeerTLS(&o.Settings, o.Logger)
	_, clients := newPorts(&o.Settings, o.Logger)
	_, tokenFile := tokens(&o)
	_, login := sasl(&o)
	c := o.storage()
	return errors.Join(peers, clients, tokenFile, login, c.RefuseZooKeeper(),
		c.CheckIdentity(state.ServerID(o.Settings.MyID)))
}

// Runs reports whether a server has the data directory of s open. An error says why that is not known; s may be of a
// configuration that has errors.
func Runs(s *config.Settings) (bool, error) {
	if s.DataDir == "" {
		return false, errors.New("dataDir is not known")
	}
	return storage.InUse(s.DataDir)
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

// zooKeeper is the Config of ZooKeeper's port, but for the parts of the server that it asks.
func (o *Options) zooKeeper() zk.Config {
	c := &o.Settings
	own, _ := c.Own()
	cfg := c.ZooKeeper
	cfg.Version, cfg.BuildDate, cfg.Logger = o.Version, o.buildDate(), o.Logger
	cfg.Settings.DataDir, cfg.Settings.DataLogDir, cfg.Settings.SyncLimit = c.DataDir, c.DataLogDir, c.SyncLimit
	cfg.Settings.ElectionPort, cfg.Settings.QuorumPort = own.ElectionPort, own.PeerPort
	cfg.Settings.Observer = own.Role == config.Observer
	return cfg
}

// serveClients starts the HTTP server and the one for the ZooKeeper protocol.
func (s *Server) serveClients(o *Options) {
	c := &o.Settings
	cfg := o.zooKeeper()
	cfg.Settings.ClientPort, cfg.Settings.SecureClientPort = portOf(s.listeners.client), portOf(s.listeners.secure)
	cfg.Descriptors, cfg.Audit, cfg.Slow = s.descriptors.Clients, s.audit, s.server.Slow()
	cfg.Proposals, cfg.Metrics = s.consensus, s.metrics
	cfg.Digests = func() []zk.Digest {
		zxid, digest := s.server.Digest()
		return []zk.Digest{{Zxid: uint64(zxid), Value: digest}}
	}
	s.zk = zk.New(s.server, cfg)
	if l := s.listeners.client; l != nil {
		go s.serve("the ZooKeeper port", func() error { return s.zk.Serve(s.tls.client(c, l)) })
	}
	if l := s.listeners.secure; l != nil {
		go s.serve("the ZooKeeper port with TLS", func() error { return s.zk.Serve(s.tls.secure(c, l)) })
	}
	if s.listeners.http != nil {
		s.http = api.New(s.server, s.consensus.Ensemble(), s.httpConfig(o))
		go s.serve("the HTTP port", func() error { return s.http.Serve(s.tls.http(c, s.listeners.http)) })
		go s.serve("the peer port for HTTP", func() error { return s.http.ServeMembers(s.consensus.ListenHTTP()) })
	}
}

// httpConfig gives the HTTP port what it asks of the rest of the server.
func (s *Server) httpConfig(o *Options) api.Config {
	c := &o.Settings
	cfg := api.Config{
		REST: c.HTTP,
		Admin: admin.Config{
			Version: o.Version, BuildDate: o.buildDate(), Metrics: s.metrics, Checks: s.checks, Port: s.zk,
			Certificate: s.tls.certificate(), PeerCertificate: s.peerTLS.certificate(),
			Settings: &admin.Settings{
				ClientPort: portOf(s.listeners.client), DataDir: c.DataDir, DataLogDir: c.DataLogDir,
				MaxClientCnxns: c.ZooKeeper.MaxPerAddress, ListenBacklog: c.ZooKeeper.Settings.ListenBacklog,
			},
		},
		Descriptors: s.descriptors.HTTP,
	}
	cfg.REST.Hosts, cfg.REST.MaxBody = hosts(c), c.ZooKeeper.MaxFrame
	cfg.REST.Audit, cfg.REST.Slow, cfg.REST.Logger = s.audit, s.server.Slow(), o.Logger
	cfg.REST.Dial, cfg.REST.AdmitSession = s.consensus.DialHTTP, s.zk.AdmitSession
	return cfg
}

// buildDate is what four-letter words and AdminServer's commands print.
func (o *Options) buildDate() string {
	if o.Built.IsZero() {
		return zk.UnknownBuildDate
	}
	return o.Built.UTC().Format(zk.BuildDateFormat)
}

// serve runs one of the two until Close; its Shutdown waits for this to end.
func (s *Server) serve(what string, run func() error) {
	if err := run(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.logger.Error("no new clients are accepted", "listener", what, "error", err)
	}
}

// metrics adds the metrics of consensus and of descriptors to mntr.
func (s *Server) metrics(emit func(key string, value any)) {
	emit("descriptors_refused_total", s.descriptors.Refused())
	s.tls.metrics(emit)
	s.peerTLS.metrics(emit)
	emit("audit_events_left_out_total", s.audit.LeftOut())
	emit("slow_requests_total", s.server.Slow().Count())
	emit("sessions_expired_total", s.server.Expired().Count())
	emit("disk_free_bytes", s.free())
	if s.backups != nil {
		s.backups.Metrics(emit)
	}
	for _, m := range s.consensus.Metrics() {
		if byServer, is := m.Value.(map[state.ServerID]float64); is {
			emit(m.Key, labelled(byServer))
			continue
		}
		emit(m.Key, m.Value)
	}
}

// free is the room on the disks of the data directories and of the backups.
func (s *Server) free() (all []metrics.Labelled) {
	for _, dir := range s.dirs {
		if n, err := process.FreeBytes(dir); err == nil {
			all = append(all, metrics.Labelled{Labels: "directory=" + metrics.Quote(dir), Value: n})
		}
	}
	return all
}

func labelled(byServer map[state.ServerID]float64) (all []metrics.Labelled) {
	for _, id := range slices.Sorted(maps.Keys(byServer)) {
		all = append(all, metrics.Labelled{Labels: fmt.Sprintf("server=\"%d\"", id), Value: byServer[id]})
	}
	return all
}

// ClientAddr is where ZooKeeper clients connect; with TLS, if there is no port without it.
func (s *Server) ClientAddr() net.Addr {
	if s.listeners.client == nil {
		return s.SecureClientAddr()
	}
	return s.listeners.client.Addr()
}

// SecureClientAddr is where ZooKeeper clients with TLS connect, nil if that is no port of its own.
func (s *Server) SecureClientAddr() net.Addr {
	if s.listeners.secure == nil {
		return nil
	}
	return s.listeners.secure.Addr()
}

// HTTPAddr is where the HTTP API is, nil when it is switched off.
func (s *Server) HTTPAddr() net.Addr {
	if s.listeners.http == nil {
		return nil
	}
	return s.listeners.http.Addr()
}

// Server is the server's request path, for tests that read its state.
func (s *Server) Server() *server.Server { return s.server }

// Consensus is the server's part in the agreement, for tests.
func (s *Server) Consensus() *consensus.Node { return s.consensus }

// Close stops the server in good order: leadership is handed over while
// clients are still served, then clients are let go, then the log is closed.
func (s *Server) Close() error {
	defer s.stopReporting()()
	if err := s.consensus.Ensemble().Transfer(); err != nil {
		s.logger.Info("handing leadership over failed; the others will elect", "error", err)
	}
	within(s.endBackups)
	if s.http != nil {
		within(func(ctx context.Context) {
			if err := s.http.Shutdown(ctx); err != nil { // no fault of this server
				s.logger.Info("HTTP clients were cut off", "error", err)
			}
		})
	}
	s.server.Stop()
	var errs []error
	within(func(ctx context.Context) { errs = append(errs, s.zk.Shutdown(ctx)) })
	errs = append(errs, s.consensus.Close())
	s.tls.close()
	s.peerTLS.close()
	s.audit.Note(audit.Client{}, audit.Event{User: processUser(), Operation: "serverStop", Result: audit.Invoked})
	errs = append(errs, s.audit.Close())
	s.logger.Info("stopped")
	return errors.Join(errs...)
}

// within runs a step of the stop, which has a time of its own: who holds one up does not shorten the others.
func within(step func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	step(ctx)
}

// portOf is the number of a listener's port; config.NoPort without one.
func portOf(l net.Listener) int {
	if l == nil {
		return config.NoPort
	}
	return l.Addr().(*net.TCPAddr).Port
}

// alone reports that no other server ever reaches this one, so that it has no peer port.
func alone(s *config.Settings) bool { return s.Standalone || len(s.Servers) == 0 }

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

// hosts are the names that the header Host may have when the HTTP port is on loopback: the
// configured ones, and the address that it listens on.
func hosts(s *config.Settings) []string {
	if s.AdminAddress == "" {
		return s.HTTP.Hosts
	}
	return append([]string{s.AdminAddress}, s.HTTP.Hosts...)
}

// publish is this server's release, and its line of /zookeeper/config, unless it is standalone. It has a client
// address only if the configuration has one, as in ZooKeeper: Curator connects to
// what it reads there.
func publish(o *Options) *state.Member {
	s := &o.Settings
	m := &state.Member{ID: state.ServerID(s.MyID)}
	m.Version, m.Commit, _ = strings.Cut(o.Version, "+")
	own, ok := s.Own()
	if !ok || s.Standalone {
		return m
	}
	m.Peer = net.JoinHostPort(own.Host, strconv.Itoa(own.PeerPort)) + ":" + strconv.Itoa(own.ElectionPort)
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
	case host == "", net.ParseIP(host).IsUnspecified(): // it listens there, too
		return net.JoinHostPort(own, strconv.Itoa(s.AdminPort))
	default:
		return net.JoinHostPort(host, strconv.Itoa(s.AdminPort))
	}
}
