package main

import (
	"bytes"
	"io"
	"os"
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

// The server died, with exit code 141, of the first line that it logged after the reader of its log had ended.
func TestRegression_Server_ReaderOfTheLogEnds(t *testing.T) {
	tier.Seconds(t)
	log, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("zk-lite", "server", "--data-dir", t.TempDir(), "--client-port", "0", "--admin-server-port", "0")
	cmd.Stderr = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	in.Close()
	var text []byte
	for line := make([]byte, 4096); !bytes.Contains(text, []byte("serving clients")); {
		n, err := log.Read(line)
		if err != nil {
			t.Fatalf("%v after %s", err, text)
		}
		text = append(text, line[:n]...)
	}
	log.Close()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM} { // a line each
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
}

// On a full disk a script took a list that was cut off for a whole one.
func TestRegression_OutputCannotBeWritten_IsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	server := startServer(t)
	for _, args := range [][]string{{"ls", "/"}, {"ls", "-s", "/"}, {"stat", "/"}, {"getacl", "/"}, {"create", "/full"}, {"version"}, {"--help"}} {
		cmd := exec.CommandContext(t.Context(), "zk-lite", args...)
		cmd.Env = append(os.Environ(), "ZK_LITE_SERVER="+server)
		var errs output
		cmd.Stdout, cmd.Stderr = full, &errs
		if err := cmd.Run(); err == nil || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%v: got %v and %q, want an error about the space", args, err, errs.String())
		}
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
			t.Fatalf("the server did not start: %v\n%s", err, screen.String())
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
