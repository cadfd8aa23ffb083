// Package admin has the HTTP operations for those who operate an ensemble: its members,
// draining, backups, ZooKeeper's AdminServer commands, metrics, health, and the documents
// about the API itself. It reads and changes no znodes.
//
// It starts no goroutine.
package admin

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/api/metrics"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/backup"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Server is what the operations need of *server.Server.
type Server interface {
	rest.Server
	Backups
	Stalled() bool
	Memory() server.Memory
	Drain(ctx context.Context) error
	Undrain()
	Connection(id znode.SessionID) *server.Conn
	Digest() (znode.Zxid, uint64)
	SessionDeadlines() map[int64][]znode.SessionID
	Expired() *insight.Expirations
}

// Backups takes and restores backups.
type Backups interface {
	Snapshot() (*state.Snapshot, znode.Zxid)
	Restore(ctx context.Context, in io.Reader, o backup.RestoreOptions) (backup.Restored, error)
}

// Config configures the operations of this package.
type Config struct {
	Version string // zk-lite's own
	// BuildDate is what AdminServer's commands print after "built on".
	BuildDate string
	Metrics   metrics.Part   // of other parts of the server, for /metrics and monitor; nil: none
	Server    server.Config  // what the command configuration shows of it
	Settings  *Settings      // what it shows besides; nil: nothing
	Checks    func() []Check // more of readyz?verbose; nil: none
	Port      Port           // the server's ZooKeeper port; nil: it has none
	// Certificate is the one that this server shows clients, PeerCertificate other servers; nil: none.
	Certificate, PeerCertificate Certificate
	// Others are operations of other packages that are not for whom an ACL permits; the document says so.
	Others []rest.Route
}

// Certificate is what is known of a server's certificate.
type Certificate interface {
	Expires() time.Time // zero: there is none
	Err() error         // why a newer one is not in use; nil: there is none, or it is
}

type handlers struct {
	core     *rest.Core
	server   Server
	ensemble *membership.Ensemble
	cfg      Config
	docs     documents
	started  time.Time
	history  *metrics.History
	backup   sync.Mutex // held while a snapshot is sent

	backups, backupsFailed atomic.Int64
}

// Routes returns the operations of this package, and what has to run while the server serves, until the core stops.
func Routes(core *rest.Core, srv Server, e *membership.Ensemble, cfg Config) (all []rest.Route, run func()) {
	h := &handlers{
		core: core, server: srv, ensemble: e, cfg: cfg, started: time.Now(), history: metrics.NewHistory(),
	}
	routes := h.routes()
	h.docs = buildDocuments(cfg.Version, slices.Concat(routes, cfg.Others))
	return routes, func() { h.history.Record(core.Stopping, h.measure) }
}

func (h *handlers) routes() []rest.Route {
	const resource = "/v1/cluster"
	get, post, del := http.MethodGet, http.MethodPost, http.MethodDelete
	return append(h.releaseRoutes(), []rest.Route{
		rest.LocalOp(get, "/", root).For(rest.Open),
		rest.LocalOp(get, "/livez", h.livez).For(rest.Open),
		rest.LocalOp(get, "/readyz", h.readyz, "verbose").For(rest.Open),
		rest.LocalOp(get, "/openapi.json", h.openapi).For(rest.Open),
		rest.LocalOp(get, "/docs", h.page).For(rest.Open),
		rest.LocalOp(get, "/metrics", h.metrics).For(rest.Open).Anywhere(),
		rest.LocalOp(get, "/commands", h.listCommands).For(rest.Open),
		rest.LocalOp(get, "/commands/{command}", h.runCommand, "traceMask").For(rest.Open),

		rest.LocalOp(get, "/v1/history", h.getHistory, "since").Anywhere(),
		rest.LocalOp(get, "/v1/servers", h.listServers),
		rest.LocalOp(get, "/v1/sessions", h.listSessions, "after", "limit"),
		rest.LocalOp(get, "/v1/sessions/{id}", h.getSession).Anywhere(),
		rest.LocalOp(get, "/v1/watchers/{path}", h.listWatchers).Anywhere(),

		rest.LocalOp(get, resource, asMember(h.getCluster)).For(rest.Administrators),
		rest.LocalOp(post, resource+"/members", asMember(h.addMember)).For(rest.Administrators),
		rest.LocalOp(del, resource+"/members/{id}", asMember(h.removeMember), "force").For(rest.Administrators),
		rest.LocalOp(post, resource+"/members/{id}/token", asMember(h.makeToken)).For(rest.Administrators),
		rest.LocalOp(post, resource+"/transfer", asMember(h.transfer)).For(rest.Administrators),
		rest.LocalOp(http.MethodPut, resource+"/level", asMember(h.raiseLevel)).For(rest.Administrators),
		rest.LocalOp(post, resource+"/drain", h.drain).For(rest.Administrators).Anywhere(),
		rest.LocalOp(del, resource+"/drain", h.undrain).For(rest.Administrators).Anywhere(),
		newest("/v1/expired-sessions", h.getExpiredSessions),
		newest("/v1/slow/requests", h.getSlowRequests),
		newest("/v1/slow/entries", h.getSlowEntries),
		rest.LocalOp(get, "/v1/top", h.getTop, "by", "limit").For(rest.Administrators),
		rest.Op(get, "/v1/snapshot", h.getSnapshot).For(rest.Administrators),
		rest.Op(post, "/v1/snapshot", h.restoreSnapshot, "replace", "dry_run", "other_ensemble").
			For(rest.Administrators),
	}...)
}

// newest is an operation that answers with answerNewest.
func newest(pattern string, handle func(*rest.Request) error) rest.Route {
	return rest.LocalOp(http.MethodGet, pattern, handle, "before", "limit").For(rest.Administrators).Anywhere()
}
