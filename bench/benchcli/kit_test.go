package benchcli

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"

	"github.com/spf13/pflag"
)

// start runs n zk-lite servers in this process and waits until they serve.
// stop ends one of them earlier than the test.
func start(t *testing.T, n int) (hosts []string, stop func(i int)) {
	t.Helper()
	hosts, _, stop = startWith(t, n, false)
	return hosts, stop
}

// startWith is start, with the HTTP ports open if asked for.
func startWith(t *testing.T, n int, http bool) (hosts, web []string, stop func(i int)) {
	t.Helper()
	var members []config.Server
	var nodes []*app.Server
	stopped := make([]sync.Once, n)
	stop = func(i int) {
		stopped[i].Do(func() {
			if err := nodes[i].Close(); err != nil {
				t.Error("closing a server:", err)
			}
		})
	}
	for id, port := 1, ports.Take(t, 4*n); id <= n; id++ {
		at := 4 * (id - 1)
		web = append(web, fmt.Sprintf("127.0.0.1:%d", port[at+3]))
		members = append(members, config.Server{ID: id, Host: "127.0.0.1", PeerPort: port[at],
			ElectionPort: port[at+1], Role: config.Participant, ClientHost: "127.0.0.1",
			ClientPort: port[at+2]})
	}
	for _, m := range members {
		s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		s.MyID, s.DataDir = m.ID, filepath.Join(t.TempDir(), "data")
		s.DataLogDir = s.DataDir
		s.ClientPortAddress, s.ClientPort = "127.0.0.1", m.ClientPort
		s.AdminEnabled, s.ZooKeeper.MaxPerAddress = http, 0
		if http {
			_, port, _ := net.SplitHostPort(web[m.ID-1])
			s.AdminAddress = "127.0.0.1"
			s.AdminPort, _ = strconv.Atoi(port)
		}
		s.ZooKeeper.Words = []string{"*"}
		if s.Standalone = n == 1; n > 1 {
			s.Servers = members
		}
		opened, err := app.Open(app.Options{Settings: s, Version: "test",
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Fatal:  func(err error) { t.Error("a server has given up:", err) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(m.ID - 1) })
		nodes, hosts = append(nodes, opened), append(hosts, fmt.Sprintf("127.0.0.1:%d", m.ClientPort))
	}
	for _, n := range nodes {
		serving(t, n)
	}
	return hosts, web, stop
}

func serving(t *testing.T, n *app.Server) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !n.Server().Serving() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("a server does not serve")
		}
	}
}

// bench runs the command with arguments and returns what it prints.
func bench(t *testing.T, hosts []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, progress bytes.Buffer
	c := Command(plain{})
	c.SetArgs(append(args, "--server", strings.Join(hosts, ",")))
	c.SetOut(&out)
	c.SetErr(&progress)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(ctx)
	return out.String(), progress.String(), err
}

// znodes is how many znodes a server has.
func znodes(t *testing.T, host string) string {
	t.Helper()
	var count string
	wait.Succeeds(t, "the count of znodes", func() error { // on a busy machine a server may not serve for a moment
		text, err := load.FourLetter(t.Context(), host, "mntr")
		_, rest, ok := strings.Cut(text, "zk_znode_count\t")
		if err != nil || !ok {
			return fmt.Errorf("%q, %w", text, err)
		}
		count, _, _ = strings.Cut(rest, "\n")
		return nil
	})
	return count
}

// plain has no flags for TLS.
type plain struct{}

func (plain) Bind(*pflag.FlagSet)          {}
func (plain) Config() (*tls.Config, error) { return nil, nil }
