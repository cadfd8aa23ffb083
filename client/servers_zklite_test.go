//go:build !zookeeper

package client_test

import (
	"log/slog"
	"testing"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
)

// startServer starts a zk-lite server in this process.
func startServer(tb testing.TB) (servers string) {
	tb.Helper()
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		tb.Fatal(err)
	}
	s.DataDir, s.DataLogDir = tb.TempDir(), tb.TempDir()
	s.ClientPortAddress, s.ClientPort = "127.0.0.1", 0
	s.AdminEnabled = false
	n, err := app.Open(app.Options{
		Settings: s, Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { tb.Errorf("the server has failed: %v", err) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := n.Close(); err != nil {
			tb.Errorf("closing the server: %v", err)
		}
	})
	return n.ClientAddr().String()
}
