package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// The headers that are the API's own.
const (
	headerZxid        = "Zk-Zxid"        // the state that the answer shows
	headerConsistency = "Zk-Consistency" // what the answer really had
	headerServer      = "Zk-Server"      // the id of the server that answers
	headerLeader      = "Zk-Leader"      // the id of the leader, or "none"
	headerSession     = "Zk-Session"     // of requests: <id>.<secret>
	headerVersion     = "Zk-Version"     // of a znode's data
	headerKey         = "Idempotency-Key"
	headerReplayed    = "Idempotency-Replayed"
)

// request is one request and the answer to it; it belongs to one goroutine.
type request struct {
	door  *Door
	w     http.ResponseWriter
	http  *http.Request
	ctx   context.Context // ends with the client, or after requestTimeout
	query params
	vars  map[string]string // the pattern's, decoded

	address   string // the client's IP address
	ids       []znode.ID
	anonymous bool // it came without credentials

	session znode.SessionID // that it proved to be of; 0: none
	timeout time.Duration   // of that session

	key      string // Idempotency-Key; empty: none
	commands int    // sent so far

	held int64 // bytes of the door's maxBodies

	came    time.Time // when its headers had arrived
	traffic *traffic  // where it is counted: its operation's, once that is known
}

// serve makes the handler of a resource; nil stands for none.
func (d *Door) serve(res resource) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{door: d, w: w, http: r, came: time.Now(), traffic: d.traffic[0]}
		var cancel context.CancelFunc
		q.ctx, cancel = context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		defer func() { d.bodies.Add(-q.held) }()
		q.bound()
		q.stamp()
		if err := q.run(res); err != nil {
			q.fail(err)
		}
	})
}

// bound sets new deadlines: those of the connection's request before still apply.
func (q *request) bound() {
	q.deadline()
	if q.http.ContentLength != 0 {
		// Until body has read it; else also while net/http skips it.
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
}

// run takes a request through everything that all operations share, to its handler.
func (q *request) run(res resource) error {
	if err := q.checkHost(); err != nil {
		return err
	}
	if done, err := q.checkOrigin(res); done || err != nil {
		return err
	}
	if res == nil {
		return q.noResource()
	}
	method := q.http.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op := res[method]
	if op == nil {
		q.w.Header().Set("Allow", res.allow())
		return &problem{
			Status: http.StatusMethodNotAllowed, Title: "method not allowed",
			Detail: "this resource has no " + strconv.Quote(q.http.Method),
			Hint:   "it has " + res.allow(),
		}
	}
	q.traffic = op.traffic
	for _, prepare := range []func(*route) error{
		q.parseQuery, q.parseVars, q.identify, q.readKey, q.settle, q.readSession,
	} {
		if err := prepare(&op.route); err != nil {
			return err
		}
	}
	return op.handle(q)
}

// stamp sets the headers of every answer. Who looks at the state, or changes it,
// says later what it was.
func (q *request) stamp() {
	h := q.w.Header()
	s := q.door.srv.Status()
	h.Set(headerServer, strconv.FormatUint(uint64(q.door.srv.Config().ID), 10))
	leader := "none"
	if s.Leader != 0 {
		leader = strconv.FormatUint(uint64(s.Leader), 10)
	}
	h.Set(headerLeader, leader)
	h.Set(headerConsistency, consistencyLocal)
	h.Set("X-Content-Type-Options", "nosniff") // data is what a client made it
	h.Set("Cache-Control", "no-cache")         // ask again; ETags make that cheap
	q.look(func(*server.View) {})
}

// look calls visit with the present state, which is what the answer will say that
// it shows. visit must be quick.
func (q *request) look(visit func(v *server.View)) {
	var zxid znode.Zxid
	q.door.srv.View(func(v *server.View) {
		visit(v)
		zxid = v.Zxid()
	})
	q.setZxid(zxid)
}

func (q *request) setZxid(z znode.Zxid) { q.w.Header().Set(headerZxid, z.String()) }

// parseVars decodes the parts of the URL's path, once.
func (q *request) parseVars(rt *route) error {
	vars := maps.Clone(mux.Vars(q.http))
	if !rt.parseTail(vars) {
		return q.noResource()
	}
	q.vars = make(map[string]string, len(vars))
	for name, raw := range vars {
		text, err := url.PathUnescape(raw)
		if err != nil {
			return badRequest("path", "%v; write a percent sign as %%25", err)
		}
		q.vars[name] = text
	}
	return nil
}

// answer sends a body as JSON.
func (q *request) answer(status int, body any) error {
	return q.send(status, "application/json", body)
}

func (q *request) send(status int, contentType string, body any) error {
	b := &buffer{}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // it is read by people
	if err := enc.Encode(body); err != nil {
		return err
	}
	q.sendBytes(status, contentType, b.bytes)
	return nil
}

func (q *request) sendBytes(status int, contentType string, body []byte) {
	h := q.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.deadline()
	q.begin(status)
	_, _ = q.w.Write(body) // the client has gone
}

// deadline bounds how long the client may take to take what is sent next.
func (q *request) deadline() {
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// buffer collects what is written to it.
type buffer struct{ bytes []byte }

func (b *buffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}
