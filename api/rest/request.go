package rest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// The headers that are the API's own.
const (
	HeaderZxid        = "Zk-Zxid"        // the state that the answer shows
	HeaderConsistency = "Zk-Consistency" // what the answer really had
	HeaderServer      = "Zk-Server"      // the id of the server that answers
	HeaderLeader      = "Zk-Leader"      // the id of the leader, or "none"
	HeaderSession     = "Zk-Session"     // of requests: <id>.<secret>
	HeaderVersion     = "Zk-Version"     // of a znode's data
	HeaderKey         = "Idempotency-Key"
	HeaderReplayed    = "Idempotency-Replayed"
)

// Request is one request and the answer to it; it belongs to one goroutine.
type Request struct {
	Core    *Core
	W       http.ResponseWriter
	HTTP    *http.Request
	Context context.Context // ends after RequestTimeout
	Query   Params
	Vars    map[string]string // the pattern's, decoded

	Address   string // the client's IP address
	IDs       []znode.ID
	Anonymous bool // it came without credentials
	local     bool // it has the local administrator's token
	// administers says that NeedAdministrator has taken it.
	administers bool

	Session znode.SessionID // that it has proved to be of; 0: none
	Timeout time.Duration   // of that session

	Key      string // Idempotency-Key; empty: none
	commands int    // sent so far

	body *body // what has arrived of it; nil: nobody has read it

	arrived time.Time     // when its headers had arrived
	metrics *routeMetrics // where it is counted: its operation's, once that is known

	trace insight.Trace
	begun time.Time // when the answer began
	long  bool      // it is a stream or a long poll
	sent  int       // bytes of the answer
}

// serve makes the handler of a resource; nil stands for none.
func (c *Core) serve(res resource) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &Request{Core: c, W: w, HTTP: r, arrived: time.Now(), metrics: c.Metrics.routes[0]}
		var cancel context.CancelFunc
		// Not with r.Context, which also ends when a client says that it sends no more, and waits for the answer.
		ctx := insight.WithTrace(context.WithoutCancel(r.Context()), &q.trace)
		q.Context, cancel = context.WithTimeout(ctx, RequestTimeout)
		defer cancel()
		defer q.releaseBody()
		q.bound()
		q.stamp()
		if err := q.run(res); err != nil {
			q.fail(err)
		}
		q.noteSlow()
		q.countUse()
	})
}

// bound sets new deadlines: those of the connection's request before still apply.
func (q *Request) bound() {
	q.deadline()
	if q.HTTP.ContentLength != 0 {
		// Until Body has read it; else also while net/http skips it.
		_ = http.NewResponseController(q.W).SetReadDeadline(time.Now().Add(q.Core.Config.Limits.BodyTime))
	}
}

// run takes a request through everything that all operations share, to its handler.
func (q *Request) run(res resource) error {
	if q.fromMember() == nil {
		if err := q.Core.checkHost(q.HTTP.Host); err != nil {
			return err
		}
	}
	if done, err := q.checkOrigin(res); done || err != nil {
		return err
	}
	if res == nil {
		return noResource(q.HTTP.URL.Path)
	}
	method := q.HTTP.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op := res[method]
	if op == nil {
		q.W.Header().Set("Allow", res.allow())
		return &Problem{
			Status: http.StatusMethodNotAllowed, Title: "method not allowed",
			Detail: "this resource has no " + strconv.Quote(q.HTTP.Method),
			Hint:   "it has " + res.allow(),
		}
	}
	q.metrics = op.metrics
	if err := q.parseQuery(&op.Route); err != nil {
		return err
	}
	if err := q.parseVars(&op.Route); err != nil {
		return err
	}
	if err := q.identify(&op.Route); err != nil {
		return err
	}
	if done, err := q.passOn(&op.Route); done || err != nil {
		return err
	}
	for _, prepare := range []func(*Route) error{q.readKey, q.waitForConsistency, q.readSession} {
		if err := prepare(&op.Route); err != nil {
			return err
		}
	}
	if op.Access == Administrators {
		if err := q.NeedAdministrator(); err != nil {
			return err
		}
	}
	return q.handle(op)
}

func (q *Request) handle(op *operation) (err error) {
	err = errCutOff // a handler that panics
	defer func() {
		if q.administers {
			q.noteAdministrator(&op.Route, err)
		}
	}()
	err = op.Handle(q)
	return err
}

// stamp sets the headers of every answer. Who looks at the state, or changes it,
// says later what it was.
func (q *Request) stamp() {
	h := q.W.Header()
	s := q.Core.Server.Status()
	h.Set(HeaderServer, strconv.FormatUint(uint64(q.Core.Server.Config().ID), 10))
	leader := "none"
	if s.Leader != state.NoServer {
		leader = strconv.FormatUint(uint64(s.Leader), 10)
	}
	h.Set(HeaderLeader, leader)
	h.Set(HeaderConsistency, ConsistencyLocal)
	h.Set("X-Content-Type-Options", "nosniff") // data is what a client made it
	h.Set("Cache-Control", "no-cache")         // ask again; ETags make that cheap
	q.View(func(*server.View) {})
}

// View calls visit with the present state, which is what the answer will say that
// it shows. visit must be quick.
func (q *Request) View(visit func(v *server.View)) {
	var zxid znode.Zxid
	q.Core.Server.View(func(v *server.View) {
		visit(v)
		zxid = v.Zxid()
	})
	q.SetZxid(zxid)
}

// SetZxid sets the header Zk-Zxid.
func (q *Request) SetZxid(z znode.Zxid) { q.W.Header().Set(HeaderZxid, z.String()) }

// parseVars decodes the parts of the URL's path, once.
func (q *Request) parseVars(rt *Route) error {
	vars := maps.Clone(mux.Vars(q.HTTP))
	if !rt.parseTail(vars) {
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

// Answer sends a body as JSON.
func (q *Request) Answer(status int, body any) error {
	return q.send(status, "application/json", body)
}

func (q *Request) send(status int, contentType string, body any) error {
	b := &buffer{}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // it is read by people
	if err := enc.Encode(body); err != nil {
		return err
	}
	q.SendBytes(status, contentType, b.bytes)
	return nil
}

// SendBytes sends a body as it is.
func (q *Request) SendBytes(status int, contentType string, body []byte) {
	h := q.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.deadline()
	q.Begin(status)
	_, _ = q.Write(body) // the client has gone
}

// Write sends bytes of the answer.
func (q *Request) Write(b []byte) (n int, err error) {
	n, err = q.W.Write(b)
	q.sent += n
	return n, err
}

// deadline bounds how long the client may take to take what is sent next.
func (q *Request) deadline() {
	_ = http.NewResponseController(q.W).SetWriteDeadline(time.Now().Add(WriteTimeout))
}

// buffer collects what is written to it.
type buffer struct{ bytes []byte }

func (b *buffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}
