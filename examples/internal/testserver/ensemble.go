package testserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// Ensemble is a number of servers in this process. It ends with the test.
type Ensemble struct{ *zklitetest.Ensemble }

// Start starts n servers, and waits until they serve.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	return &Ensemble{zklitetest.Start(tb, zklitetest.WithServers(n))}
}

// settings are those of three servers that are processes of their own.
func settings(tb testing.TB) (all []config.Settings, servers string) {
	tb.Helper()
	const n = 3
	port, dir := ports.Take(tb, 3*n), tb.TempDir()
	var members []config.Server
	var addresses []string
	for i := range n {
		members = append(members, config.Server{
			ID: i + 1, Host: "127.0.0.1", PeerPort: port[3*i], ElectionPort: port[3*i+1],
			Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: port[3*i+2],
		})
	}
	for i := range n {
		s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
		if err != nil {
			tb.Fatal(err)
		}
		s.MyID, s.Standalone, s.Servers = i+1, false, members
		s.DataDir = filepath.Join(dir, fmt.Sprintf("server-%d", i+1))
		s.DataLogDir = s.DataDir
		s.ClientPortAddress, s.ClientPort = "127.0.0.1", members[i].ClientPort
		s.AdminEnabled = false
		s.MaxClientCnxns = 0 // all clients of a test have one address
		s.TickTime = 100 * time.Millisecond
		s.SyncLimit = 50 // five seconds: a loaded machine is no dead server
		s.MinSessionTimeout, s.MaxSessionTimeout = SessionTimeout, time.Minute
		all, addresses = append(all, s), append(addresses, s.ClientListen())
	}
	return all, strings.Join(addresses, ",")
}
