package testserver

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
)

// Ensemble is a number of servers that belong together. It ends with the test.
type Ensemble struct {
	settings []config.Settings
	nodes    []*app.Server // nil while stopped
}

// Start starts n servers. They serve when a client has connected.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	e := configure(tb, n)
	for i := range n {
		e.Restart(tb, i)
	}
	tb.Cleanup(func() {
		for i := range e.nodes {
			e.Stop(tb, i)
		}
	})
	return e
}

// configure makes the settings of n servers, three ports each.
func configure(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	port := ports.Take(tb, 3*n)
	e, dir := &Ensemble{nodes: make([]*app.Server, n)}, tb.TempDir()
	var servers []config.Server
	for i := range n {
		servers = append(servers, config.Server{
			ID: i + 1, Host: "127.0.0.1", PeerPort: port[3*i], ElectionPort: port[3*i+1],
			Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: port[3*i+2],
		})
	}
	for i := range n {
		s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
		if err != nil {
			tb.Fatal(err)
		}
		s.MyID = i + 1
		s.DataDir = filepath.Join(dir, fmt.Sprintf("server-%d", i+1))
		s.DataLogDir = s.DataDir
		s.ClientPortAddress, s.ClientPort = "127.0.0.1", servers[i].ClientPort
		s.AdminEnabled = false
		s.MaxClientCnxns = 0 // all clients of a test have one address
		s.TickTime = 100 * time.Millisecond
		s.SyncLimit = 50 // five seconds: a loaded machine is no dead server
		s.MinSessionTimeout, s.MaxSessionTimeout = SessionTimeout, time.Minute
		if s.Standalone = n == 1; !s.Standalone {
			s.Servers = servers
		}
		e.settings = append(e.settings, s)
	}
	return e
}

// Restart starts a server again after Stop.
func (e *Ensemble) Restart(tb testing.TB, i int) {
	tb.Helper()
	n, err := app.Open(app.Options{
		Settings: e.settings[i], Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { tb.Errorf("server %d has failed: %v", i+1, err) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	e.nodes[i] = n
}

// Stop stops a server, if it runs. Its clients go to the others.
func (e *Ensemble) Stop(tb testing.TB, i int) {
	tb.Helper()
	if e.nodes[i] == nil {
		return
	}
	if err := e.nodes[i].Close(); err != nil {
		tb.Errorf("stopping server %d: %v", i+1, err)
	}
	e.nodes[i] = nil
}

// ConnectString names all servers.
func (e *Ensemble) ConnectString() string {
	var list []string
	for _, s := range e.settings {
		list = append(list, s.ClientListen())
	}
	return strings.Join(list, ",")
}
