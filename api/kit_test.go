package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/admin"
	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/migration/mirror"
	"github.com/zk-lite/zk-lite/server"
)

// ensemble is servers in this process, each with its HTTP server.
type ensemble struct {
	settings []config.Settings
	nodes    []*app.Server // nil: stopped
	urls     []string
}

// shared is an ensemble of three for tests that stop none of its servers.
var shared = sync.OnceValue(func() *ensemble { return newEnsemble(panics{}, 3, patient) })

// names counts the names that tests have had.
var names atomic.Int64

// uniqueName names a znode, or a key, that no other test of the shared ensemble has, nor this one when it runs again.
func uniqueName(t testing.TB) string {
	return fmt.Sprint(strings.NewReplacer("/", "_", "#", "-").Replace(t.Name()), "-", names.Add(1))
}

// patient is for ensembles in which no server is ever missing: one that gets no processor
// for a second is not taken for dead, and its clients not sent away.
func patient(s *config.Settings) { s.Consensus.ElectionTimeout = 3 * time.Second }

// minTimeout is the shortest timeout of a session.
const minTimeout = 6 * time.Second

// brisk lets sessions expire soon. It is for servers that stand alone, which are never without news of a leader.
func brisk(s *config.Settings) { s.Server.MinSessionTimeout = time.Second }

// sharedDir is where it has its data.
var sharedDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		panic(err)
	}
	sharedDir = dir
	code := m.Run()
	if code == 0 && os.Getenv("API_SHARED_UNUSED") == "" {
		code = checkCoverage()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// fataler is the part of testing.TB that the ensemble needs.
type fataler interface {
	ports.TB
	TempDir() string
}

// panics is a fataler for code outside a test.
type panics struct{}

func (panics) Helper()           {}
func (panics) Cleanup(func())    {} // the process ends
func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func (panics) TempDir() string   { return sharedDir }

func newEnsemble(tb fataler, n int, change ...func(*config.Settings)) *ensemble {
	tb.Helper()
	e := &ensemble{nodes: make([]*app.Server, n), urls: make([]string, n)}
	port := ports.Take(tb, 4*n)
	var servers []config.Server
	for i := range n {
		p := port[4*i:]
		servers = append(servers, config.Server{
			ID: i + 1, Host: "127.0.0.1", PeerPort: p[0], ElectionPort: p[1],
			Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: p[2],
		})
	}
	dir := tb.TempDir()
	for i := range n {
		s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
		if err != nil {
			tb.Fatal(err)
		}
		s.MyID = i + 1
		s.DataDir = filepath.Join(dir, fmt.Sprintf("server-%d", i+1))
		s.DataLogDir = s.DataDir
		s.ClientPortAddress, s.ClientPort = "127.0.0.1", port[4*i+2]
		s.AdminAddress, s.AdminPort = "127.0.0.1", port[4*i+3]
		s.Server.Tick = 100 * time.Millisecond
		// A server without news of its leader ends streams and waits after half of the shortest session timeout, or
		// after syncLimit ticks if they are fewer. It must not do so when it gets no processor for a second or two.
		s.SyncLimit, s.Consensus.ElectionTimeout = 30, 2*time.Second
		s.Server.MinSessionTimeout, s.Server.MaxSessionTimeout = minTimeout, time.Minute
		s.Consensus.Autopilot.StableTime = time.Second
		s.Server.ExtendedTypes, s.Server.EnforceQuota = true, true
		s.Auth.SuperDigest = superDigest
		s.Standalone = n == 1
		if n > 1 {
			s.Servers = servers
		}
		for _, f := range change {
			f(&s)
		}
		e.settings = append(e.settings, s)
		e.urls[i] = fmt.Sprintf("http://127.0.0.1:%d", s.AdminPort)
	}
	for i := range n {
		e.start(tb, i)
	}
	for i := range n {
		e.waitReady(tb, i)
	}
	return e
}

// superDigest is that of super:secret.
const superDigest = "super:" + "lK75jTNcA+U9vtVEw5vB51mj/w4="

func (e *ensemble) start(tb fataler, i int) {
	tb.Helper()
	n, err := app.Open(app.Options{
		Settings: e.settings[i], Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { panic(err) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	e.nodes[i] = n
}

func (e *ensemble) waitReady(tb fataler, i int) {
	tb.Helper()
	eventually(tb, e.urls[i]+" is ready", func() bool {
		r, err := http.Get(e.urls[i] + "/readyz")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

func (e *ensemble) stop(i int) {
	if e.nodes[i] != nil {
		_ = e.nodes[i].Close()
		e.nodes[i] = nil
	}
}

// fresh is an ensemble of the test's own.
func fresh(t *testing.T, n int, change ...func(*config.Settings)) *ensemble {
	t.Helper()
	e := newEnsemble(t, n, change...)
	t.Cleanup(func() {
		for i := range e.nodes {
			e.stop(i)
		}
	})
	return e
}

func eventually(tb fataler, what string, condition func() bool) {
	tb.Helper()
	wait.Until(tb, what, condition)
}

// client sends requests to one server and checks every answer against the OpenAPI
// document.
type client struct {
	testing.TB
	url     string
	headers []string // "Name: value", of every request
}

func newClient(tb testing.TB, url string) *client { return &client{TB: tb, url: url} }

// with is the client with more headers.
func (c *client) with(headers ...string) *client {
	more := append(c.headers[:len(c.headers):len(c.headers)], headers...)
	return &client{TB: c.TB, url: c.url, headers: more}
}

// at is the client at another server.
func (c *client) at(url string) *client { return &client{c.TB, url, c.headers} }

type answer struct {
	testing.TB
	what   string
	status int
	header http.Header
	body   []byte
	json   map[string]any
}

func (c *client) request(method, target, body string) *http.Request {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), method, c.url+target, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for _, h := range c.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	return req
}

// do sends a request and reads the answer. Like any client it retries while the server
// reports that nothing was done because there is no quorum.
func (c *client) do(method, target string, body ...string) *answer {
	c.Helper()
	for {
		a := c.once(method, target, body...)
		if a.status != http.StatusServiceUnavailable || a.json["title"] != "no quorum" {
			return a
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-c.Context().Done():
			return a
		}
	}
}

// direct does not follow redirects.
var direct = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// once sends a request and does not retry.
func (c *client) once(method, target string, body ...string) *answer {
	c.Helper()
	req := c.request(method, target, strings.Join(body, ""))
	resp, err := direct.Do(req)
	if err != nil {
		c.Fatalf("%s %s has no answer: %v", method, target, err)
	}
	defer resp.Body.Close()
	a := &answer{TB: c.TB, what: method + " " + target, status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		c.Fatalf("%s: %v", a.what, err)
	}
	if kind := resp.Header.Get("Content-Type"); strings.Contains(kind, "json") && kind != "application/x-ndjson" && len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &a.json); err != nil {
			c.Fatalf("%s: %v in %q", a.what, err, a.body)
		}
	}
	if err := validate(req, resp, a.body); err != nil {
		c.Errorf("%s: %d %s\ndiffers from the OpenAPI document: %v", a.what, a.status, a.body, err)
	}
	return a
}

func (c *client) get(target string) *answer { c.Helper(); return c.do("GET", target) }
func (c *client) put(target, body string) *answer {
	c.Helper()
	return c.do("PUT", target, body)
}
func (c *client) post(target, body string) *answer {
	c.Helper()
	return c.do("POST", target, body)
}
func (c *client) delete(target string) *answer { c.Helper(); return c.do("DELETE", target) }

// want demands a status.
func (a *answer) want(status int) *answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s: status %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

// problem demands a status, and the ZooKeeper name of the problem.
func (a *answer) problem(status int, name string) *answer {
	a.Helper()
	a.want(status)
	if got, _ := a.json["error"].(string); got != name {
		a.Errorf("%s: error %q, want %q: %s", a.what, got, name, a.body)
	}
	return a
}

// contains demands that the body contains a text.
func (a *answer) contains(text string) *answer {
	a.Helper()
	if !bytes.Contains(a.body, []byte(text)) {
		a.Errorf("%s: no %q in %s", a.what, text, a.body)
	}
	return a
}

// field returns a value of the answer by its path through the objects: a.b.0.c.
func (a *answer) field(way string) any {
	a.Helper()
	var at any = a.json
	for name := range strings.SplitSeq(way, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				a.Fatalf("%s: no %s in %s", a.what, way, a.body)
			}
			at = v[i]
		default:
			a.Fatalf("%s: no %s in %s", a.what, way, a.body)
		}
	}
	return at
}

// has demands a value of the answer.
func (a *answer) has(way string, want any) *answer {
	a.Helper()
	if n, ok := want.(int); ok {
		want = float64(n)
	}
	if got := a.field(way); got != want {
		a.Errorf("%s: %s is %v, want %v: %s", a.what, way, got, want, a.body)
	}
	return a
}

// text returns a string of the answer.
func (a *answer) text(way string) string {
	a.Helper()
	s, ok := a.field(way).(string)
	if !ok {
		a.Fatalf("%s: %s is no text in %s", a.what, way, a.body)
	}
	return s
}

func basic(credentials string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

// faulty is a server with some methods replaced.
type faulty struct {
	*server.Server
	serving func() bool
	do      func(ctx context.Context, c *state.Command) (state.Result, error)
}

func (f faulty) Serving() bool {
	if f.serving != nil {
		return f.serving()
	}
	return f.Server.Serving()
}

func (f faulty) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	if f.do != nil {
		return f.do(ctx, c)
	}
	return f.Server.Do(ctx, c)
}

// serve opens one more HTTP server for a node, and returns where it is.
func serve(tb testing.TB, n *app.Server, change ...func(*api.Config)) (*api.Server, string) {
	tb.Helper()
	return serveReplaced(tb, n, n.Server(), change...)
}

// serveReplaced is serve with some methods of the node's server replaced.
func serveReplaced(tb testing.TB, n *app.Server, srv api.Backend, change ...func(*api.Config)) (*api.Server, string) {
	tb.Helper()
	cfg := api.Config{Admin: admin.Config{
		Version: "test", ReadOnly: n.Server().ReadOnly,
		Mirror: mirror.New(mirror.LogOf(n.Server()), mirror.Config{Logger: slog.New(slog.DiscardHandler)}),
	}}
	cfg.REST.Logger = slog.New(slog.DiscardHandler)
	for _, f := range change {
		f(&cfg)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	d := api.New(srv, n.Consensus().Ensemble(), cfg)
	served := make(chan error)
	go func() { served <- d.Serve(l) }()
	tb.Cleanup(func() {
		d.Kill()
		if err := <-served; err != nil {
			tb.Errorf("serving: %v", err)
		}
	})
	return d, "http://" + l.Addr().String()
}
