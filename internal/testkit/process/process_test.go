package process

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Command{Args: []string{"sh", "-c", script}, Env: []string{"WORD=hello"},
		Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// TestProcess_EndsByItself: its exit code and its log are kept, and to stop it is no trouble.
func TestProcess_EndsByItself(t *testing.T) {
	p := start(t, "echo $WORD; exit 3")
	<-p.Ended()
	if err := p.EndedEarly(); err == nil || !strings.Contains(err.Error(), "exit status 3") || p.ExitCode() != 3 || p.Running() {
		t.Errorf("%v, exit code %d, running %v, want an end with 3", err, p.ExitCode(), p.Running())
	}
	if err := p.Stop(time.Minute); err == nil {
		t.Error("no error of a process that ended with 3")
	}
	if got := p.Tail(); got != "hello\n" {
		t.Errorf("log %q, want hello", got)
	}
}

// TestProcess_Stop: with SIGTERM, and by force where that is ignored; the end is expected.
func TestProcess_Stop(t *testing.T) {
	p := start(t, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
	wait.Until(t, "it runs", func() bool { return strings.Contains(p.Log(), "ready") })
	p.Pause()
	if err := p.Wait(50 * time.Millisecond); !errors.Is(err, ErrRunning) {
		t.Errorf("%v, want ErrRunning", err)
	}
	p.Resume()
	if err := p.Stop(time.Minute); err != nil || p.EndedEarly() != nil {
		t.Errorf("%v, %v, want an end in good order", err, p.EndedEarly())
	}
	p = start(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	wait.Until(t, "it runs", func() bool { return strings.Contains(p.Log(), "ready") })
	if err := p.Stop(50 * time.Millisecond); !errors.Is(err, ErrRunning) || p.Running() {
		t.Errorf("%v, running %v, want ErrRunning of one that was killed", err, p.Running())
	}
}

func TestStart_NoSuchProgram(t *testing.T) {
	if _, err := Start(Command{Args: []string{"no-such-program"}, Log: filepath.Join(t.TempDir(), "log")}); err == nil {
		t.Error("no error")
	}
}
