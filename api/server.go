package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/api/coordination"
	"github.com/zk-lite/zk-lite/api/data"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/api/ui"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/internal/crash"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/insight"
)

// Backend is what the API needs of *server.Server. Tests replace some of its methods.
type Backend interface {
	admin.Server
	data.Server
	Config() server.Config
	Usage() *insight.Usage
}

// Config configures a Server.
type Config struct {
	REST  rest.Config
	Admin admin.Config // but for Others
	// Descriptors bounds the connections, beside what bounds them anyway; nil: not.
	Descriptors *process.DescriptorShare
}

// Server serves HTTP.
type Server struct {
	http *http.Server
	core *rest.Core
	stop func() // ends streams, long polls and run
	run  func() // what runs while it is served

	leaving     atomic.Bool // Shutdown was called
	descriptors *process.DescriptorShare
	logger      *slog.Logger
	refusals    repeats.Filter // of connections, by their reasons

	mu        sync.Mutex            // protects the fields below
	conns     int                   // open, at most maxConns
	addresses map[netip.Addr]int    // the same by address, at most maxPerAddress each
	served    bool                  // Serve was called
	unused    map[net.Conn]struct{} // connections on which nothing has come yet
	active    map[net.Conn]struct{} // those with a request in progress
	listeners []net.Listener
}

const (
	headerTimeout = 10 * time.Second // for the request line and headers
	headerBytes   = 64 << 10
	idleTimeout   = 2 * time.Minute
	// maxConns leaves room for others beside all streams; an idle one costs 10 KB.
	maxConns = 16_384
	// maxPerAddress leaves room for others beside all that one address has: a proxy's clients have one.
	maxPerAddress = maxConns / 2
	// localConns is how many of maxConns are reserved for this machine.
	localConns = 64
	// quietTime is for how long clients that use their connections are waited for when the server stops.
	quietTime = 100 * time.Millisecond
	// lastBytes is for how long the rest of a request is waited for then.
	lastBytes = time.Second
)

// New returns a Server that is not served yet.
func New(srv Backend, e *membership.Ensemble, cfg Config) *Server {
	stopping, stop := context.WithCancelCause(context.Background())
	own := srv.Config()
	s := &Server{
		stop: func() { stop(rest.ErrStopping) }, addresses: map[netip.Addr]int{},
		unused: map[net.Conn]struct{}{}, active: map[net.Conn]struct{}{},
		descriptors: cfg.Descriptors, logger: cfg.REST.Logger,
	}
	cfg.REST.ID, cfg.REST.Auth, cfg.REST.Usage = own.ID, own.Auth, srv.Usage()
	cfg.Admin.Server = own
	s.core = rest.NewCore(stopping, srv, cfg.REST)
	all, run := routes(s.core, srv, e, cfg.Admin)
	s.run = run
	s.http = &http.Server{
		Handler:           s.closeWhenStopping(s.core.Handler(all)),
		ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerBytes, IdleTimeout: idleTimeout,
		ConnContext: rest.WithConn, ConnState: s.countConn,
		ErrorLog: slog.NewLogLogger(cfg.REST.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// routes returns all operations, and a function that has to run while they are served.
func routes(core *rest.Core, srv Backend, e *membership.Ensemble, cfg admin.Config) (all []rest.Route, run func()) {
	cfg.Others = ui.Routes()
	all, run = admin.Routes(core, srv, e, cfg)
	return slices.Concat(all, ui.Routes(), data.Routes(srv), coordination.Routes(srv)), run
}

// Serve answers requests until Shutdown. Several listeners may be served at once.
func (s *Server) Serve(l net.Listener) error {
	l = &onceListener{Listener: l}
	s.listen(l)
	return s.accept(l)
}

// ServeMembers answers what other servers pass on until Shutdown. It is for a listener beside one of Serve's.
func (s *Server) ServeMembers(l net.Listener) error { return s.accept(l) }

func (s *Server) accept(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) && !s.leaving.Load() {
		return err
	}
	return nil
}

// onceListener is closed once: Shutdown closes it before net/http does.
type onceListener struct {
	net.Listener
	once sync.Once
	err  error
}

// Close implements net.Listener.
func (l *onceListener) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// listen notes a listener. One that others can reach permits all names, since a
// connection does not show by which name its client found it.
func (s *Server) listen(l net.Listener) {
	loopback := isLoopback(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
	s.core.SetLoopback(loopback && (s.core.Loopback() || !s.served))
	if !s.served {
		s.served = true
		go s.core.Long.Watch()
		go s.run()
	}
}

// isLoopback reports whether a listener is reached from its own machine only.
func isLoopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// closeWhenStopping has the clients of a server that is about to stop close their connections after a reply: then no
// request is on its way when the server closes them.
func (s *Server) closeWhenStopping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer crash.OnPanic(http.ErrAbortHandler) // net/http would continue, with the locks that the handler holds
		if s.leaving.Load() || s.core.Server.Draining() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Shutdown stops accepting, ends streams and long polls, lets those clients go that use their connections, and waits
// for requests in progress: those of which a part is missing are ended soon. When ctx ends first, the others are cut
// off, and its error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaving.Store(true)
	s.mu.Lock()
	for _, l := range s.listeners {
		_ = l.Close() // Serve returns
	}
	s.mu.Unlock()
	s.stop()
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	tick := time.NewTicker(quietTime / 20)
	defer tick.Stop()
	for s.open() > 0 && quiet.Err() == nil {
		select {
		case <-tick.C:
		case <-quiet.Done():
		}
	}
	s.closeUnused()
	defer time.AfterFunc(lastBytes, s.endReads).Stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	return err
}

// endReads ends the wait for what clients have yet to send of their requests.
func (s *Server) endReads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.active {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// closeUnused closes connections that browsers have opened in advance: net/http would wait five seconds for a request.
func (s *Server) closeUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.unused {
		_ = c.Close()
	}
}

func (s *Server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// countConn closes connections that are too many.
func (s *Server) countConn(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		within := s.descriptors.Take()
		switch limit := s.opened(c); {
		case limit != "":
			s.refuse(c, limit)
		case !within:
			s.descriptors.Refuse()
			s.refuse(c, process.DescriptorLimit)
		}
	case http.StateActive:
		s.mu.Lock()
		delete(s.unused, c)
		s.active[c] = struct{}{}
		s.mu.Unlock()
	case http.StateIdle:
		s.mu.Lock()
		delete(s.active, c)
		s.mu.Unlock()
	case http.StateClosed:
		s.closed(c)
		s.descriptors.Return()
	}
}

// opened counts a new connection, and names the limit that it exceeds, if any.
func (s *Server) opened(c net.Conn) (limit string) {
	address := addressOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unused[c] = struct{}{}
	s.conns++
	s.addresses[address]++
	switch {
	case s.conns > maxConns, s.conns > maxConns-localConns && !address.IsLoopback():
		return "connections"
	case s.addresses[address] > maxPerAddress:
		return "connections of one address"
	}
	return ""
}

func (s *Server) closed(c net.Conn) {
	address := addressOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unused, c)
	delete(s.active, c)
	s.conns--
	if s.addresses[address]--; s.addresses[address] == 0 {
		delete(s.addresses, address)
	}
}

// addressOf is a client's address; the zero one where there is none, as in pipes.
func addressOf(c net.Conn) netip.Addr {
	a, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return a.Addr().Unmap().WithZone("")
}

// refuse closes a connection, which leads to StateClosed, and logs that once in a while.
func (s *Server) refuse(c net.Conn, limit string) {
	_ = c.Close()
	if pass, leftOut := s.refusals.Pass(limit); pass {
		s.logger.Warn("HTTP client refused", "remote", c.RemoteAddr(), "limit", limit, "left_out", leftOut)
	}
}
