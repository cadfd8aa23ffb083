//go:build unix

package supervise

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRun_Codes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		fail bool
	}{
		{[]string{"true"}, 0, false},
		{[]string{"sh", "-c", "exit 7"}, 7, false},
		{[]string{"sh", "-c", "kill -TERM $$"}, 143, false},
		{[]string{"no-such-program"}, CodeNotFound, true},
		{[]string{t.TempDir()}, CodeNotExecutable, true},
	} {
		code, err := Run(t.Context(), &Command{Args: c.args})
		if code != c.code || (err != nil) != c.fail {
			t.Errorf("%q: code %d, error %v; want %d, error %v", c.args, code, err, c.code, c.fail)
		}
	}
}

// run starts a script that writes "up" into a file when it is ready, then ends its right to run, and returns its code
// and its output.
func run(t *testing.T, script string, c Command) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for tick := time.Tick(time.Millisecond); ; <-tick {
			if b, _ := os.ReadFile(file); len(b) > 0 || ctx.Err() != nil {
				cancel()
				return
			}
		}
	}()
	c.Args = []string{"sh", "-c", script, "sh", file}
	code, err := Run(ctx, &c)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(file)
	return code, string(b)
}

func TestRun_ContextEnds_Terminates(t *testing.T) {
	code, out := run(t, `trap 'echo bye >> $1; exit 3' TERM; echo up > $1; while :; do sleep 0.01; done`,
		Command{Grace: time.Minute, OwnGroup: true})
	if code != 3 || !strings.Contains(out, "bye") {
		t.Errorf("code %d, output %q", code, out)
	}
}

func TestRun_ContextEnds_KillsAfterTheGrace(t *testing.T) {
	begin := time.Now()
	code, _ := run(t, `trap '' TERM; echo up > $1; while :; do sleep 0.01; done`,
		Command{Grace: 50 * time.Millisecond, OwnGroup: true})
	if code != 137 || time.Since(begin) > 20*time.Second {
		t.Errorf("code %d after %v", code, time.Since(begin))
	}
}

// What a command leaves behind in its group is killed with NoRest, and lives on without it.
func TestRun_NoRest(t *testing.T) {
	for _, noRest := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		code, err := Run(t.Context(), &Command{
			Args: []string{"sh", "-c", "sleep 600 & echo $!"}, OwnGroup: true, NoRest: noRest, Files: [3]*os.File{nil, w, w},
		})
		w.Close()
		if code != 0 || err != nil {
			t.Fatalf("code %d, error %v; want 0, none", code, err)
		}
		limit := time.Minute // the end of the pipe comes with that of sleep
		if !noRest {
			limit = 100 * time.Millisecond
		}
		if err := r.SetReadDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(r)
		if ended := err == nil; ended != noRest {
			t.Errorf("NoRest is %t: the child has ended: %t (%v)", noRest, ended, err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(said))); err != nil {
			t.Errorf("the command said %q", said)
		} else if !noRest {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
