//go:build unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// send sends a signal to a command, or to its process group. That it has ended
// meanwhile is no error.
func send(cmd *exec.Cmd, group bool, s syscall.Signal) {
	if group {
		_ = syscall.Kill(-cmd.Process.Pid, s)
		return
	}
	_ = cmd.Process.Signal(s)
}

func terminate(cmd *exec.Cmd, group bool) { send(cmd, group, syscall.SIGTERM) }
func kill(cmd *exec.Cmd, group bool)      { send(cmd, group, syscall.SIGKILL) }

func signalOf(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
