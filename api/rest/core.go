// Package rest is what all operations of the HTTP API share: routing, parameters, bodies,
// problem documents, identities, sessions, Idempotency-Keys, consistency, streams of
// events, and limits. It has no operation of its own; the packages data, coordination and
// admin have, and do not import each other.
//
// # A request's way
//
// Core.Handler finds the resource of the URL. Request.run then takes the steps of the table in request.go, whose order
// is part of the server's security. The last one calls the operation's handler, which answers with Request.Answer or
// returns an error, which Request.fail sends as a problem document. Afterwards the request is counted, and logged if it
// was slow.
//
// A Request belongs to the goroutine that net/http runs for it. LongRequests.Watch is run
// by package api, in a goroutine of its own.
package rest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Server is what every request needs of *server.Server. Tests replace some of its methods.
type Server interface {
	Status() consensus.Status
	Serving() bool
	Draining() bool
	View(visit func(v *server.View))
	Do(ctx context.Context, c *state.Command) (state.Result, error)
	Barrier(ctx context.Context) error
	CheckSession(id znode.SessionID, p session.Password) (timeout time.Duration, ok bool)
	Touch(id znode.SessionID)
}

// Config configures a Core.
type Config struct {
	ID     state.ServerID // this server's
	Auth   *auth.Authenticator
	Usage  *insight.Usage
	Logger *slog.Logger
	// Callers are those of both ports; nil: none is held back.
	Callers *server.Callers
	// Origins are the web origins besides the server's own that may call, such as
	// "https://console.example.com"; "*" is all of them.
	Origins []string
	// Hosts are the names, besides localhost, by which clients may call a server that
	// listens on loopback only; "*" is all names.
	Hosts   []string
	MaxBody int // bytes of a znode's data in a request; 0: defaultMaxBody
	Limits  Limits
	Audit   *audit.Log       // nil: none
	Slow    *insight.SlowLog // nil: none
	Dial    Dial             // nil: there are no other servers
	// AdmitSession reports whether one more session may be opened now, and counts it; nil: any.
	AdmitSession func() bool
}

// Limits bound what all clients together may hold. 0 is the default; below it nothing
// is allowed.
type Limits struct {
	// Writes are the commands in progress. The default is below what consensus takes
	// before it makes callers wait, so that a client gets a reply at once.
	Writes int64
	// BodyBytes is the memory of all requests' bodies, of which one address has half at most.
	BodyBytes int64
	// BodyTime is how long a request's body may take.
	BodyTime time.Duration
	// LongRequests are the streams and long polls: about 30 KB each.
	LongRequests, LongRequestsPerAddress int
	// SessionsPerAddress are those that clients of an address have opened here and that have not ended.
	SessionsPerAddress int
	// Searches are the requests in progress that look at much of the tree; one of each address.
	Searches int
}

// Bounds of what one request may send, and of how long it may take.
const (
	RequestTimeout = 10 * time.Second // for all but streams and long polls
	WriteTimeout   = 30 * time.Second // for a client to read what it is sent
	BodyTimeout    = 30 * time.Second // default of Limits.BodyTime
	// SmallBody is room for a request's few fields.
	SmallBody = 4 << 10
	// defaultMaxBody is jute.maxbuffer's default, so that the ZooKeeper port can deliver
	// what the HTTP port stores.
	defaultMaxBody = 1<<20 - 1
)

// Core is what the requests of one HTTP server share.
type Core struct {
	Server   Server
	Config   Config
	Stopping context.Context // ends when the HTTP server begins to stop
	Long     LongRequests
	Metrics  RequestMetrics

	others   *http.Client
	loopback atomic.Bool  // all listeners are on the loopback interface
	writes   atomic.Int64 // in progress, at most Limits.Writes
	bodies   bodies
	keys     keyUse
	sessions sessionUse
	searches places
}

// NewCore returns a Core whose long requests end when ctx does.
func NewCore(ctx context.Context, srv Server, cfg Config) *Core {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = defaultMaxBody
	}
	l := &cfg.Limits
	l.Writes = orDefault(l.Writes, 8192)
	l.BodyBytes = orDefault(l.BodyBytes, 256<<20)
	l.BodyTime = orDefault(l.BodyTime, BodyTimeout)
	l.LongRequests = orDefault(l.LongRequests, 10_000)
	l.LongRequestsPerAddress = orDefault(l.LongRequestsPerAddress, 2_000)
	l.Searches = orDefault(l.Searches, 2)
	l.SessionsPerAddress = orDefault(l.SessionsPerAddress, 2_000)
	return &Core{
		Server: srv, Config: cfg, Stopping: ctx, others: othersBy(cfg.Dial),
		bodies:   bodies{limit: l.BodyBytes, byAddress: map[string]int64{}},
		searches: newPlaces(l.Searches, 1),
		sessions: sessionUse{
			limit: l.SessionsPerAddress, byAddress: map[string]map[znode.SessionID]bool{}, pending: map[string]int{},
			look: firstLook,
		},
		Long: LongRequests{
			stopping: ctx, server: srv, places: newPlaces(l.LongRequests, l.LongRequestsPerAddress),
		},
	}
}

func orDefault[T int | int64 | time.Duration](n, def T) T {
	if n == 0 {
		return def
	}
	return n
}

// Writes returns how many commands are in progress.
func (c *Core) Writes() int64 { return c.writes.Load() }

// BodyBytes returns how much memory the bodies of requests take.
func (c *Core) BodyBytes() int64 { return c.bodies.bytes() }

// SetLoopback sets whether the server is reached from its own machine only.
func (c *Core) SetLoopback(only bool) { c.loopback.Store(only) }

// Loopback reports whether the server is reached from its own machine only.
func (c *Core) Loopback() bool { return c.loopback.Load() }

// connKey is where a request's context has its net.Conn.
type connKey struct{}

// WithConn is for http.Server.ConnContext: Taken needs the connection.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
