package rest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/zk-lite/zk-lite/znode"
)

// Route is one operation: a method of a resource.
type Route struct {
	Method  string // GET also answers HEAD
	Pattern string // as in the OpenAPI document; {path} is a znode's path, with slashes
	// Params are the query parameters that it has, besides the common ones. An
	// unknown one is refused: a misspelt version= must not delete unconditionally.
	Params []string
	Handle func(*Request) error
	// Local operations are about this server alone: no consistency, no session.
	Local  bool
	Access Access

	anywhere bool // it can be asked of another server: see Anywhere
	atLeader bool // the leader answers: see AtLeader
}

// Access is whose requests an operation takes.
type Access int

const (
	// ByACL takes requests that an ACL permits; if enforce.auth.schemes is set, of clients with such an identity.
	ByACL Access = iota
	// Open takes all requests. Credentials are ignored: they may be meant for another server.
	Open
	// Linked is Open, and a link of another site leads to it, too: it is the same for all who see it.
	Linked
	// Administrators takes requests of administrators (Request.NeedAdministrator).
	Administrators
)

// For returns the Route for others than those that an ACL permits.
func (r Route) For(a Access) Route {
	r.Access = a
	return r
}

// Op returns a Route whose requests may have a consistency and a session.
func Op(method, pattern string, handle func(*Request) error, params ...string) Route {
	return Route{Method: method, Pattern: pattern, Params: params, Handle: handle}
}

// LocalOp returns a Route about this server alone.
func LocalOp(method, pattern string, handle func(*Request) error, params ...string) Route {
	return Route{Method: method, Pattern: pattern, Params: params, Handle: handle, Local: true}
}

// CommonParams are the query parameters of every operation that is not local.
var CommonParams = [...]string{"consistency", "min_zxid", "max_stale"}

// repeatable are the parameters that may be given more than once.
func repeatable(name string) bool {
	return slices.Contains([]string{"watch", "name", "identity", "id"}, name)
}

// knows reports whether the operation has this query parameter.
func (r *Route) knows(param string) bool {
	return slices.Contains(r.Params, param) || !r.Local && slices.Contains(CommonParams[:], param)
}

// operation is a route that is served.
type operation struct {
	Route
	metrics *routeMetrics
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

// Handler answers requests by these routes. Paths are matched as they were sent, with
// their escapes: a name may contain characters that a router would clean away.
func (c *Core) Handler(routes []Route) http.Handler {
	m := mux.NewRouter().UseEncodedPath().SkipClean(true)
	resources := map[string]resource{}
	c.Metrics.add("none", "none") // of requests for nothing that there is
	for _, r := range routes {
		op := &operation{r, c.Metrics.add(r.Method, r.Pattern)}
		// The parts after {path} look like a part of it, so one resource has both:
		// the method distinguishes them.
		base, _ := r.split()
		if resources[base] == nil {
			resources[base] = resource{}
			m.Handle(muxPattern(base), c.serve(resources[base]))
		}
		resources[base][r.Method] = op
	}
	if commands := resources["/commands"]; commands != nil {
		m.Handle("/commands/", c.serve(commands)) // as in ZooKeeper
	}
	m.NotFoundHandler = c.serve(nil)
	return m
}

// split cuts the pattern after {path}. The tail is such as /{ticket}, or empty.
func (r *Route) split() (base, tail string) {
	base, tail, found := strings.Cut(r.Pattern, "/{path}")
	if found {
		base += "/{path}"
	}
	return base, tail
}

// parsePath decodes the parts of the URL's path, once.
func parsePath(q *Request) error {
	vars := maps.Clone(mux.Vars(q.HTTP))
	if !q.operation.parseTail(vars) {
		return noResource(q.HTTP.URL.Path)
	}
	q.Vars = make(map[string]string, len(vars))
	for name, raw := range vars {
		text, err := url.PathUnescape(raw)
		if err != nil {
			return BadRequest("path", "%v; write a percent sign as %%25", err)
		}
		q.Vars[name] = text
	}
	return nil
}

// parseTail cuts the parts after {path} off the path. It reports false if there are
// fewer than the pattern has.
func (r *Route) parseTail(vars map[string]string) bool {
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

// ZnodePath is the path in the URL, which is valid. An escaped slash is a slash:
// names cannot contain one.
func (q *Request) ZnodePath() (string, error) {
	path := q.RawPath()
	return path, CheckPath("path", path)
}

// RawPath is the path in the URL, unchecked.
func (q *Request) RawPath() string {
	if path := q.Vars["path"]; path != "" {
		return path
	}
	return znode.RootPath
}

// CheckPath reports why a path, the value of a parameter, is invalid.
func CheckPath(param, path string) error {
	if err := znode.ValidatePath(path); err != nil {
		p := BadRequest(param, "")
		// The error names the path already.
		p.Detail = strings.TrimSuffix(err.Error(), ": "+znode.ErrBadArguments.Error())
		if param != "path" {
			p.Detail = param + ": " + p.Detail
		}
		p.Path = strings.ToValidUTF8(path, "�")
		p.Hint = "names are separated by single slashes, without one at the end; the root is " +
			"/v1/znodes/"
		return p
	}
	return nil
}
