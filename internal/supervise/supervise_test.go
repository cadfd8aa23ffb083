//go:build unix

package supervise

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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
