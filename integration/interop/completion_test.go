//go:build interop

package interop_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// terminal is a shell on a terminal.
type terminal struct {
	t    *testing.T
	tty  *os.File
	done chan struct{} // closed when nothing more comes

	mu   sync.Mutex // protects the field below
	text string     // all that has come
}

// openShell starts a shell with only zk-lite's completion.
func openShell(t *testing.T, server string, begin string, args ...string) *terminal {
	t.Helper()
	home := t.TempDir()
	cluster.NeedTool(t, "/usr/bin/"+args[0], "bash bash-completion zsh fish")
	cluster.NeedTool(t, "/usr/share/bash-completion/bash_completion", "bash bash-completion zsh fish")
	c := exec.Command(args[0], args[1:]...)
	c.Dir = home
	c.Env = []string{
		"PATH=" + filepath.Dir(os.Getenv(cluster.BinaryVariable)) + ":/usr/local/bin:/usr/bin:/bin",
		"HOME=" + home, "TERM=xterm", "LANG=C.UTF-8", "ZK_LITE_SERVER=" + server,
	}
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 160})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{t: t, tty: tty, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			s.mu.Lock()
			s.text += string(b[:n])
			s.mu.Unlock()
			if err != nil {
				return // the terminal is closed when its program has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		tty.Close()
		<-s.done
		if t.Failed() {
			t.Logf("on the screen:\n%q", s.text)
		}
	})
	// The quotes are in the input, and not in the output.
	s.typeAndSee(begin+"; echo rea''dy\r", "ready")
	return s
}

// typeAndSee types, and waits until something is printed that was not there before. After a while it types again: TAB
// completes nothing if the server takes more than a second to answer.
func (s *terminal) typeAndSee(keys, want string) {
	s.t.Helper()
	const times = 6
	s.mu.Lock()
	before := strings.Count(s.text, want)
	s.mu.Unlock()
	var err error
	for range times {
		if _, err := s.tty.WriteString(keys); err != nil {
			s.t.Fatal(err)
		}
		what := fmt.Sprintf("%q on the screen after typing %q", want, keys)
		if err = wait.For(s.t.Context(), what, wait.Patience/times, func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if strings.Count(s.text, want) <= before {
				return errors.New("it does not show")
			}
			return nil
		}); err == nil {
			return
		}
	}
	s.t.Fatal(err)
}

// TestCompletion_RealShells presses TAB in the shells themselves. The input makes sense only if it is completed: each
// line ends with the output of the command.
func TestCompletion_RealShells(t *testing.T) {
	e := cluster.Start(t, 1, cluster.Options{})
	binary := os.Getenv(cluster.BinaryVariable)
	if name := filepath.Base(binary); name != "zk-lite" {
		t.Fatalf("%s=%s: the completion is that of a program called zk-lite", cluster.BinaryVariable, binary)
	}
	create := exec.Command(binary, "create", "--parents", "--server", e.ConnectString(),
		"/app/alpha-and-more", "this-is-its-data")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("zk-lite create: %v: %s", err, out)
	}
	for _, shell := range []struct {
		begin string
		args  []string
	}{
		{". /usr/share/bash-completion/bash_completion; . <(zk-lite completion bash)",
			[]string{"bash", "--norc", "--noprofile", "-i"}},
		{"autoload -U compinit; compinit -u -D; . <(zk-lite completion zsh)", []string{"zsh", "-f", "-i"}},
		{"zk-lite completion fish | source", []string{"fish", "--no-config", "--private"}},
	} {
		t.Run(shell.args[0], func(t *testing.T) {
			s := openShell(t, e.ConnectString(), shell.begin, shell.args...)
			// A path, one level after the other.
			s.typeAndSee("zk-lite get /ap\t/al\t\r", "this-is-its-data")
			// A flag.
			s.typeAndSee("zk-lite ls --recu\t /app\r", "\n/app/alpha-and-more")
			// A command below another.
			s.typeAndSee("zk-lite membe\tlis\t--help\r", "Show the servers of the ensemble")
			// The values of a flag.
			s.typeAndSee("zk-lite stat /app/alpha-and-more -o js\t\r", `"dataLength":16`)
		})
	}
}
