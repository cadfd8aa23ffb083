package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// output collects what a program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// SIGHUP, which logrotate's scripts and `systemctl reload` send, was the death of the server, with no
// line in its log.
func TestServer_SIGHUP_HasNoEffect(t *testing.T) {
	tier.Seconds(t)
	for name, args := range map[string][]string{
		"server": {"--data-dir", t.TempDir(), "--client-port", "0", "--admin-server-port", "0"},
		"dev":    {"--data-dir", t.TempDir(), "--client-port", "0", "--http-port", "0", "--servers", "1", "--verbose"},
	} {
		t.Run(name, func(t *testing.T) {
			var log output
			cmd := exec.Command("zk-lite", append([]string{name}, args...)...)
			cmd.Stderr = &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			for _, step := range []struct {
				signal syscall.Signal
				line   string
			}{{0, "msg=starting"}, {syscall.SIGHUP, "SIGHUP has no effect"}, {syscall.SIGTERM, "msg=stopped"}} {
				if err := cmd.Process.Signal(step.signal); err != nil {
					t.Fatal(err)
				}
				if !wait.Holds(func() bool { return strings.Contains(log.String(), step.line) }) {
					t.Fatalf("no line has %q:\n%s", step.line, log.String())
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServer_OnWindows_SaysThatItRunsNone(t *testing.T) {
	for system, want := range map[string]bool{"linux": true, "darwin": true, "windows": false} {
		if err := runsServers(system); (err == nil) != want {
			t.Errorf("%s: %v", system, err)
		}
	}
}

// A server that was started by hand does not outlive its terminal.
func TestServer_TerminalGone_Stops(t *testing.T) {
	tier.Seconds(t)
	cmd := exec.Command("zk-lite", "server", "--data-dir", t.TempDir(), "--client-port", "0", "--admin-server-port", "0")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var screen output
	read := make([]byte, 1024)
	for !strings.Contains(screen.String(), "msg=starting") {
		n, err := tty.Read(read)
		if err != nil {
			t.Fatalf("%v\n%s", err, screen.String())
		}
		_, _ = screen.Write(read[:n])
	}
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// dev printed nothing for a second and more.
func TestDev_SaysWhatItDoes(t *testing.T) {
	tier.Seconds(t)
	cmd := exec.Command("zk-lite", "dev", "--data-dir", t.TempDir(), "--client-port", "0", "--http-port", "0", "--servers", "1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	first := make([]byte, len("starting an ensemble of 1"))
	if _, err := io.ReadFull(out, first); err != nil || string(first) != "starting an ensemble of 1" {
		t.Errorf("the first line begins with %q, %v", first, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
