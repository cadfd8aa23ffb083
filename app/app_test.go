package app_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// options are those of a lone server on any free ports.
func options(t *testing.T, dir string) app.Options {
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	s.MyID, s.Standalone = 1, true
	s.DataDir, s.DataLogDir = dir, dir
	s.ClientPortAddress, s.ClientPort = "127.0.0.1", 0
	s.AdminAddress, s.AdminPort = "127.0.0.1", 0
	return app.Options{
		Settings: s, Version: "test", Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { t.Error(err) },
	}
}

func open(t *testing.T, o app.Options) *app.Server {
	t.Helper()
	n, err := app.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestServer_Restart_KeepsData(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := open(t, options(t, dir))
	r, err := n.Server().Do(ctx, &state.Command{
		Op: state.OpCreate, Path: "/kept", Data: []byte("x"), ACL: znode.OpenACL,
	})
	if err != nil || r.Code != znode.OK {
		t.Fatalf("creating /kept: got %v, %v, want OK", r.Code, err)
	}
	// Both ports are open, and the HTTP server reports when the server serves.
	if c, err := net.Dial("tcp", n.ClientAddr().String()); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	for ready := false; !ready; {
		resp, err := http.Get("http://" + n.HTTPAddr().String() + "/readyz")
		if err != nil || ctx.Err() != nil {
			t.Fatalf("asking /readyz: %v, %v, want an answer", err, ctx.Err())
		}
		resp.Body.Close()
		ready = resp.StatusCode == http.StatusOK
	}
	addr := n.ClientAddr().String()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the client port is open after Close")
	}

	n = open(t, options(t, dir))
	defer n.Close()
	// A sync goes through the log, so what was in it has been applied before.
	if r, err := n.Server().Do(ctx, &state.Command{Op: state.OpSync}); err != nil || r.Code != znode.OK {
		t.Fatalf("a sync: got %v, %v, want OK", r.Code, err)
	}
	n.Server().View(func(v *server.View) {
		if data, _, code := v.Tree().Get("/kept", nil); code != znode.OK || string(data) != "x" {
			t.Errorf("/kept: got %q, %v, want %q, OK", data, code, "x")
		}
	})
}

// nio.sessionlessCnxnTimeout had no effect: a connection that said nothing stayed for ten seconds.
func TestServer_SessionlessTimeout_EndsSilentConnections(t *testing.T) {
	o := options(t, t.TempDir())
	o.Settings.ZooKeeper.HandshakeTimeout = 50 * time.Millisecond
	n := open(t, o)
	defer n.Close()
	c, err := net.Dial("tcp", n.ClientAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 || time.Since(start) > 9*time.Second {
		t.Errorf("%q, %v, after %v", b, err, time.Since(start))
	}
}

// The date of the program reaches clients on both ports in the form that they can read.
func TestServer_Built_IsPrinted(t *testing.T) {
	o := options(t, t.TempDir())
	o.Built = time.Date(2026, 11, 24, 3, 16, 9, 0, time.FixedZone("", 3600))
	n := open(t, o)
	defer n.Close()
	wait.Until(t, "clients are served", n.Server().Serving)
	resp, err := http.Get("http://" + n.HTTPAddr().String() + "/commands/srvr")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	web, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for port, text := range map[string]string{"ZooKeeper": word(t, n, "srvr"), "HTTP": string(web)} {
		if !strings.Contains(text, ", built on 11/24/2026 02:16 GMT") {
			t.Errorf("%s port: %s", port, text)
		}
	}
}

// What is wrong is found before anything is touched, and named by its setting.
func TestServer_Open_PortInUse_NamesTheSetting(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for setting, change := range map[string]func(*config.Settings){
		"clientPort":       func(s *config.Settings) { s.ClientPort = port },
		"admin.serverPort": func(s *config.Settings) { s.AdminPort = port },
		"dns.port":         func(s *config.Settings) { s.DNSPort = port },
		"server.1": func(s *config.Settings) {
			s.Standalone = false
			s.Servers = []config.Server{
				{ID: 1, Host: "127.0.0.1", PeerPort: port, Role: config.Participant},
				{ID: 2, Host: "127.0.0.1", PeerPort: port + 1, Role: config.Participant},
			}
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		o := options(t, dir)
		change(&o.Settings)
		n, err := app.Open(o)
		if err == nil {
			n.Close()
			t.Errorf("%s: a port in use was accepted", setting)
			continue
		}
		if !strings.Contains(err.Error(), setting) || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("%s: %v", setting, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the data directory was touched: %v", setting, err)
		}
	}
}

// An address that this machine does not have is not the port's fault.
func TestServer_Open_NoSuchAddress_NamesTheSetting(t *testing.T) {
	for _, host := range []string{"192.0.2.1", "no name"} { // the first is for documents (RFC 5737)
		for setting, change := range map[string]func(*config.Settings){
			"clientPortAddress":   func(s *config.Settings) { s.ClientPortAddress = host },
			"admin.serverAddress": func(s *config.Settings) { s.AdminAddress = host },
			"dns.address":         func(s *config.Settings) { s.DNSAddress, s.DNSPort = host, 0 },
			"server.1": func(s *config.Settings) {
				s.Standalone = false
				s.Servers = []config.Server{
					{ID: 1, Host: host, PeerPort: 1, Role: config.Participant},
					{ID: 2, Host: "127.0.0.1", PeerPort: 2, Role: config.Participant},
				}
			},
		} {
			o := options(t, t.TempDir())
			change(&o.Settings)
			n, err := app.Open(o)
			if err == nil {
				n.Close()
				t.Errorf("%s: %q was accepted", setting, host)
				continue
			}
			if s := err.Error(); !strings.Contains(s, "given by the setting "+setting+":") ||
				!strings.Contains(s, "correct "+setting) || strings.Contains(s, "stop what uses it") {
				t.Errorf("%s: %v", setting, err)
			}
		}
	}
}

// A data directory has one server; the one that fails leaves nothing behind.
func TestServer_Open_DirectoryInUse_IsRefused(t *testing.T) {
	tier.Seconds(t)
	dir := t.TempDir()
	n := open(t, options(t, dir))
	second, err := app.Open(options(t, dir))
	if err == nil {
		second.Close()
		t.Fatal("two servers in one directory")
	}
	if !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, options(t, dir)).Close(); err != nil {
		t.Error(err)
	}
	o := options(t, dir)
	o.Settings.MyID = 2
	if n, err := app.Open(o); err == nil {
		n.Close()
		t.Error("server 2 runs on the data of server 1")
	} else if !strings.Contains(err.Error(), "belongs to server 1") {
		t.Errorf("error %v, want that the data belongs to server 1", err)
	}
	if err := open(t, options(t, dir)).Close(); err != nil { // the directory is free again
		t.Error(err)
	}
}

// word asks a node's ZooKeeper port.
func word(t *testing.T, n *app.Server, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", n.ClientAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("reading the answer to %q: %v", text, err)
	}
	return string(b)
}

// leading is a server that leads an ensemble: the other one has no vote and is not there.
func leading(t *testing.T) *app.Server {
	taken := ports.Take(t, 2)
	o := options(t, t.TempDir())
	o.Settings.Standalone = false
	o.Settings.ZooKeeper.Words = []string{"*"}
	o.Settings.Servers = []config.Server{
		{ID: 1, Host: "127.0.0.1", PeerPort: taken[0], Role: config.Participant},
		{ID: 2, Host: "127.0.0.1", PeerPort: taken[1], Role: config.Observer},
	}
	n := open(t, o)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	limit := time.After(time.Minute)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !n.Server().Serving() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatal("no clients are served")
		}
	}
	return n
}

// proposalSizes are those that srvr prints.
func proposalSizes(t *testing.T, n *app.Server) (last, smallest, largest int) {
	t.Helper()
	const line = "Proposal sizes last/min/max: "
	out := word(t, n, "srvr")
	_, sizes, found := strings.Cut(out, line)
	if !found {
		t.Fatalf("srvr: got %q, want a line %q", out, line)
	}
	if _, err := fmt.Sscanf(sizes, "%d/%d/%d", &last, &smallest, &largest); err != nil {
		t.Fatalf("srvr: got %q, want three sizes: %v", sizes, err)
	}
	return last, smallest, largest
}

func TestServer_LeaderMetrics_AreTakenAndReset(t *testing.T) {
	n := leading(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, bytes := range []int{5000, 0} {
		r, err := n.Server().Do(ctx, &state.Command{
			Op: state.OpCreate, Path: fmt.Sprint("/n", i), Data: make([]byte, bytes), ACL: znode.OpenACL,
		})
		if err != nil || r.Code != znode.OK {
			t.Fatalf("creating /n%d: got %v, %v, want OK", i, r.Code, err)
		}
	}
	// What the server tells its ensemble at the start may come in between or behind.
	last, smallest, largest := proposalSizes(t, n)
	if last <= 0 || smallest <= 0 || smallest > last || last > largest ||
		smallest > 1000 || largest < 5000 || largest > 6000 {
		t.Errorf("proposals of %d, %d, %d bytes", last, smallest, largest)
	}
	for _, key := range []string{
		"leader_uptime", "last_proposal_size", "min_proposal_size", "max_proposal_size",
	} {
		out := word(t, n, "mntr")
		_, value, _ := strings.Cut(out, "\nzk_"+key+"\t")
		value, _, _ = strings.Cut(value, "\n")
		if v, err := strconv.Atoi(value); err != nil || v < 0 || key == "max_proposal_size" && v < 5000 {
			t.Errorf("%s is %q in\n%s", key, value, out)
		}
	}
	word(t, n, "srst")
	if _, _, largest := proposalSizes(t, n); largest >= 5000 {
		t.Errorf("after srst the largest has %d bytes", largest)
	}
}

// A half-sent HTTP request used up the time that a server has to stop: it ended with an error, and clients of the
// ZooKeeper port did not learn what had become of their writes.
func TestRegression_Close_HalfSentHTTPRequest(t *testing.T) {
	tier.Seconds(t)
	n := open(t, options(t, t.TempDir()))
	wait.Until(t, "the server serves", n.Server().Serving)
	half, err := net.Dial("tcp", n.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	fmt.Fprint(half, "PUT /v1/znodes/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")

	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var written atomic.Int64
	for i := range 4 {
		c, err := client.Connect(ctx, n.ClientAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		path := fmt.Sprint("/", i)
		if _, _, err := c.Create(ctx, path, nil, client.Persistent); err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			for {
				if _, err := c.Set(ctx, path, nil, client.AnyVersion); err != nil {
					if errors.Is(err, client.ErrOutcomeUnknown) {
						t.Errorf("a write that was sent before the server stopped: %v", err)
					}
					return
				}
				written.Add(1)
			}
		})
	}
	wait.Until(t, "they write", func() bool { return written.Load() > 100 })
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	stop()
	writers.Wait()
}
