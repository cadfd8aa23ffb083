package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// stopTime is how long a server may take to end before it is killed.
const stopTime = 20 * time.Second

// Process is one server.
type Process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// spawn starts a server with its output in dir/log. Its syncs take as long as disk says; nil: as
// long as they take.
func spawn(dir string, disk *slowdisk.Disk, env []string, args ...string) (*Process, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	p := &Process{log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	defer out.Close() // the process has its own copy
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.Env = append(os.Environ(), env...)
	// A group of its own, so that Ctrl-C ends the comparison in good order; and
	// should that be killed, the kernel ends the servers.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	start := p.cmd.Start
	if disk != nil {
		start = func() error { return disk.Start(p.cmd) }
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	go func() {
		_ = p.cmd.Wait() // whoever waits for it looks at the log
		close(p.ended)
	}()
	return p, nil
}

// PID is that of the operating system.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the file that holds its output.
func (p *Process) Log() string { return p.log }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the process with SIGKILL and waits for that.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // one that has ended is no error
	<-p.ended
}

// Stop ends the process and waits for that. One that has ended is no error.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// Tail is the end of the log, for messages.
func (p *Process) Tail() string {
	const bytes = 2000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-bytes):])
}
