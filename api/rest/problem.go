package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Problem is an error as a client sees it: an RFC 9457 problem document. Handlers
// return one, or a znode.Error that ProblemOf explains.
type Problem struct {
	Status int
	Code   znode.Error // ZooKeeper's; OK: it has none for this
	Title  string      // empty: Code's own words
	Detail string      // what happened
	Hint   string      // what to do
	Path   string      // the znode it is about; may be empty
	Param  string      // the parameter or header that is wrong; may be empty
	// RetryAfter is in seconds; 0: the answer has none.
	RetryAfter int
	// Of another server that does not answer: why in few words, and the whole error. Both may be empty.
	Reason, Cause string
	Failed        *int // of a transaction: the operation to blame
	Results       any  // of a transaction: the outcome of each operation
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// document is the problem's JSON.
func (p *Problem) document() body.Problem {
	doc := body.Problem{
		Title: p.Title, Status: p.Status, Detail: p.Detail, Hint: p.Hint, Path: p.Path,
		Parameter: p.Param, Reason: p.Reason, Cause: p.Cause, Failed: p.Failed, Results: p.Results,
	}
	kind := http.StatusText(p.Status)
	if p.Code != znode.OK {
		doc.Name, doc.Code = p.Code.Name(), int32(p.Code)
		kind = p.Code.Name()
		if p.Title == "" {
			doc.Title = p.Code.Error()
		}
	}
	doc.Type = "/docs#" + Anchor(kind)
	return doc
}

// fail answers with a problem.
func (q *Request) fail(err error) {
	p := ProblemOf(err, q.Anonymous)
	auditRefusal(q, p)
	if p.RetryAfter > 0 {
		q.W.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		q.W.Header().Set("WWW-Authenticate", `Basic realm="zk-lite", charset="UTF-8"`)
	}
	if p.Status == http.StatusInternalServerError {
		q.Core.Config.Logger.Error("unexpected error in an HTTP handler",
			"method", q.HTTP.Method, "url", q.HTTP.URL.String(), "error", err)
	}
	if err := q.send(p.Status, "application/problem+json", p.document()); err != nil {
		panic(fmt.Sprintf("api: invariant broken: a problem cannot be encoded: %v", err))
	}
}

// Failure is a znode.Error about a path.
type Failure struct {
	Code znode.Error
	Path string // may be empty
}

// Fail returns a Failure.
func Fail(code znode.Error, path string) error { return Failure{code, path} }

func (f Failure) Error() string { return f.Path + ": " + f.Code.Error() }
func (f Failure) Unwrap() error { return f.Code }

// ProblemOf explains an error.
func ProblemOf(err error, anonymous bool) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var f Failure
	path := ""
	if errors.As(err, &f) {
		path = f.Path
	}
	var limit *watch.LimitError
	var code znode.Error
	var level *state.LevelError
	switch {
	case errors.As(err, &level):
		return &Problem{Status: http.StatusConflict, Title: "not at this level", Detail: err.Error(),
			Hint: "GET /v1/cluster shows the ensemble's level, and those of its servers"}
	case errors.As(err, &limit):
		return &Problem{Status: 429, Code: znode.ErrThrottled, Detail: err.Error(),
			Hint: "watch fewer paths at once", RetryAfter: 10}
	case errors.As(err, &code):
		p = Explain(code, path, anonymous)
		p.Code, p.Path = code, path
		return p
	}
	return &Problem{Status: http.StatusInternalServerError, Code: znode.ErrSystem,
		Detail: err.Error(), Hint: "this is a fault of the server; please report it"}
}

// Explain gives the status of a code, and a hint.
func Explain(code znode.Error, path string, anonymous bool) *Problem {
	p := &Problem{Status: http.StatusInternalServerError}
	p.Detail = fmt.Sprintf("%s: %s", path, code.Error())
	if path == "" {
		p.Detail = code.Error()
	}
	switch code {
	case znode.ErrNoNode:
		p.Status, p.Hint = 404, "POST creates it; parents=true also creates the missing ones above it"
	case znode.ErrNoAuth:
		p.Status = 403
		p.Hint = "these credentials have no permission; GET ?acl shows which have it, if the ACL may be read"
		if anonymous {
			p.Status, p.Hint = 401, "send credentials: curl -u user:password"
		}
	case znode.ErrAuthFailed:
		p.Status, p.Hint = 401, "send credentials as HTTP Basic: curl -u user:password"
	case znode.ErrBadVersion:
		p.Status, p.Hint = 412, "it has changed: GET it again before you decide"
	case znode.ErrNodeExists:
		p.Status, p.Hint = 409, "PUT changes a znode that exists"
	case znode.ErrNotEmpty:
		p.Status, p.Hint = 409, "delete its children first, or use recursive=true"
	case znode.ErrNoChildrenForEphemeral:
		p.Status, p.Hint = 409, "put it below a znode that is not ephemeral"
	case znode.ErrSessionExpired, znode.ErrSessionMoved:
		p.Status, p.Hint = 410, "open a new one: POST /v1/sessions"
	case znode.ErrInvalidACL:
		p.Status, p.Param, p.Hint = 400, "acl", "an entry is scheme:id:perms, such as world:anyone:r or, with "+
			"credentials, auth::cdrwa"
	case znode.ErrBadArguments, znode.ErrMarshalling:
		p.Status, p.Hint = 400, "see /docs"
	case znode.ErrUnimplemented:
		p.Status, p.Hint = 501, "TTL znodes need the setting extendedTypesEnabled=true"
	case znode.ErrQuotaExceeded:
		p.Status, p.Hint = 403, "delete something, or raise the quota below /zookeeper/quota"
	case znode.ErrSystem:
		p.Status, p.Title = http.StatusInsufficientStorage, "no room"
		p.Detail = "the tree takes as much memory as it may, or the parent has no sequence number left; " +
			"nothing was done"
		p.Hint = "delete something (/readyz?verbose and the metric tree_memory_limit_bytes say how much there is); " +
			"after 2147483646 sequential znodes use another parent"
	case znode.ErrNotReadOnly:
		p.Status, p.Title = http.StatusConflict, "mirrors ZooKeeper"
		p.Detail = "this ensemble mirrors a ZooKeeper ensemble, which carries out its writes and does not know " +
			"this one, or the copy is not complete yet; nothing was done"
		p.Hint = "leave out if, conditions on an mzxid or on absence, the header " + HeaderKey + ", and the deletion " +
			"of whole subtrees; zk-lite mirror status shows how far the copy is, and zk-lite mirror stop ends it"
	case znode.ErrThrottled:
		p.Status, p.RetryAfter, p.Hint = 429, 1, "try again later"
	}
	return p
}

// BadRequest is about a parameter, or another part of the request, that is wrong.
func BadRequest(param, format string, args ...any) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Code: znode.ErrBadArguments, Param: param,
		Detail: param + ": " + fmt.Sprintf(format, args...), Hint: "see /docs",
	}
}

// TooMany is the problem of a request for which this server has no room.
func TooMany(seconds int, format string, args ...any) *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Code: znode.ErrThrottled, RetryAfter: seconds,
		Detail: fmt.Sprintf(format, args...), Hint: "try again later, or at another server",
	}
}

// Unavailable is the problem of a request that was not carried out because there is no majority.
func Unavailable(why string) *Problem {
	return &Problem{
		Status: http.StatusServiceUnavailable, Code: znode.ErrConnectionLoss, RetryAfter: 1,
		Title:  "no quorum",
		Detail: why + "; nothing was done",
		Hint: "try again, or at another server; consistency=local reads what this server " +
			"has, which may be old",
	}
}

func noResource(path string) error {
	return &Problem{
		Status: http.StatusNotFound, Title: "no such resource",
		Detail: fmt.Sprintf("there is nothing at %q", path),
		Hint:   "/docs lists what there is; the znode /a is at /v1/znodes/a",
	}
}

// Anchor is the name of a place in the page.
func Anchor(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
