package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// screen is a program on a terminal.
type screen struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	done chan struct{} // closed when nothing more comes

	mu   sync.Mutex // protects the fields below
	text string     // what has come and was not expected yet
	all  string
}

// openScreen starts the shell on a terminal.
func openScreen(t *testing.T, server, state string) *screen {
	t.Helper()
	cmd := exec.Command("zk-lite", "shell", "--server", server, "--session-timeout", "2s")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "TERM=xterm")
	return runOnScreen(t, cmd)
}

// runOnScreen starts a program on a terminal.
func runOnScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, tty: tty, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text += string(buf[:n])
			s.all += string(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return // the terminal is closed when its program has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tty.Close()
		<-s.done
		if t.Failed() {
			t.Logf("on the screen:\n%q", s.all)
		}
	})
	return s
}

func (s *screen) typeKeys(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// expect waits until something shows on the screen, behind what was expected
// before.
func (s *screen) expect(pattern string) {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	if !wait.Holds(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := want.FindStringIndex(s.text)
		if at != nil {
			s.text = s.text[at[1]:]
		}
		return at != nil
	}) {
		s.t.Fatalf("%q does not show; there is %q", pattern, s.text)
	}
}

// TestShell_Terminal types at a real terminal: the prompt, editing, completion of
// commands, flags and paths, interruption, watches, the state of the connection,
// and the history of an earlier shell.
func TestShell_Terminal(t *testing.T) {
	tier.Seconds(t)
	server := startServer(t)
	p, err := startProxy(server)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	address, state := p.listener.Addr().String(), t.TempDir()
	prompt := `\[zk 127\.0\.0\.1:\d+ \(connected\)\] `

	s := openScreen(t, address, state)
	s.expect(prompt)
	s.typeKeys("create --parents /app/alpha hello\r")
	s.expect(`/app/alpha\r*\n`)
	s.expect(prompt)
	s.typeKeys("create /app/beta\r")
	s.expect(`/app/beta\r*\n`)

	// Completion: a command, a flag, a path; a list if there are several.
	s.expect(prompt)
	s.typeKeys("ge\t\t")
	s.expect(`get  getacl`)
	s.typeKeys(" --wat\t")
	s.expect(`--watch `)
	s.typeKeys("\x03") // Ctrl-C abandons the line
	s.expect(prompt)
	s.typeKeys("get /ap\t/\t")
	s.expect(`/app/alpha  /app/beta`)
	s.typeKeys("a\t\r")
	s.expect(`hello\r*\n`) // also ends the line, although the data does not
	s.expect(prompt)

	// An error does not end it, nor does an interruption of a command.
	s.typeKeys("get /none\r")
	s.expect(`no such znode: /none`)
	s.expect(prompt)
	s.typeKeys("watch /app\r")
	s.expect(`watching /app`)
	s.typeKeys("\x03")
	s.expect(prompt)

	// A watch reports while a line is being typed.
	s.typeKeys("get -w /app/beta\r")
	s.expect(prompt)
	s.typeKeys("set /app/b")
	s.expect(`set /app/b`)
	if out, err := exec.Command("zk-lite", "set", "--server", server, "/app/beta", "x").CombinedOutput(); err != nil {
		t.Fatalf("zk-lite set failed: %v: %s", err, out)
	}
	s.expect(`WATCHER: NodeDataChanged /app/beta`)
	s.expect(prompt + `set /app/b`) // what was typed is still there
	s.typeKeys("\t y\r")
	s.expect(prompt)

	// The prompt shows the state.
	s.typeKeys("addauth digest ann:secret\r")
	s.expect(prompt)
	p.set(false)
	s.expect(`the connection is lost`)
	s.expect(`\[zk 127\.0\.0\.1:\d+ \(suspended\)\] `)
	s.expect(`the session is lost`)
	s.expect(`\(connecting\)\] |\(expired\)\] `)
	p.set(true)
	s.expect(`a new session, at 127`)
	s.expect(prompt)
	s.typeKeys("\x04") // Ctrl-D
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the shell ends with %v", err)
	}

	// The next shell knows what was typed, but no secrets.
	s = openScreen(t, address, state)
	s.expect(prompt)
	s.typeKeys("\x1b[A") // up
	s.expect(`set /app/beta y`)
	s.typeKeys("\x03")
	s.expect(prompt)
	s.typeKeys("history\r")
	s.expect(`(?s)create --parents /app/alpha hello.*get /app/alpha.*set /app/beta y`)
	s.expect(prompt)
	s.typeKeys("quit\r")
	<-s.done
	b, err := os.ReadFile(filepath.Join(state, "zk-lite", "history"))
	if err != nil || strings.Contains(string(b), "secret") {
		t.Errorf("the history is %q, error %v", b, err)
	}
}

// relay passes connections on to a server. In the first one it ends the client's side in order, as a server or a load
// balancer does that stops, when the request comes that set sees as the sixth setData.
func relay(t *testing.T, server string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for first := true; ; first = false {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				from.Close()
				continue
			}
			go func() { _, _ = io.Copy(from, to); from.Close() }()
			go func() {
				defer to.Close()
				frames := wire.NewFrameReader(from, 1<<20)
				for sets := 0; ; {
					frame, err := frames.Next()
					if err != nil {
						return
					}
					if op := wire.OpCode(binary.BigEndian.Uint32(frame[4:])); first && op == wire.OpSetData && len(frame) > 8 {
						if sets++; sets == 6 {
							return // to is closed, so the other direction ends, and then from
						}
					}
					whole := append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
					if _, err := to.Write(whole); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A piped shell whose connection was ended in order took that for the end of its input: the rest of the lines was not run,
// and the exit code was 0.
func TestRegression_Shell_EndOfAConnectionIsNotTheEndOfTheInput(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	server := startServer(t)
	zklite := func(in string, args ...string) (string, string, int) {
		cmd := exec.CommandContext(t.Context(), "zk-lite", args...)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
		_ = cmd.Run()
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	if _, errs, code := zklite("", "create", "/a", "0", "--server", server); code != 0 {
		t.Fatalf("zk-lite create failed with %d: %s", code, errs)
	}
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, "set /a %d\n", i+1)
	}
	_, errs, code := zklite(lines.String(), "shell", "--server", relay(t, server))
	if code == 0 || !strings.Contains(errs, "line 6: ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("got exit code %d and %q, want one error, of line 6", code, errs)
	}
	if out, _, _ := zklite("", "get", "/a", "--server", server); strings.TrimSpace(out) != "20" {
		t.Errorf("got %q at the end, want 20", out)
	}
}
