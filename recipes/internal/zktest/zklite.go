//go:build !zookeeper

package zktest

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
)

// process is a zk-lite server in this process.
type process struct{ *server }

type server struct {
	settings config.Settings
	logger   *slog.Logger
	node     *app.Server // nil while stopped
}

func newProcesses(tb TB, n int) []process {
	tb.Helper()
	port := ports.Take(tb, 3*n)
	var servers []config.Server
	for i := range n {
		servers = append(servers, config.Server{
			ID: i + 1, Host: "127.0.0.1", PeerPort: port[3*i], ElectionPort: port[3*i+1],
			Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: port[3*i+2],
		})
	}
	var logs io.Writer = io.Discard
	if os.Getenv("ZKTEST_LOG") != "" {
		logs = os.Stderr
	}
	var all []process
	dir := tb.TempDir()
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
		s.FourLetterWords = []string{"*"}
		s.MaxClientCnxns = 0
		s.TickTime = 200 * time.Millisecond
		s.SyncLimit = 25
		s.MinSessionTimeout, s.MaxSessionTimeout = time.Second, time.Minute
		s.Standalone = n == 1
		if n > 1 {
			s.Servers = servers
		}
		all = append(all, process{&server{
			settings: s, logger: slog.New(slog.NewTextHandler(logs, nil)).With("server", i+1),
		}})
	}
	return all
}

func (s *server) address() string { return s.settings.ClientListen() }

// Start starts the server, again after Stop. It does not wait until it serves.
func (s *server) Start(tb TB) {
	tb.Helper()
	n, err := app.Open(app.Options{
		Settings: s.settings, Version: "test", Logger: s.logger,
		Fatal: func(err error) { s.logger.Error("fatal", "error", err) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.node = n
}

// Stop stops the server, if it runs.
func (s *server) Stop() {
	if s.node == nil {
		return
	}
	if err := s.node.Close(); err != nil {
		s.logger.Error("closing", "error", err)
	}
	s.node = nil
}
