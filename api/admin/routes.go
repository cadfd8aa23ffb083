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
	"time"

	"github.com/zk-lite/zk-lite/api/body"
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
	Metrics   metrics.Part        // of other parts of the server, for /metrics and monitor; nil: none
	Server    server.Config       // what the command configuration shows of it
	Settings  *Settings           // what it shows besides; nil: nothing
	Checks    func() []body.Check // more of readyz?verbose; nil: none
	Port      Port                // the server's ZooKeeper port; nil: it has none
	// Shed disconnects about that share of the port's clients, and returns how many; nil: there is no port.
	Shed func(percent int) int
	// Certificate is the one that this server shows clients, PeerCertificate other servers; nil: none.
	Certificate, PeerCertificate Certificate
	Mirror                       Mirror
	ReadOnly                     *server.ReadOnlyMode
	// Others are operations of other packages with another Access than ByACL, for the document.
	Others []rest.Route
}

// Certificate is the state of a server's certificate.
type Certificate interface {
	Expires() time.Time // zero: there is none
	Err() error         // why a newer one is not in use; nil: there is none, or it is
}

// handlers are the resources, each in the file of its name.
type handlers struct {
	docs      *documents
	health    *health
	monitor   *monitor
	commands  *commands
	sessions  *sessions
	cluster   *cluster
	insight   *insights
	snapshots *snapshots
	mirrors   *mirrors
	takeovers *takeovers
}

// Routes returns the operations of this package, and a function that has to run while the server serves; it returns
// when the core stops.
func Routes(core *rest.Core, srv Server, e *membership.Ensemble, cfg Config) (all []rest.Route, run func()) {
	snapshots := &snapshots{backups: srv}
	monitor := &monitor{
		core: core, server: srv, cfg: &cfg, snapshots: snapshots, started: time.Now(), history: metrics.NewHistory(),
	}
	h := &handlers{
		docs: &documents{}, health: &health{srv, &cfg}, monitor: monitor, commands: &commands{srv, e, &cfg, monitor},
		sessions: &sessions{srv, cfg.Port}, cluster: &cluster{srv, e, cfg.Mirror}, insight: &insights{srv, cfg.Port},
		snapshots: snapshots, mirrors: &mirrors{cfg.Mirror}, takeovers: &takeovers{cfg.Mirror, e},
	}
	all = h.routes()
	h.docs.build(cfg.Version, slices.Concat(all, cfg.Others))
	return all, func() { monitor.history.Record(core.Stopping, monitor.measure) }
}

func (h *handlers) routes() []rest.Route {
	get, post, put, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return append(releaseRoutes(), []rest.Route{
		rest.LocalOp(get, "/", root).For(rest.Linked),
		rest.LocalOp(get, "/livez", h.health.livez).For(rest.Open),
		rest.LocalOp(get, "/readyz", h.health.readyz, "verbose").For(rest.Open).Anywhere(),
		rest.LocalOp(get, "/openapi.json", h.docs.getOpenAPI).For(rest.Open),
		rest.LocalOp(get, "/docs", h.docs.getPage).For(rest.Linked),
		rest.LocalOp(get, "/metrics", h.monitor.getMetrics).For(rest.Open).Anywhere(),
		rest.LocalOp(get, "/commands", h.commands.list).For(rest.Open),
		rest.LocalOp(get, "/commands/{command}", h.commands.run, "traceMask").For(rest.Open),
		rest.LocalOp(post, "/commands/{command}", shedding(h.commands.cfg)).For(rest.Administrators),

		rest.LocalOp(get, "/v1/history", h.monitor.getHistory, "since").Anywhere(),
		rest.LocalOp(get, "/v1/servers", h.cluster.listServers),
		rest.LocalOp(get, "/v1/sessions", h.sessions.list, "id", "after", "limit").Anywhere(),
		rest.LocalOp(get, "/v1/sessions/{id}", h.sessions.get).Anywhere(),
		rest.LocalOp(get, "/v1/watchers/{path}", listWatchers).Anywhere(),

		rest.LocalOp(get, "/v1/cluster", asMember(h.cluster.get)).For(rest.Administrators),
		rest.LocalOp(post, "/v1/cluster/members", asMember(h.cluster.addMember)).For(rest.Administrators),
		rest.LocalOp(del, "/v1/cluster/members/{id}", asMember(h.cluster.removeMember), "force").
			For(rest.Administrators),
		rest.LocalOp(post, "/v1/cluster/members/{id}/token", asMember(h.cluster.makeToken)).For(rest.Administrators),
		rest.LocalOp(post, "/v1/cluster/transfer", asMember(h.cluster.transfer)).For(rest.Administrators),
		rest.LocalOp(put, "/v1/cluster/level", asMember(h.cluster.raiseLevel)).For(rest.Administrators),
		rest.LocalOp(post, "/v1/cluster/drain", h.cluster.drain).For(rest.Administrators).Anywhere(),
		rest.LocalOp(del, "/v1/cluster/drain", h.cluster.undrain).For(rest.Administrators).Anywhere(),

		rest.LocalOp(get, "/v1/mirror", asMember(h.mirrors.get)).For(rest.Administrators).AtLeader(),
		rest.LocalOp(post, "/v1/mirror", asMember(h.mirrors.begin)).For(rest.Administrators),
		rest.LocalOp(del, "/v1/mirror", asMember(h.mirrors.end)).For(rest.Administrators),
		rest.LocalOp(get, "/v1/takeover", asMember(h.takeovers.plan)).For(rest.Administrators).AtLeader(),
		rest.LocalOp(post, "/v1/takeover", asMember(h.takeovers.execute)).For(rest.Administrators),

		newest("/v1/expired-sessions", h.insight.listExpired),
		newest("/v1/slow/requests", listSlowRequests),
		newest("/v1/slow/entries", listSlowEntries),
		rest.LocalOp(get, "/v1/top", h.insight.top, "by", "limit").For(rest.Administrators).Anywhere(),
		rest.LocalOp(get, "/v1/subtrees/{path}", listSubtrees, "by", "limit").For(rest.Administrators).Anywhere(),

		rest.Op(get, "/v1/snapshot", h.snapshots.get).For(rest.Administrators),
		rest.Op(post, "/v1/snapshot", h.snapshots.restore, "replace", "dry_run", "other_ensemble").
			For(rest.Administrators),
	}...)
}

// newest is an operation that answers with answerNewest.
func newest(pattern string, handle func(*rest.Request) error) rest.Route {
	return rest.LocalOp(http.MethodGet, pattern, handle, "before", "limit").For(rest.Administrators).Anywhere()
}
