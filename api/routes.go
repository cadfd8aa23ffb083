package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"
)

// route is one operation: a method of a resource.
type route struct {
	method  string // GET also answers HEAD
	pattern string // as in the OpenAPI document; {path} is a znode's path, with slashes
	// params are the query parameters that it knows, besides the common ones. An
	// unknown one is refused: a misspelt version= must not delete unconditionally.
	params []string
	handle func(*request) error
	// plain operations are about this server alone: no consistency, no session.
	plain bool
}

// routes is every operation of the door. Each has a file of its own, and an entry
// in openapi/ (a test compares).
func (d *Door) routes() []route {
	const znodes, sessions, cluster = "/v1/znodes/{path}", "/v1/sessions", "/v1/cluster"
	get, post, put, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	list := func(names ...string) []string { return names }
	return []route{
		{get, "/livez", nil, (*request).livez, true},
		{get, "/readyz", list("verbose"), (*request).readyz, true},
		{get, "/openapi.json", nil, (*request).openapi, true},
		{get, "/docs", nil, (*request).docs, true},
		{get, "/metrics", nil, (*request).metrics, true},
		{get, "/commands", nil, (*request).listCommands, true},
		{get, "/commands/{command}", list("traceMask"), (*request).runCommand, true},

		{get, znodes, list("raw", "children", "stat", "data", "limit", "after", "acl"),
			(*request).getZnode, false},
		{post, znodes, list("mode", "ttl", "parents", "acl"), (*request).createZnode, false},
		{put, znodes, list("version", "create", "parents", "acl"), (*request).setZnode, false},
		{del, znodes, list("version", "recursive"), (*request).deleteZnode, false},
		{post, "/v1/multi", nil, (*request).multi, false},
		{post, "/v1/sync", nil, (*request).sync, false},

		{post, sessions, nil, (*request).openSession, false},
		{post, sessions + "/{id}/keepalive", nil, (*request).keepSession, false},
		{del, sessions + "/{id}", nil, (*request).closeSession, false},
		{get, sessions + "/{id}/events", list("watch", "since"), (*request).sessionEvents, false},
		{get, "/v1/watches/{path}", list("kind", "since", "wait"), (*request).watch, false},

		{get, "/v1/locks/{path}", nil, (*request).getLock, false},
		{post, "/v1/locks/{path}", list("wait", "ticket", "acl"), (*request).takeLock, false},
		{del, "/v1/locks/{path}/{ticket}", nil, (*request).releaseLock, false},
		{get, "/v1/elections/{path}", nil, (*request).getElection, false},
		{post, "/v1/elections/{path}", list("wait", "ticket", "acl"),
			(*request).joinElection, false},
		{del, "/v1/elections/{path}/{ticket}", nil, (*request).resign, false},
		{get, "/v1/groups/{path}", list("limit", "after"), (*request).getGroup, false},
		{put, "/v1/groups/{path}/members/{name}", list("acl"), (*request).joinGroup, false},
		{del, "/v1/groups/{path}/members/{name}", nil, (*request).leaveGroup, false},
		{post, "/v1/fencing-tokens/check", nil, (*request).checkFencingToken, false},

		{get, cluster, nil, (*request).getCluster, true},
		{post, cluster + "/members", nil, (*request).addMember, true},
		{del, cluster + "/members/{id}", list("force"), (*request).removeMember, true},
		{post, cluster + "/transfer", nil, (*request).transfer, true},
		{post, cluster + "/drain", nil, (*request).drain, true},
		{del, cluster + "/drain", nil, (*request).undrain, true},
		{get, "/v1/snapshot", nil, (*request).getSnapshot, false},
		{post, "/v1/snapshot", list("replace", "dry_run"), (*request).restoreSnapshot, false},
	}
}

// commonParams are the query parameters of every operation that is not plain.
var commonParams = [...]string{"consistency", "min_zxid"}

// repeatable are the parameters that may be given more than once.
func repeatable(name string) bool { return name == "watch" }

// knows reports whether the operation has this query parameter.
func (r *route) knows(param string) bool {
	return slices.Contains(r.params, param) || !r.plain && slices.Contains(commonParams[:], param)
}

// operation is a route that is served.
type operation struct {
	route
	traffic *traffic
}

// resource is what answers at one pattern: its operations by method.
type resource map[string]*operation

// allow is the header Allow.
func (r resource) allow() string {
	var methods []string
	for m := range r {
		if methods = append(methods, m); m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	methods = append(methods, http.MethodOptions)
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// router finds the resource of a request. Paths are matched as they were sent,
// escapes and all: a name may contain what a router would clean away.
func (d *Door) router() http.Handler {
	m := mux.NewRouter().UseEncodedPath().SkipClean(true)
	resources := map[string]resource{}
	d.traffic = []*traffic{newTraffic("none", "none")} // of requests for nothing that there is
	for _, r := range d.routes() {
		op := &operation{r, newTraffic(r.method, r.pattern)}
		d.traffic = append(d.traffic, op.traffic)
		// What follows {path} looks like a part of it, so one resource has both:
		// the method tells them apart.
		base, _ := r.split()
		if resources[base] == nil {
			resources[base] = resource{}
			m.Handle(muxPattern(base), d.serve(resources[base]))
		}
		resources[base][r.method] = op
	}
	m.Handle("/commands/", d.serve(resources["/commands"])) // as in ZooKeeper
	m.NotFoundHandler = d.serve(nil)
	return m
}

// split cuts the pattern behind {path}. The tail is such as /{ticket}, or empty.
func (r *route) split() (base, tail string) {
	base, tail, found := strings.Cut(r.pattern, "/{path}")
	if found {
		base += "/{path}"
	}
	return base, tail
}

// parseTail takes what follows {path} off the path. It reports false when there is
// less than the pattern has.
func (r *route) parseTail(vars map[string]string) bool {
	_, tail := r.split()
	names := strings.Split(tail, "/")[1:]
	for _, name := range slices.Backward(names) {
		i := strings.LastIndexByte(vars["path"], '/')
		if i < 0 {
			return false
		}
		value := vars["path"][i+1:]
		vars["path"] = vars["path"][:i]
		switch {
		case strings.HasPrefix(name, "{"):
			vars[strings.Trim(name, "{}")] = value
		case name != value:
			return false
		}
	}
	return true
}

// muxPattern lets {path} take the rest of the path, or nothing, which is the root.
func muxPattern(pattern string) string {
	return strings.Replace(pattern, "/{path}", "{path:(?:/.*)?}", 1)
}
