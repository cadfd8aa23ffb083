//go:build unix && !linux

package supervise

import (
	"os/exec"
	"syscall"
)

func prepare(cmd *exec.Cmd, group bool) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group} }
