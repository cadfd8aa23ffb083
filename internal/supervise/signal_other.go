//go:build !unix

package supervise

import (
	"os"
	"os/exec"
)

func prepare(*exec.Cmd, bool) {}

// terminate kills: there is no signal that asks.
func terminate(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
func kill(cmd *exec.Cmd, _ bool)      { _ = cmd.Process.Kill() }

func signalOf(*os.ProcessState) int { return 0 }
