//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// packaged is a file of the packages.
func packaged(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// set returns a configuration with some keys changed or added.
func set(cfg string, pairs ...string) string {
	for _, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		cfg = regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(key)+`=.*\n`).ReplaceAllString(cfg, "") + pair + "\n"
	}
	return cfg
}

// execStart is the command of the unit, with another configuration.
func execStart(t *testing.T, cfg string) *exec.Cmd {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(.*)$`).FindStringSubmatch(packaged(t, "zk-lite.service"))
	if m == nil {
		t.Fatal("the unit has no ExecStart=/usr/bin/...")
	}
	const installed = "/etc/zk-lite/zoo.cfg"
	args := strings.Fields(m[1])
	at := slices.Index(args, installed)
	if at < 0 {
		t.Fatalf("%v does not name %s", args, installed)
	}
	args[at] = filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(args[at], []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command(args[0], args[1:]...)
}

// serviceManager listens as systemd does.
type serviceManager struct {
	t    *testing.T
	conn *net.UnixConn
	all  []string
}

func newServiceManager(t *testing.T, name string) *serviceManager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &serviceManager{t: t, conn: conn}
}

// await reads until a line has come that begins so.
func (m *serviceManager) await(prefix string) {
	m.t.Helper()
	b := make([]byte, 4096)
	m.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		n, err := m.conn.Read(b)
		if err != nil {
			m.t.Fatalf("waiting for %s: %v, after %q", prefix, err, m.all)
		}
		lines := strings.Split(string(b[:n]), "\n")
		m.all = append(m.all, lines...)
		if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) }) {
			return
		}
	}
}

// The packages' unit, run as systemd would, with the packages' configuration.
func TestService_TellsItsManager(t *testing.T) {
	tier.Seconds(t)
	for kind, name := range map[string]string{
		"path": filepath.Join(t.TempDir(), "notify"), "abstract": fmt.Sprintf("@zk-lite-test-%d", os.Getpid()),
	} {
		t.Run(kind, func(t *testing.T) {
			m := newServiceManager(t, name)
			var log output
			cmd := execStart(t, set(packaged(t, "zoo.cfg"), "dataDir="+t.TempDir(), "clientPort=0", "admin.serverPort=0"))
			cmd.Stderr = &log
			cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=600000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			m.await("STATUS=serving clients as standalone")
			if !slices.Contains(m.all, "READY=1") {
				t.Errorf("it serves, and is not ready: %q", m.all)
			}
			m.await("WATCHDOG=1")
			m.await("WATCHDOG=1")
			_ = cmd.Process.Signal(syscall.SIGTERM)
			m.await("STOPPING=1")
			if err := cmd.Wait(); err != nil {
				t.Errorf("the server failed: %v\n%s", err, log.String())
			}
		})
	}
}

// That the others are missing is for an operator to see.
func TestService_WithoutTheOthers_SaysSo(t *testing.T) {
	tier.Seconds(t)
	m := newServiceManager(t, filepath.Join(t.TempDir(), "notify"))
	settings := []string{"dataDir=" + t.TempDir(), "clientPort=0", "admin.serverPort=0"}
	for i, port := range ports.Take(t, 3) {
		settings = append(settings, fmt.Sprintf("server.%d=127.0.0.1:%d:3888", i+1, port))
	}
	cmd := execStart(t, set(packaged(t, "zoo.cfg"), settings...))
	cmd.Args = append(cmd.Args, "--myid", "1")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+m.conn.LocalAddr().String())
	var log output
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	m.await("STATUS=not serving clients")
	if slices.Contains(m.all, "READY=1") {
		t.Errorf("ready at once: %q", m.all)
	}
}

// A manager that cannot be reached would kill the server later, for a reason that its log does not have.
func TestService_NoManager_Refuses(t *testing.T) {
	cmd := exec.Command("zk-lite", "server", "--data-dir", t.TempDir(), "--client-port", "0")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET=/nowhere/notify")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `NOTIFY_SOCKET="/nowhere/notify"`) {
		t.Errorf("got %q, %v, want a refusal that names the socket", out, err)
	}
}
