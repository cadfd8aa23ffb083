// Package coordination has the HTTP operations on locks, elections, groups and fencing
// tokens. A lock and an election are queues (type queue) of ephemeral sequential znodes
// with the names of Curator's recipes, so that its clients, and kazoo's, are in the same
// queue; internal/curator knows the names and their order. It keeps nothing between two requests.
//
// Everything runs on the request's goroutine.
package coordination

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server/changes"
)

// Server is what waiting needs of *server.Server, besides what every request needs.
type Server interface {
	Subscribe(filters []changes.Filter, after changes.Position) (*changes.Stream, error)
}

type handlers struct{ server Server }

// Routes returns the operations of this package.
func Routes(srv Server) []rest.Route {
	get, post, put, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	h := &handlers{srv}
	return []rest.Route{
		rest.Op(get, "/v1/locks/{path}", getLock),
		rest.Op(post, "/v1/locks/{path}", h.takeLock, "wait", "ticket", "acl", "lock_delay"),
		rest.Op(del, "/v1/locks/{path}/{ticket}", h.releaseLock),
		rest.Op(get, "/v1/elections/{path}", h.getElection),
		rest.Op(post, "/v1/elections/{path}", h.joinElection, "wait", "ticket", "acl", "lock_delay"),
		rest.Op(del, "/v1/elections/{path}/{ticket}", h.resign),
		rest.Op(get, "/v1/groups/{path}", getGroup, "limit", "after"),
		rest.Op(put, "/v1/groups/{path}/members/{name}", joinGroup, "acl"),
		rest.Op(del, "/v1/groups/{path}/members/{name}", leaveGroup),
		rest.Op(get, "/v1/recipes", listRecipes, "below", "kind", "contended", "limit"),
		rest.Op(post, "/v1/fencing-tokens/check", checkFencingToken),
	}
}
