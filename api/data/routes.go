// Package data has the HTTP operations on znodes: reading and changing them and their
// ACLs, transactions, sync; and those on sessions and watches. Locks and other recipes are
// in package coordination.
//
// A session's stream has a goroutine that waits for the session's end; it ends with the
// stream. Everything else runs on the request's goroutine.
package data

import (
	"net/http"
	"time"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/znode"
)

// Server is what sessions and watches need of *server.Server, besides what every
// request needs.
type Server interface {
	NewSession(timeout time.Duration) *state.Command
	SessionEnd(id znode.SessionID) (done <-chan struct{}, cancel func())
	Subscribe(filters []changes.Filter, after changes.Position) (*changes.Stream, error)
}

type handlers struct {
	server Server
	texts  *texts
}

// Routes returns the operations of this package.
func Routes(srv Server) []rest.Route {
	const znodes, sessions = "/v1/znodes/{path}", "/v1/sessions"
	get, post, put, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	h := &handlers{srv, new(texts)}
	return []rest.Route{
		rest.Op(get, znodes, getZnode, "raw", "children", "stat", "data", "limit", "after", "match",
			"type", "offset", "acl", "about", "tree", "consistent", "revisions", "at"),
		rest.Op(post, znodes, createZnode, "mode", "ttl", "parents", "acl"),
		rest.Op(put, znodes, putZnode, "version", "create", "parents", "acl"),
		rest.Op(del, znodes, deleteZnode, "version", "recursive"),

		rest.Op(post, "/v1/revisions/{path}", revert, "to", "recursive", "plan", "seen"),
		rest.Op(del, "/v1/revisions/{path}", purge, "recursive"),

		rest.Op(get, "/v1/search/{path}", search, "name", "data", "any", "owner", "limit", "after"),
		rest.Op(get, "/v1/acl/{path}", explainACL, "identity"),
		rest.LocalOp(get, "/v1/identity", getIdentity),
		rest.Op(post, "/v1/multi", multi),
		rest.Op(post, "/v1/sync", sync),

		rest.Op(post, sessions, h.openSession),
		rest.Op(post, sessions+"/{id}/keepalive", keepSession),
		rest.Op(del, sessions+"/{id}", closeSession, "force").Anywhere(),
		rest.Op(get, sessions+"/{id}/events", h.sessionEvents, "watch", "since"),
		rest.Op(get, "/v1/watches/{path}", h.watch, "kind", "since", "wait"),
		rest.Op(get, "/v1/feed/{path}", h.feed, "events", "types", "before", "list", "since", "wait"),
	}
}
