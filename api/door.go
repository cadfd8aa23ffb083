package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/server/restore"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Server is what the door needs of *server.Server.
type Server interface {
	Status() server.Status
	Serving() bool
	Config() server.Config

	View(visit func(v *server.View))
	Do(ctx context.Context, c *state.Command) (state.Result, error)
	Barrier(ctx context.Context) error
	Authenticate(credentials string) []znode.ID

	NewSession(timeout time.Duration) *state.Command
	CheckSession(id znode.SessionID, p session.Password) (timeout time.Duration, ok bool)
	Touch(id znode.SessionID)
	Expiries() map[int64][]znode.SessionID
	SessionEnd(id znode.SessionID) (done <-chan struct{}, cancel func())

	Subscribe(filters []changes.Filter, after changes.Position) (*changes.Stream, error)

	Members() map[state.ServerID]server.Member
	AddServer(ctx context.Context, m server.Member) error
	RemoveServer(ctx context.Context, id state.ServerID, force bool) error
	TransferTo(ctx context.Context, id state.ServerID) error
	Drain(ctx context.Context) error
	Undrain()
	Draining() bool
	EnsembleStatus(ctx context.Context) (server.EnsembleStatus, error)

	Digest() (znode.Zxid, uint64)
	Snapshot() (*state.Snapshot, znode.Zxid)
	Restore(ctx context.Context, in io.Reader, o restore.Options) (restore.Result, error)
}

// Config is what a Door is made of.
type Config struct {
	Version string // zk-lite's own
	Logger  *slog.Logger
	// Origins are the web origins besides the server's own that may call, such as
	// "https://console.example.com"; "*" is all of them.
	Origins []string
	// Hosts are the names, besides localhost, by which clients may call a server that
	// listens on loopback only; "*" is all names.
	Hosts   []string
	MaxBody int // bytes of a znode's data in a request; 0: defaultMaxBody

	Metrics  Metrics   // adds to /metrics and the command monitor; nil: nothing
	Settings *Settings // what the command configuration shows; nil: less
	Port     Port      // the server's ZooKeeper port; nil: it has none
}

// Door serves HTTP.
type Door struct {
	srv  Server
	cfg  Config
	http *http.Server
	docs documents

	traffic []*traffic // of all operations; the first: of no operation

	// loopback says that all listeners are on the loopback interface.
	loopback atomic.Bool

	conns  atomic.Int64 // open, at most maxConns
	writes atomic.Int64 // on their way, at most maxWrites
	bodies atomic.Int64 // bytes held of requests' bodies, at most maxBodies

	stopping context.Context // ends when Shutdown begins
	stop     func()
	waiting  longRequests
	started  time.Time
	backup   sync.Mutex // held while a snapshot is sent

	mu      sync.Mutex     // protects the fields below
	streams map[string]int // address → open streams and long polls, never 0
	open    int            // their sum
	served  bool           // Serve was called
}

// Bounds of what clients may send, of how long it may take, and of what they may
// hold here.
const (
	headerTimeout  = 10 * time.Second // for the request line and headers
	headerBytes    = 64 << 10
	idleTimeout    = 2 * time.Minute
	bodyTimeout    = 30 * time.Second
	requestTimeout = 10 * time.Second // for all but streams and long polls
	writeTimeout   = 30 * time.Second // for a client to take what it is sent

	// defaultMaxBody is jute.maxbuffer's default, so that what one door stores
	// the other can deliver.
	defaultMaxBody = 1<<20 - 1
	// multiFactor is how much larger than one znode's data a transaction may be:
	// room for some znodes, and for base64.
	multiFactor = 4
	// maxBodies bounds the memory of all requests' bodies together.
	maxBodies = 256 << 20
	// maxWrites is below what consensus takes before it makes callers wait, so
	// that a client is told rather than kept.
	maxWrites = 8192

	// maxConns leaves room for others beside all streams; an idle one costs 10 KB.
	maxConns = 16_384
	// maxStreams and maxStreamsPerAddress bound what waits: about 30 KB each.
	maxStreams           = 10_000
	maxStreamsPerAddress = 2_000
)

// New returns a Door that is not served yet.
func New(srv Server, cfg Config) *Door {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = defaultMaxBody
	}
	d := &Door{srv: srv, cfg: cfg, started: time.Now(), streams: map[string]int{}}
	ctx, stop := context.WithCancelCause(context.Background())
	d.stopping, d.stop = ctx, func() { stop(errStopping) }
	d.waiting.stopping, d.waiting.serving = d.stopping, srv.Serving
	d.docs = buildDocuments(cfg.Version)
	d.http = &http.Server{
		Handler: d.router(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerBytes,
		IdleTimeout: idleTimeout, ConnContext: withConn, ConnState: d.countConn,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	d.http.RegisterOnShutdown(d.stop)
	return d
}

// Serve answers requests until Shutdown. Several listeners may be served at once.
func (d *Door) Serve(l net.Listener) error {
	d.listen(isLoopback(l))
	if err := d.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen notes a listener. One that others can reach opens the door to all names, since
// a connection does not tell by which name its client found it.
func (d *Door) listen(loopback bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loopback.Store(loopback && (d.loopback.Load() || !d.served))
	if !d.served {
		d.served = true
		go d.watchServing()
	}
}

// Shutdown stops accepting, ends streams and long polls, and waits for requests in
// progress until ctx ends.
func (d *Door) Shutdown(ctx context.Context) error { return d.http.Shutdown(ctx) }

// connKey is where a request's context has its net.Conn.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// countConn closes connections that are too many.
func (d *Door) countConn(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if d.conns.Add(1) > maxConns {
			_ = c.Close() // which leads to StateClosed
		}
	case http.StateClosed:
		d.conns.Add(-1)
	}
}
