// Package app puts one server together from its settings: storage, consensus, the
// request path, the HTTP server and the ZooKeeper listener. `zk-lite server` runs
// one, `zk-lite dev` three.
//
// It opens, connects and closes them in the right order, and decides nothing that a
// package below could decide. It starts one goroutine per listener, one that opens another
// client port when a reconfiguration names it, and one that tells the service manager
// how the server is; they end with Close.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/api/dns"
	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/backup"
)

// shutdownTimeout is how long each step of a stop waits for others, such as clients who take their last replies.
const shutdownTimeout = 5 * time.Second

// Server is a running server.
type Server struct {
	logger      *slog.Logger
	descriptors *process.Descriptors

	// The parts, in the order in which they start.
	peerTLS   *peerTLS // nil: the peer port does not speak TLS
	tls       *ports   // nil: nor does any other
	listeners listeners
	server    *server.Server // the request path
	consensus *consensus.Node
	audit     *audit.Log      // nil: none
	backups   *backupSchedule // nil: none
	mirror    *mirroring
	zk        *zk.Listener
	follower  *follower   // nil: clientPort is not open
	http      *api.Server // nil: it is switched off
	dns       *dns.Server // nil: the same
	reporter  *reporter   // nil: there is no service manager

	dirs []string // of the data and the backups
}

// Open starts a server. It serves clients as soon as the ensemble has a leader.
//
// Files are read and ports opened first, so that mistakes there are found before the data is touched. Then each
// part needs those before it: storage, the request path and consensus, which call each other, the audit log, backups,
// the ports' servers, and the reports to the service manager.
func Open(o Options) (s *Server, err error) {
	o.limitByMemory()
	s = &Server{logger: o.Logger, descriptors: process.OwnDescriptors()}
	if s.peerTLS, err = newPeerTLS(&o.Settings, o.Logger); err != nil {
		return nil, err
	}
	if s.tls, err = newPorts(&o.Settings, o.Logger); err != nil {
		return nil, err
	}
	if err = s.listeners.open(&o.Settings); err == nil {
		err = s.start(&o)
	}
	if err != nil {
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
	if err := s.startConsensus(o, store); err != nil {
		return errors.Join(err, store.Close())
	}
	if err := s.startMirror(o); err != nil {
		s.server.Stop()
		return errors.Join(err, s.consensus.Close())
	}
	s.audit = auditLog(o)
	s.tls.watch(c)
	s.peerTLS.watch(o.Logger)
	s.startBackups(o)
	s.serveClients(o)
	s.reporter = s.report(o)
	return nil
}

// startConsensus starts the request path and consensus.
func (s *Server) startConsensus(o *Options, store storage.Store) error {
	who, err := authenticator(o, portOf(s.listeners.http))
	if err != nil {
		return err
	}
	keys, err := peerKeys(&o.Settings, o.Logger)
	if err != nil {
		return err
	}
	s.server = server.New(o.server(who))
	cfg := o.consensus()
	cfg.Storage, cfg.Keys, cfg.Handler = store, keys, s.server.Handler()
	cfg.Listener, cfg.Verify = s.peerTLS.listener(s.listeners.peer), s.peerTLS.verify()
	cfg.Dial = s.peerTLS.dial(dialPeer(&o.Settings))
	if s.consensus, err = consensus.Open(cfg); err != nil {
		return err
	}
	s.server.Start(s.consensus, s.consensus.Ensemble())
	return nil
}

// serveClients starts the HTTP server and the one for the ZooKeeper protocol.
func (s *Server) serveClients(o *Options) {
	c := &o.Settings
	cfg := o.zooKeeper()
	cfg.Settings.ClientPort, cfg.Settings.SecureClientPort = s.clientPort, portOf(s.listeners.secure)
	cfg.HTTP = httpPort(c, s.listeners.http)
	cfg.Descriptors, cfg.Audit, cfg.Slow = s.descriptors.Clients, s.audit, s.server.Slow()
	cfg.Proposals, cfg.Metrics = s.consensus.Proposals(), s.metrics
	cfg.Digests = func() []zk.Digest {
		zxid, digest := s.server.Digest()
		return []zk.Digest{{Zxid: uint64(zxid), Value: digest}}
	}
	s.zk = zk.New(s.server, cfg)
	if l := s.listeners.client; l != nil {
		go s.serve("the ZooKeeper port", func() error { return s.zk.Serve(s.tls.client(c, l)) })
		s.followPort(c)
	}
	if l := s.listeners.secure; l != nil {
		go s.serve("the ZooKeeper port with TLS", func() error { return s.zk.Serve(s.tls.secure(c, l)) })
	}
	if l := s.listeners.dns; l != nil {
		cfg := c.DNS
		cfg.Descriptors, cfg.Logger = s.descriptors.Clients, o.Logger
		s.dns = dns.New(s.server, cfg)
		go s.dns.Serve(s.listeners.dnsUDP, l)
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
			Shed: s.zk.Shed, ReadOnly: s.server.ReadOnly,
			Certificate: s.tls.certificate(), PeerCertificate: s.peerTLS.certificate(), Mirror: s.mirror,
			Settings: &admin.Settings{
				ClientPort: s.clientPort, DataDir: c.DataDir, DataLogDir: c.DataLogDir,
				MaxClientCnxns: c.ZooKeeper.MaxPerAddress, ListenBacklog: c.ZooKeeper.Settings.ListenBacklog,
			},
		},
		Descriptors: s.descriptors.HTTP,
	}
	cfg.REST.Hosts, cfg.REST.MaxBody = hosts(c), c.ZooKeeper.MaxFrame
	cfg.REST.Callers = s.server.Callers
	cfg.REST.Audit, cfg.REST.Slow, cfg.REST.Logger = s.audit, s.server.Slow(), o.Logger
	cfg.REST.Dial, cfg.REST.AdmitSession = s.consensus.DialHTTP, s.zk.AdmitSession
	return cfg
}

// serve runs one of them until Close; its Shutdown waits for this to end.
func (s *Server) serve(what string, run func() error) {
	if err := run(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.logger.Error("no new clients are accepted", "listener", what, "error", err)
	}
}

// Close stops the server: leadership is handed over while clients are still served, then the clients are
// disconnected, then the log is closed.
func (s *Server) Close() error {
	s.reporter.stop()
	defer s.reporter.wait()
	if err := s.consensus.Ensemble().Transfer(); err != nil {
		s.logger.Info("handing leadership over failed; the others will elect", "error", err)
	}
	within(s.backups.stop)
	within(s.mirror.stop)
	s.follower.stop()
	if s.http != nil {
		within(func(ctx context.Context) {
			if err := s.http.Shutdown(ctx); err != nil { // no fault of this server
				s.logger.Info("HTTP clients were cut off", "error", err)
			}
		})
	}
	if s.dns != nil {
		_, _ = s.listeners.dns.Close(), s.listeners.dnsUDP.Close()
		s.dns.Close()
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

// within runs a step of the stop with a time limit of its own: a client that delays one does not shorten the others.
func within(step func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	step(ctx)
}

// backupSchedule takes backups in a goroutine.
type backupSchedule struct {
	*backup.Scheduler
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

// startBackups starts the scheduled backups, if there are any.
func (s *Server) startBackups(o *Options) {
	cfg := o.Settings.Backup
	if cfg.Directory == "" && cfg.Command == "" {
		return
	}
	if cfg.Directory != "" {
		s.dirs = append(s.dirs, cfg.Directory)
	}
	cfg.ID, cfg.Logger = s.server.Config().ID, o.Logger
	ctx, cancel := context.WithCancel(context.Background())
	b := &backupSchedule{backup.NewScheduler(s.server, s.consensus.Ensemble(), cfg), cancel, make(chan struct{})}
	go func() {
		defer close(b.done)
		b.Run(ctx)
	}()
	s.backups = b
}

// stop ends a backup that is being taken; ctx bounds the wait for a disk that hangs. It is usable on nil.
func (b *backupSchedule) stop(ctx context.Context) {
	if b == nil {
		return
	}
	b.cancel()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

// ClientAddr is where ZooKeeper clients connect; with TLS, if there is no port without it.
func (s *Server) ClientAddr() net.Addr {
	if l := s.listeners.now(); l != nil {
		return l.Addr()
	}
	return s.SecureClientAddr()
}

// SecureClientAddr is where ZooKeeper clients with TLS connect, nil if they have no separate port.
func (s *Server) SecureClientAddr() net.Addr {
	if s.listeners.secure == nil {
		return nil
	}
	return s.listeners.secure.Addr()
}

// DNSAddr is where the DNS port is, nil when there is none.
func (s *Server) DNSAddr() net.Addr {
	if s.listeners.dns == nil {
		return nil
	}
	return s.listeners.dns.Addr()
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

// portOf is the number of a listener's port; config.NoPort without one.
func portOf(l net.Listener) int {
	if l == nil {
		return config.NoPort
	}
	return l.Addr().(*net.TCPAddr).Port
}
