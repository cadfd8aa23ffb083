// Package zklitetest starts real zk-lite servers for the tests of Go programs: one
// server, or an ensemble of several, in the process of the test.
//
//	func TestStore(t *testing.T) {
//		e := zklitetest.Start(t, zklitetest.WithServers(3))
//		c, err := client.Connect(t.Context(), e.ConnectString())
//		...
//		e.Stop(e.Leader()) // the clients continue at the other servers
//	}
//
// The servers listen on free ports of 127.0.0.1, with the ZooKeeper protocol and the
// HTTP API. Their data is in a temporary directory of the test. When the test ends they
// are stopped and the directory is removed. An ensemble serves after about a second.
//
// A server is stopped in good order only. For kill -9, paused processes and broken
// networks, run the program zk-lite.
//
// The goroutines are those of the servers; each ends when its server stops.
package zklitetest

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
)

// startTimeout bounds how long servers may take until they serve: long for a loaded machine.
const startTimeout = time.Minute

// pollEvery is how often to check whether servers serve.
const pollEvery = 2 * time.Millisecond

// Ensemble is one server or several that belong together. Its methods are safe for
// concurrent use. Servers are named by their index; the id of server i is i+1.
type Ensemble struct {
	tb     testing.TB
	logger *slog.Logger

	mu      sync.Mutex // protects the servers' field running
	servers []*server
}

type server struct {
	settings config.Settings
	running  *app.Server // nil while stopped
}

// Start starts servers and waits until all of them serve clients. It fails the test if
// they do not, and later if one of them fails.
func Start(tb testing.TB, opts ...Option) *Ensemble {
	tb.Helper()
	o := options{servers: 1, logger: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	e := &Ensemble{tb: tb, logger: o.logger, servers: make([]*server, o.servers)}
	dir, port := tb.TempDir(), ports.Take(tb, portsPerServer*o.servers)
	for i := range e.servers {
		s, err := o.configure(filepath.Join(dir, strconv.Itoa(i+1)), i, port)
		if err != nil {
			tb.Fatalf("zklitetest: configuring server %d: %v", i+1, err)
		}
		e.servers[i] = &server{settings: s}
	}
	tb.Cleanup(func() {
		for i := range e.servers {
			e.Stop(i)
		}
	})
	for i := range e.servers {
		e.open(i)
	}
	for i := range e.servers {
		e.await(i)
	}
	return e
}

// portsPerServer are for other servers, for elections (it is in the settings, and not
// used), for clients and for HTTP.
const portsPerServer = 4

// configure writes the zoo.cfg of a server and reads it, as the program would.
func (o *options) configure(dir string, i int, port []int) (config.Settings, error) {
	own := port[portsPerServer*i:]
	lines := []string{
		"dataDir=" + filepath.Join(dir, "data"),
		"clientPortAddress=127.0.0.1", fmt.Sprintf("clientPort=%d", own[2]),
		"admin.serverAddress=127.0.0.1", fmt.Sprintf("admin.serverPort=%d", own[3]),
	}
	if o.servers > 1 {
		for k := range o.servers {
			p := port[portsPerServer*k:]
			lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d;127.0.0.1:%d", k+1, p[0], p[1], p[2]))
		}
	}
	defaults := []setting{
		{"tickTime", "200"}, {"syncLimit", "25"}, // five seconds: a loaded machine is no dead server
		{"minSessionTimeout", "500"}, {"maxSessionTimeout", "60000"},
		{"maxClientCnxns", "0"}, {"4lw.commands.whitelist", "*"}, {"extendedTypesEnabled", "true"},
	}
	for _, s := range append(defaults, o.settings...) { // of two lines with one key the last one counts
		lines = append(lines, s.key+"="+s.value)
	}
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return config.Settings{}, err
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return config.Settings{}, err
	}
	environment := map[string]string{"ZK_LITE_CONFIG": file, "ZK_LITE_MYID": strconv.Itoa(i + 1)}
	s, _, err := config.Load(nil, func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	return s, err
}

// open starts a server that does not run.
func (e *Ensemble) open(i int) {
	e.tb.Helper()
	s, err := app.Open(app.Options{
		Settings: e.servers[i].settings, Version: "zklitetest", Logger: e.logger.With("server", i+1),
		Fatal: func(err error) { e.tb.Errorf("zklitetest: server %d has failed: %v", i+1, err) },
	})
	if err != nil {
		e.tb.Fatalf("zklitetest: starting server %d: %v", i+1, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers[i].running = s
}

// await waits until a server serves, or has been stopped.
func (e *Ensemble) await(i int) {
	e.tb.Helper()
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if s := e.server(i); s == nil || s.Server().Serving() {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			e.tb.Fatalf("zklitetest: server %d does not serve after %v", i+1, startTimeout)
		}
	}
}

// server is a running server, or nil.
func (e *Ensemble) server(i int) *app.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[i].running
}

// Stop stops server i if it runs. Its clients continue at the other servers, with their
// sessions. The ensemble serves as long as a majority of its servers runs.
func (e *Ensemble) Stop(i int) {
	e.tb.Helper()
	e.mu.Lock()
	s := e.servers[i].running
	e.servers[i].running = nil
	e.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.Close(); err != nil {
		e.tb.Errorf("zklitetest: stopping server %d: %v", i+1, err)
	}
}

// Restart starts server i again after Stop, with its data and at its old addresses. It
// waits until the server serves, if a majority of the servers runs.
func (e *Ensemble) Restart(i int) {
	e.tb.Helper()
	e.open(i)
	running := 0
	for k := range e.servers {
		if e.server(k) != nil {
			running++
		}
	}
	if 2*running > len(e.servers) {
		e.await(i)
	}
}

// Leader is the index of the server that leads, and -1 while none is known.
func (e *Ensemble) Leader() int {
	for i := range e.servers {
		if s := e.server(i); s != nil {
			if id := int(s.Server().Status().Leader); id == i+1 {
				return i
			}
		}
	}
	return -1
}

// Addrs are the host:port of each server for ZooKeeper clients. They stay the same
// while a server is stopped.
func (e *Ensemble) Addrs() []string {
	var list []string
	for _, s := range e.servers {
		list = append(list, s.settings.ClientListen())
	}
	return list
}

// HTTPAddrs are the host:port of each server for the HTTP API.
func (e *Ensemble) HTTPAddrs() []string {
	var list []string
	for _, s := range e.servers {
		list = append(list, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.settings.AdminPort)))
	}
	return list
}

// ConnectString names all servers, for client.Connect and other ZooKeeper clients.
func (e *Ensemble) ConnectString() string { return strings.Join(e.Addrs(), ",") }

// Option changes what Start starts.
type Option func(*options)

type options struct {
	servers  int
	settings []setting
	logger   *slog.Logger
}

type setting struct{ key, value string }

// WithServers sets the number of servers; the default is one. Three tolerate the
// failure of one.
func WithServers(n int) Option { return func(o *options) { o.servers = n } }

// WithSetting gives every server a setting by its name in zoo.cfg, as in
// docs/reference/settings.md. It replaces the default, and what this package sets: a
// tickTime of 200 ms, sessions of at least 500 ms, any number of connections, znodes
// with a time to live, and all four-letter words. Ports and directories cannot be set.
func WithSetting(key, value string) Option {
	return func(o *options) { o.settings = append(o.settings, setting{key, value}) }
}

// WithLogger sets where the servers log; the default is nowhere. Each server adds the
// attribute server, its id.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// Main is for a TestMain whose tests share their servers, which is faster than servers
// for each test: it starts them, calls use, runs the tests and stops the servers. It
// returns the exit code.
func Main(m *testing.M, use func(*Ensemble), opts ...Option) int {
	tb := new(mainTB)
	defer tb.cleanUp()
	use(Start(tb, opts...))
	code := m.Run()
	if tb.failed && code == 0 {
		return 1
	}
	return code
}

// mainTB is the testing.TB of TestMain, which has none.
type mainTB struct {
	testing.TB // nil: the methods below are all that is called
	cleanups   []func()
	failed     bool
}

func (tb *mainTB) Helper() {}

func (tb *mainTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "zklitetest")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system removes the rest
	return dir
}

func (tb *mainTB) Errorf(format string, args ...any) {
	tb.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Fatal panics: there is no test to fail yet.
func (tb *mainTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (tb *mainTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (tb *mainTB) cleanUp() {
	for _, f := range slices.Backward(tb.cleanups) {
		f()
	}
}
