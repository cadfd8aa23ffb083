package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// The headers that are the API's own.
const (
	HeaderZxid        = "Zk-Zxid"        // the state that the answer shows
	HeaderConsistency = "Zk-Consistency" // what the answer really had
	HeaderMaxStale    = "Zk-Max-Stale"   // with max_stale=: how old the answer's state may be
	HeaderServer      = "Zk-Server"      // the id of the server that answers
	HeaderLeader      = "Zk-Leader"      // the id of the leader, or "none"
	HeaderSession     = "Zk-Session"     // of requests: <id>.<secret>
	HeaderVersion     = "Zk-Version"     // of a znode's data
	HeaderKey         = "Idempotency-Key"
	HeaderReplayed    = "Idempotency-Replayed"
)

// Request is one request and the answer to it; it belongs to one goroutine. Its steps fill in the fields, in the order
// of the steps.
type Request struct {
	Core    *Core
	W       http.ResponseWriter
	HTTP    *http.Request
	Context context.Context // ends after RequestTimeout

	resource  resource   // of the URL; nil: there is none
	operation *operation // of the method; nil before findOperation
	Query     Params
	Vars      map[string]string // the pattern's, decoded
	Identity
	Key     string          // Idempotency-Key; empty: none
	Session znode.SessionID // proved by Zk-Session; 0: none
	Timeout time.Duration   // of that session

	administers bool      // NeedAdministrator has let it pass
	commands    int       // sent so far
	body        *heldBody // nil: Body was not called
	// asOf is a moment before which everything that was acknowledged is in the state, if the request asks for one.
	asOf server.Moment

	arrived time.Time     // when its headers had arrived
	metrics *routeMetrics // where it is counted: its operation's, once that is known
	trace   insight.Trace
	begun   time.Time // when the answer began; zero: it has not
	long    bool      // it is a stream or a long poll
	sent    int       // bytes of the answer
}

// step is a part of what all operations share. It leaves the request to the next step, answers it, or returns why it
// cannot be carried out.
type step func(q *Request) error

// steps are the way of a request, in this order. Security depends on it: a page of another site learns nothing from the
// steps after checkOrigin, and a client with wrong credentials nothing from the steps after identify.
var steps = []step{
	checkHost,          // 403 for a name that leads here from another site (DNS rebinding)
	checkOrigin,        // 403 for a page of another site; answers a browser's preflight question (CORS)
	findOperation,      // 404, 405
	parseQuery,         // 400 for unknown and repeated parameters
	parsePath,          // the URL's path, percent-decoded once
	identify,           // 401; the identities of address, certificate and Authorization
	pace,               // 429 for more than a client may ask for in a second
	forwardToServer,    // ?server=N: another server answers
	readKey,            // Idempotency-Key
	waitForConsistency, // ?consistency=, ?max_stale= and ?min_zxid=; 503 without a majority
	readSession,        // proves Zk-Session, and keeps that session alive
	checkAdministrator, // 401, 403 for operations that are for administrators
	handle,             // the operation
}

// serve makes the handler of a resource; nil stands for none.
func (c *Core) serve(res resource) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &Request{Core: c, W: w, HTTP: r, resource: res, arrived: time.Now(), metrics: c.Metrics.routes[0]}
		var cancel context.CancelFunc
		// Not with r.Context, which also ends when a client closes its own side only, and waits for the answer.
		ctx := insight.WithTrace(context.WithoutCancel(r.Context()), &q.trace)
		q.Context, cancel = context.WithTimeout(ctx, RequestTimeout)
		defer cancel()
		defer releaseBody(q)
		setDeadlines(q)
		setHeaders(q)
		if err := q.run(); err != nil {
			q.fail(err)
		}
		logSlow(q)
		countUsage(q)
	})
}

// run takes the steps until one has answered.
func (q *Request) run() error {
	for _, take := range steps {
		if err := take(q); err != nil || !q.begun.IsZero() {
			return err
		}
	}
	return nil
}

// setDeadlines replaces the deadlines of the connection's request before, which still apply.
func setDeadlines(q *Request) {
	q.setWriteDeadline()
	if q.HTTP.ContentLength != 0 {
		// Until Body has read it; else also while net/http skips it.
		_ = http.NewResponseController(q.W).SetReadDeadline(time.Now().Add(q.Core.Config.Limits.BodyTime))
	}
}

// setHeaders sets the headers of every answer. Operations that look at the state or change it overwrite the
// consistency, and set the zxid; Begin sets that of the others.
func setHeaders(q *Request) {
	h := q.W.Header()
	h.Set(HeaderServer, strconv.FormatUint(uint64(q.Core.Config.ID), 10))
	leader := "none"
	if s := q.Core.Server.Status(); s.Leader != state.NoServer {
		leader = strconv.FormatUint(uint64(s.Leader), 10)
	}
	h.Set(HeaderLeader, leader)
	h.Set(HeaderConsistency, ConsistencyLocal)
	h.Set("X-Content-Type-Options", "nosniff") // clients choose the data
	h.Set("Cache-Control", "no-cache")         // ask again; ETags make that cheap
}

// findOperation finds the operation of the method, which HEAD shares with GET.
func findOperation(q *Request) error {
	if q.resource == nil {
		return noResource(q.HTTP.URL.Path)
	}
	method := q.HTTP.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op := q.resource[method]
	if op == nil {
		q.W.Header().Set("Allow", q.resource.allow())
		return &Problem{
			Status: http.StatusMethodNotAllowed, Title: "method not allowed",
			Detail: "this resource has no " + strconv.Quote(q.HTTP.Method),
			Hint:   "it has " + q.resource.allow(),
		}
	}
	q.operation, q.metrics = op, op.metrics
	return nil
}

// handle carries out the operation. What an administrator asks for is in the audit log, whatever the outcome.
func handle(q *Request) (err error) {
	err = errCutOff // a handler that panics
	defer func() {
		if q.administers {
			auditAdministrator(q, err)
		}
	}()
	err = q.operation.Handle(q)
	return err
}

// View calls visit with the present state, whose zxid the answer will show. visit must be quick.
func (q *Request) View(visit func(v *server.View)) {
	var zxid znode.Zxid
	q.Core.Server.View(func(v *server.View) {
		visit(v)
		zxid = v.Zxid()
	})
	q.SetZxid(zxid)
}

// Zxid returns this server's zxid, which the answer will show.
func (q *Request) Zxid() (z znode.Zxid) {
	q.View(func(v *server.View) { z = v.Zxid() })
	return z
}

// SetZxid sets the header Zk-Zxid.
func (q *Request) SetZxid(z znode.Zxid) { q.W.Header().Set(HeaderZxid, z.String()) }

// Answer sends a body as JSON.
func (q *Request) Answer(status int, body any) error {
	return q.send(status, "application/json", body)
}

func (q *Request) send(status int, contentType string, body any) error {
	b := &bytes.Buffer{}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(body); err != nil {
		return err
	}
	q.SendBytes(status, contentType, b.Bytes())
	return nil
}

// SendBytes sends a body as it is.
func (q *Request) SendBytes(status int, contentType string, body []byte) {
	h := q.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.setWriteDeadline()
	q.Begin(status)
	_, _ = q.Write(body) // if that fails, the client has disconnected
}

// Begin sends the status and the headers; every answer begins with it.
func (q *Request) Begin(status int) {
	if q.W.Header()[HeaderZxid] == nil { // nothing of the state is in the answer
		q.Zxid()
	}
	if q.asOf.Known() { // here, as the state has been read by now
		age := (q.asOf.Age() + time.Millisecond - 1).Truncate(time.Millisecond)
		q.W.Header().Set(HeaderMaxStale, age.String())
	}
	q.begun = time.Now()
	q.metrics.count(status, q.begun.Sub(q.arrived))
	q.W.WriteHeader(status)
}

// Write sends bytes of the answer.
func (q *Request) Write(b []byte) (n int, err error) {
	n, err = q.W.Write(b)
	q.sent += n
	return n, err
}

// setWriteDeadline bounds how long the client may take to read what is sent next.
func (q *Request) setWriteDeadline() {
	_ = http.NewResponseController(q.W).SetWriteDeadline(time.Now().Add(WriteTimeout))
}
