package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// A server that has lost its majority reports that before anything is sent, and still shows its
// own state to clients that ask for that.
func TestServer_WithoutQuorum(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 2)
	c := newClient(t, e.urls[0])
	c.post("/v1/znodes/a", "x").want(201)
	_, session := c.session("30s")
	c.post("/v1/sync", "").want(200)
	session.get("/v1/znodes/a").want(200)
	e.stop(1)
	eventually(t, "it is not ready", func() bool { return c.once("GET", "/readyz").status == 503 })
	eventually(t, "it does not serve", func() bool {
		a := c.once("GET", "/readyz")
		return a.json["status"] == "no leader with a majority is known" && a.header.Get("Zk-Leader") == "none"
	})
	c.get("/livez").want(200)
	for _, target := range []string{"/v1/znodes/a", "/v1/znodes/a?consistency=linearizable"} {
		a := c.once("GET", target).problem(503, "CONNECTIONLOSS").contains("nothing was done")
		if a.header.Get("Retry-After") == "" || a.header.Get("Zk-Leader") != "none" {
			t.Errorf("%s: headers %v, want Retry-After and no leader", target, a.header)
		}
	}
	c.once("PUT", "/v1/znodes/a", "y").problem(503, "CONNECTIONLOSS")
	c.once("PUT", "/v1/znodes/a?consistency=local", "y").problem(503, "CONNECTIONLOSS")
	c.once("POST", "/v1/sync?consistency=local").problem(503, "CONNECTIONLOSS")
	c.once("GET", "/v1/znodes/a?consistency=local").want(200).has("data", "x")
	session.once("GET", "/v1/znodes/a?consistency=local").want(200)
	c.with("Zk-Session: 0x77.00112233445566778899aabbccddeeff").
		once("GET", "/v1/znodes/a?consistency=local").want(503)
}

// A server was ready while it kept its clients: for seconds after it had lost its leader, and while its disk was full.
// New clients waited in vain.
func TestServer_Ready_AsClientsFindIt(t *testing.T) {
	srv := shared().nodes[0].Server()
	for _, x := range []struct {
		change func(*consensus.Status)
		code   int
		status string
	}{
		{func(s *consensus.Status) { s.Leader, s.Role = state.NoServer, consensus.RoleNone }, 503, "no leader is known"},
		{func(s *consensus.Status) { s.DiskFault = "no space left on device" }, 503, "the disk refuses writes"},
		{func(s *consensus.Status) { s.DataLost = "/data was removed" }, 503, "the data directory is gone"},
		{func(s *consensus.Status) { s.Leader = 0 }, 200, "ok"}, // a server like any other
		{func(s *consensus.Status) {
			s.Halt = &consensus.Halt{Kind: selfcheck.Removed, Reason: "it was removed"}
		},
			503, "halted: removed"},
		{func(s *consensus.Status) { s.Ensemble, s.Waiting = [16]byte{}, "for server 2" },
			503, "waiting to form or join the ensemble"},
	} {
		_, url := serveReplaced(t, shared().nodes[0], changedStatus{srv, x.change})
		newClient(t, url).once("GET", "/readyz?verbose").want(x.code).has("status", x.status)
	}
	_, url := serveReplaced(t, shared().nodes[0], stalled{srv})
	newClient(t, url).once("GET", "/readyz?verbose").want(503).has("status", "nothing is applied, though requests wait")
}

// stalled is a server that applies nothing.
type stalled struct{ *server.Server }

func (stalled) Stalled() bool { return true }

// changedStatus is a server in another state.
type changedStatus struct {
	*server.Server
	change func(*consensus.Status)
}

func (c changedStatus) Status() consensus.Status {
	s := c.Server.Status()
	c.change(&s)
	return s
}

// An answer with an unknown outcome says so, and names the remedy.
func TestServer_UnknownOutcome(t *testing.T) {
	srv := shared().nodes[0].Server()
	var calls atomic.Int32
	_, url := serveReplaced(t, shared().nodes[0], faulty{Server: srv, do: func(ctx context.Context, c *state.Command) (state.Result, error) {
		if r, err := srv.Do(ctx, c); err != nil || calls.Add(1) > 1 {
			return r, err // the second time it gets through
		}
		return state.Result{}, context.DeadlineExceeded
	}})
	c := newClient(t, url)
	r := root(t, c.at(shared().urls[0]))
	c.put(r, "1").problem(504, "OPERATIONTIMEOUT").contains("may or may not").contains("with an Idempotency-Key")
	calls.Store(0)
	keyed := c.with("Idempotency-Key: " + r)
	keyed.post(r+"/n-?mode=persistent_sequential", "").problem(504, "OPERATIONTIMEOUT").contains("same Idempotency-Key")
	a := keyed.post(r+"/n-?mode=persistent_sequential", "").want(201)
	if !strings.HasSuffix(a.text("path"), "/n-0000000000") || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repetition is %s with %v, want the first znode, replayed", a.body, a.header)
	}
	// The state came by a snapshot: with a key the HTTP server finds the result itself.
	_, url = serveReplaced(t, shared().nodes[0], faulty{Server: srv, do: func(ctx context.Context, c *state.Command) (state.Result, error) {
		if r, err := srv.Do(ctx, c); err != nil || calls.Add(1) != 1 {
			return r, err
		}
		return state.Result{}, znode.ErrConnectionLoss
	}})
	calls.Store(0)
	c.at(url).with("Idempotency-Key: 2"+r).put(r, "2").want(200)
	calls.Store(0)
	c.at(url).put(r, "2").problem(504, "OPERATIONTIMEOUT")
	_, url = serveReplaced(t, shared().nodes[0], faulty{Server: srv, do: func(context.Context, *state.Command) (state.Result, error) {
		return state.Result{}, errors.New("server is stopping")
	}})
	c.at(url).once("PUT", r, "3").problem(503, "CONNECTIONLOSS").contains("nothing was done")
}

func TestServer_Idempotency(t *testing.T) {
	e := shared()
	c := newClient(t, e.urls[0])
	r := root(t, c)
	key := func(s string) *client { return c.with("Idempotency-Key: " + r + s) }
	twice := func(k, method, target, body string, status int) {
		t.Helper()
		first := key(k).do(method, target, body).want(status)
		for i := range 2 {
			again := key(k).at(e.urls[1+i]).do(method, target, body).want(status)
			if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") == "" {
				t.Errorf("%s %s: %s, then %s", method, target, first.body, again.body)
			}
		}
	}
	twice("1", "POST", r+"/n-?mode=persistent_sequential", "x", 201)
	twice("2", "POST", r+"/a/b/c/n-?mode=persistent_sequential&parents=true", "x", 201)
	twice("3", "PUT", r+"/a/b/c", "x", 200)
	twice("4", "PUT", r+"/new?create=true", "x", 201)
	twice("5", "PUT", r+"/newer/est?create=true&parents=true", "x", 201)
	twice("6", "PUT", r+"?version=7", "x", 412)
	twice("7", "PUT", r+"?acl=world:anyone:cdrwa", "", 200)
	twice("8", "DELETE", r+"/new", "", 204)
	twice("9", "DELETE", r+"/a?recursive=true", "", 204)
	twice("a", "POST", "/v1/sessions", `{"timeout": "9s"}`, 201)
	twice("b", "POST", "/v1/multi", `{"ops": [{"op": "create", "mode": "persistent_sequential", "path": "`+
		strings.TrimPrefix(r, "/v1/znodes")+`/m-"}]}`, 200)
	c.get(r+"?children").want(200).has("stat.numChildren", 3)
	key("1").post(r+"/o-?mode=persistent_sequential", "x").problem(422, "BADARGUMENTS").has("parameter", "Idempotency-Key")
	key("9").put(r, "x").want(422)
	// Another client creates the path of a repeated recursive delete again.
	c.post(r+"/a/x?parents=true", "").want(201)
	key("9").delete(r + "/a?recursive=true").want(204)
	c.get(r + "/a/x").want(200)
	key("9").delete(r + "/a/x?recursive=true").want(422)
}

// TTL znodes need a setting that the shared servers have.
func TestServer_Unimplemented(t *testing.T) {
	srv := shared().nodes[0].Server()
	_, url := serveReplaced(t, shared().nodes[0], faulty{Server: srv, do: func(_ context.Context, c *state.Command) (state.Result, error) {
		one := state.OpResult{Op: state.OpCreate, Code: znode.ErrUnimplemented}
		return state.Result{Op: c.Op, Code: one.Code, Multi: []state.OpResult{one}[:len(c.Ops)]}, nil
	}})
	c := newClient(t, url)
	c.post("/v1/znodes/a?mode=ttl&ttl=1s", "").problem(501, "UNIMPLEMENTED").contains("extendedTypesEnabled")
	c.post("/v1/multi", `{"ops": [{"op": "create", "path": "/a", "mode": "ttl", "ttl": "1s"}]}`).
		problem(501, "UNIMPLEMENTED")
}

// A client that asks for more than there is gets an answer at once.
func TestServer_Bounds(t *testing.T) {
	d, url := serve(t, shared().nodes[0])
	c := newClient(t, url)
	r := root(t, c)
	full := func(limits rest.Limits) *client {
		t.Helper()
		_, url := serve(t, shared().nodes[0], func(c *api.Config) { c.REST.Limits = limits })
		return c.at(url)
	}
	busy := func(a *answer) {
		t.Helper()
		if a.problem(429, "THROTTLEDOP"); a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	busy(full(rest.Limits{LongRequests: -1}).get("/v1/watches/a"))
	busy(full(rest.Limits{LongRequestsPerAddress: -1}).get("/v1/watches/a"))
	writes := full(rest.Limits{Writes: -1})
	busy(writes.put(r, ""))
	busy(writes.get(r + "?consistency=linearizable"))
	writes.get(r).want(200)
	busy(full(rest.Limits{BodyBytes: -1}).put(r, "x"))
	c.put(r, "x").want(200)
	if d.Core().BodyBytes() != 0 {
		t.Errorf("%d bytes of bodies are still counted", d.Core().BodyBytes())
	}
	long := c.with("X-Long: " + strings.Repeat("x", 100<<10))
	resp, err := http.DefaultClient.Do(long.request("GET", r, ""))
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("headers of 100 KB: %s", resp.Status)
		}
	}
}

// recorder notes which deadlines are set before the answer begins.
type recorder struct {
	*httptest.ResponseRecorder
	write, read, atHeader time.Time
}

func (r *recorder) SetWriteDeadline(t time.Time) error { r.write = t; return nil }
func (r *recorder) SetReadDeadline(t time.Time) error  { r.read = t; return nil }
func (r *recorder) WriteHeader(status int) {
	r.atHeader = r.write
	r.ResponseRecorder.WriteHeader(status)
}

// A connection's deadlines outlive a request: an answer without a body must not be sent under
// the one of the request before, and a body that no one reads is bounded.
func TestServer_DeadlinesAreNew(t *testing.T) {
	d, url := serve(t, shared().nodes[0])
	r := root(t, newClient(t, url))
	for _, x := range []struct {
		method, target, body string
		status               int
		cleared              bool
	}{
		{"DELETE", r, "", 204, true}, {"OPTIONS", r, "", 204, true}, {"POST", r, "x", 201, true},
		{"POST", r + "?bad=1", "x", 400, false},
	} {
		w := &recorder{ResponseRecorder: httptest.NewRecorder()}
		d.Handler().ServeHTTP(w, httptest.NewRequest(x.method, "http://localhost"+x.target, strings.NewReader(x.body)))
		if w.Code != x.status || time.Until(w.atHeader) <= 0 || w.read.IsZero() != x.cleared {
			t.Errorf("%s: %d, deadlines %v and %v", x.method, w.Code, w.atHeader, w.read)
		}
	}
}

// One address took all connections, and probes were no longer answered: the chart restarts servers for that. An
// address has half of them, and this machine some of its own.
func TestServer_TooManyConnections(t *testing.T) {
	d, url := serve(t, shared().nodes[0])
	c := newClient(t, url)
	c.get("/livez").want(200)
	// mayComeFrom reports whether a client with this address is answered.
	mayComeFrom := func(address string) bool {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		conn, err := dialer.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n") // it may be closed already
		_, err = conn.Read(make([]byte, 1))
		return err == nil
	}
	d.FillConns("127.0.0.2", 1)
	if mayComeFrom("127.0.0.2") || !mayComeFrom("127.0.0.3") {
		t.Error("one address has half of all: got an answer for it, or none for another")
	}
	d.FillConns("10.0.0.1", 1)
	if mayComeFrom("127.0.0.3") {
		t.Error("all are taken: got an answer")
	}
	d.FillConns("10.0.0.1", -1)
	d.FillConns("127.0.0.2", -1)
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "all have gone", func() bool { return d.Conns() == 0 })
	c.get("/livez").want(200)
}

// The answer to a body that stopped coming waited for the rest of it, without end. It comes after the bound,
// whatever was announced, and ends the connection.
func TestServer_BodyThatStops_IsAnswered(t *testing.T) {
	const limit = 50 * time.Millisecond
	_, url := serve(t, shared().nodes[0], func(c *api.Config) { c.REST.Limits.BodyTime = limit })
	for _, head := range []string{
		"Content-Length: 4", "Content-Length: 1003", "Content-Length: 100003", "Content-Length: 300003",
		"Transfer-Encoding: chunked",
	} {
		for _, method := range []string{"PUT", "BREW"} { // whose body is not read
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(conn, "%s /v1/znodes/x?create=true HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", method, head)
			if strings.HasPrefix(head, "Content") {
				fmt.Fprint(conn, "abc")
			} else {
				fmt.Fprint(conn, "4\r\nabc")
			}
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Errorf("%s with %s has no answer: %v", method, head, err)
				continue
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if want := map[string]int{"PUT": 408, "BREW": 405}[method]; resp.StatusCode != want || err != nil {
				t.Errorf("%s %s: %s, %v, want %d", method, head, resp.Status, err, want)
			}
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("%s %s: the connection goes on: %v", method, head, err)
			}
		}
	}
}

// Clients of the ZooKeeper port hold their whole share of descriptors: some are left for this port, and no more.
func TestServer_Descriptors_SomeAreKept(t *testing.T) {
	pool := process.NewDescriptors(16) // 1 is kept for HTTP
	for pool.Clients.Take() {
	}
	d, url := serve(t, shared().nodes[0], func(c *api.Config) { c.Descriptors = pool.HTTP })
	first, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first is there", func() bool { return d.Conns() == 1 })
	second, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("the second may speak")
	}
	if n := pool.Refused(); n != 1 {
		t.Errorf("%d are counted as refused, want 1", n)
	}
	first.Close()
	eventually(t, "all have gone", func() bool { return d.Conns() == 0 })
	newClient(t, url).get("/livez").want(200)
}

func TestServer_Origin(t *testing.T) {
	_, url := serve(t, shared().nodes[0], func(c *api.Config) { c.REST.Origins = []string{"https://ok.example"} })
	c := newClient(t, url)
	c.get("/v1/znodes/").want(200)
	c.with("Origin: " + url).get("/v1/znodes/").want(200)
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:1"} {
		evil := c.with("Origin: " + origin)
		evil.get("/v1/znodes/").want(403).has("parameter", "Origin")
		evil.put("/v1/znodes/", "x").want(403)
		if a := evil.do("OPTIONS", "/v1/znodes/"); a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("a preflight of %s: %d with %v, want 403 and no permission", origin, a.status, a.header)
		}
	}
	for value, want := range map[string]int{"cross-site": 403, "same-site": 200, "same-origin": 200, "none": 200} {
		c.with("Sec-Fetch-Site: " + value).get("/v1/znodes/").want(want)
	}
	// A link leads to a page, and to nothing else; no other site can have a page in a frame, or as a script.
	link := c.with("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
	for target, want := range map[string]int{
		"/": 302, "/ui": 302, "/ui/": 200, "/docs": 200, "/v1/znodes/": 403, "/commands/ruok": 403, "/metrics": 403,
	} {
		link.get(target).want(want)
		c.with("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe").get(target).want(403)
		c.with("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script").get(target).want(403)
	}
	link.with("Origin: https://evil.example").get("/ui/").want(403)
	c.with("Origin: https://ok.example", "Sec-Fetch-Site: cross-site").get("/v1/znodes/").want(200)
	friend := c.with("Origin: https://ok.example")
	if h := friend.get("/v1/znodes/").want(200).header; h.Get("Access-Control-Allow-Origin") != "https://ok.example" ||
		h.Get("Vary") != "Origin" || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Zk-Zxid") {
		t.Errorf("an allowed origin gets %v, want its permissions", h)
	}
	if h := friend.do("OPTIONS", "/v1/znodes/a").want(204).header; !strings.Contains(h.Get("Access-Control-Allow-Methods"), "PUT") ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Idempotency-Key") {
		t.Errorf("an allowed origin's preflight gets %v, want PUT and Idempotency-Key", h)
	}
	if h := c.do("OPTIONS", "/v1/sync").want(204).header; h.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("Allow is %q, want OPTIONS, POST", h.Get("Allow"))
	}
}

// largeFamily is more children than are sorted while the state is held still.
const largeFamily = 4096 + 10

// Many children are sorted without holding the state still; pages fit together.
func TestZnode_Children_Many(t *testing.T) {
	tier.Seconds(t)
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	var ops []string
	for i := range largeFamily {
		ops = append(ops, fmt.Sprintf(`{"op":"create","path":"%s/%05d","data":"%d"}`, strings.TrimPrefix(r, "/v1/znodes"), i, i))
	}
	c.post("/v1/multi", `{"ops":[`+strings.Join(ops, ",")+`]}`).want(200)
	n, after := 0, ""
	for {
		a := c.get(r + "?children&stat&data&limit=1500&after=" + after).want(200)
		for _, child := range a.field("children").([]any) {
			x := child.(map[string]any)
			if x["name"] != fmt.Sprintf("%05d", n) || x["data"] != fmt.Sprint(n) {
				t.Fatalf("child %d: %v", n, x)
			}
			n++
		}
		if a.json["next"] == nil {
			break
		}
		after = a.text("next")
	}
	if n != largeFamily {
		t.Errorf("%d children", n)
	}
	c.delete(r + "?recursive=true").want(204)
}

// An answer does not outgrow its bound: a page ends early.
func TestZnode_Children_PageOfLargeData(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	for i := range 10 {
		c.post(fmt.Sprintf("%s/%d", r, i), strings.Repeat("x", 1<<20-1)).want(201)
	}
	a := c.get(r+"?children&data").want(200).has("next", "7")
	if n := len(a.field("children").([]any)); n != 8 {
		t.Errorf("%d children", n)
	}
	c.get(r+"?children&data&after=7").want(200).has("children.0.name", "8")
	c.delete(r + "?recursive=true").want(204)
}

// A body that ends too early is the client's fault, and nothing is written.
func TestServer_CutBody(t *testing.T) {
	c := newClient(t, shared().urls[0])
	r := root(t, c)
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf", r)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("the answer is %s, want 400", resp.Status)
		}
	}
	c.get(r).want(200).has("stat.version", 0)
}

// Every code that the state machine may answer with has an explanation.
func TestProblems_CoverTheCodes(t *testing.T) {
	for _, code := range []znode.Error{
		znode.ErrBadArguments, znode.ErrUnimplemented, znode.ErrNoNode, znode.ErrNoAuth, znode.ErrBadVersion,
		znode.ErrNoChildrenForEphemeral, znode.ErrNodeExists, znode.ErrNotEmpty, znode.ErrSessionExpired,
		znode.ErrInvalidACL, znode.ErrAuthFailed, znode.ErrSessionMoved, znode.ErrQuotaExceeded, znode.ErrThrottled,
		znode.ErrSystem,
	} {
		if rest.Explain(code, "", false).Status == 500 {
			t.Errorf("%s is a 500", code.Name())
		}
	}
}

// 64 sockets that announced four megabytes each, and sent nothing, made the server refuse all
// writes.
func TestRegression_Bodies_CountWhatHasArrived(t *testing.T) {
	d, url := serve(t, shared().nodes[0], func(c *api.Config) { c.REST.Limits.BodyBytes = 16 << 20 })
	r := root(t, newClient(t, shared().urls[0]))
	for _, head := range []string{"Content-Length: 4000000", "Transfer-Encoding: chunked"} {
		for range 64 {
			halfSent(t, url, "127.0.0.1", head, 0)
		}
	}
	eventually(t, "all are being read", func() bool { return d.Core().BodyBytes() > 0 })
	newClient(t, url).put(r, strings.Repeat("x", 1<<20-1)).want(200)
	if n := d.Core().BodyBytes(); n > 1<<20 {
		t.Errorf("bodies of which nothing has come hold %d bytes", n)
	}
}

// Nor do bodies of which all but the last byte has arrived: the bodies of other clients are accepted, and so are
// others of the same address. The first that make no progress are dropped.
func TestRegression_Bodies_HalfSentMakeRoom(t *testing.T) {
	const size = 1 << 20
	d, url := serve(t, shared().nodes[0], func(c *api.Config) { c.REST.Limits.BodyBytes = 8 * size })
	r := root(t, newClient(t, shared().urls[0]))
	var conns []net.Conn
	for _, address := range []string{"127.0.0.2", "127.0.0.3"} { // both together may have all
		for range 20 {
			conns = append(conns, halfSent(t, url, address, fmt.Sprint("Content-Length: ", size-1), size-2))
		}
		// All others must have been read by now: one that is read later would push out an honest one.
		eventually(t, "an address has its half, and no more", func() bool {
			n := d.Core().BodyBytes()
			return n <= 8*size && n >= 3*size && d.Conns() <= 8
		})
	}
	for _, address := range []string{"127.0.0.1", "127.0.0.2"} {
		conn := halfSent(t, url, address, fmt.Sprintf("Content-Length: %d\r\nX: y", size-1), 0)
		fmt.Fprint(conn, strings.Repeat("x", size-1))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound { // the path does not exist: the server tried
			t.Errorf("a body from %s: %s", address, resp.Status)
		}
	}
	newClient(t, url).put(r, strings.Repeat("x", size-1)).want(200)
	resp, err := http.ReadResponse(bufio.NewReader(conns[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Error("the first that stands still:", resp.Status)
	}
}

// halfSent sends the beginning of a write from an address of this machine.
func halfSent(t *testing.T, url, address, head string, n int) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "PUT /v1/znodes/nowhere/x HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", head)
	fmt.Fprint(conn, strings.Repeat("x", n))
	return conn
}

// A change of the members that no leader could be asked for ended after ten seconds with an unknown outcome.
func TestRegression_Cluster_WithoutALeader_NothingIsDone(t *testing.T) {
	t.Parallel()
	leaderless := func(s *consensus.Status) { s.Leader, s.Role = state.NoServer, consensus.RoleNone }
	_, url := serveReplaced(t, shared().nodes[0], changedStatus{shared().nodes[0].Server(), leaderless})
	c := operator(t, url)
	for _, ask := range [][]string{
		{"DELETE", "/v1/cluster/members/9"}, {"POST", "/v1/cluster/members/2/token"},
		{"POST", "/v1/cluster/members", `{"id":9,"address":"127.0.0.1:1"}`}, {"POST", "/v1/cluster/transfer", `{"to":2}`},
		{"PUT", "/v1/cluster/level", `{"level":1}`},
	} {
		c.once(ask[0], ask[1], ask[2:]...).problem(503, "CONNECTIONLOSS").contains("no leader was reached, and nothing has been done")
	}
}
