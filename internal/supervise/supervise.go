// Package supervise runs a command until it ends, or until a context ends and the command
// must end. It does not depend on locks.
//
// # Concurrency
//
// Run starts one goroutine, which starts the command and waits for it, and
// returns when that has ended.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Exit codes of shells: for commands that could not be started, and the base for those that a
// signal ended.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
	codeSignal        = 128
)

// Command describes the command to run.
type Command struct {
	Args  []string // the program and its arguments
	Env   []string // added to the environment
	Grace time.Duration
	// OwnGroup runs the command in a process group of its own, so that signals also reach its
	// children. A command that uses the terminal must stay in the terminal's group.
	OwnGroup bool
	// NoRest kills what is left of its own group when it has ended, whether or not ctx has.
	NoRest bool
	// Files are standard input, output and error; nil is nothing.
	Files [3]*os.File
}

// Run runs a command and returns its exit code: 128 and the number of the signal if one ended
// it, 127 or 126 with an error if it could not be started. When ctx ends, the command gets
// SIGTERM, and SIGKILL after the grace. If it has a process group of its own, its remaining
// processes are then killed when it has ended.
//
// On Linux the command is killed if this process dies.
func Run(ctx context.Context, c *Command) (int, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Files[0], c.Files[1], c.Files[2]
	prepare(cmd, c.OwnGroup)
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The death of the parent, as the kernel understands it, is that of the
		// thread that has started the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		code := CodeNotExecutable
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = CodeNotFound
		}
		return code, fmt.Errorf("starting the command: %w", err)
	}
	select {
	case err := <-ended:
		if c.NoRest {
			kill(cmd, c.OwnGroup)
		}
		return exitCode(cmd, err)
	case <-ctx.Done():
	}
	terminate(cmd, c.OwnGroup)
	grace := time.NewTimer(c.Grace)
	defer grace.Stop()
	var err error
	select {
	case err = <-ended:
		if c.OwnGroup {
			kill(cmd, true) // its remaining children
		}
	case <-grace.C:
		kill(cmd, c.OwnGroup)
		err = <-ended
	}
	return exitCode(cmd, err)
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return CodeNotExecutable, fmt.Errorf("waiting for the command: %w", err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return codeSignal + signalOf(cmd.ProcessState), nil
}
