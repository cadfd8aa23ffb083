// Package process runs the programs that tests and benchmarks need beside themselves: it starts, pauses and ends
// them, and keeps what they print. It knows nothing of them.
//
// # Concurrency
//
// Each process has a goroutine that waits for its end. The methods of a Process are safe for concurrent use.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// tailBytes is how much of a log is shown after a failure.
const tailBytes = 6 << 10

// ErrRunning reports that a process has not ended in time.
var ErrRunning = errors.New("the process has not ended")

// Command describes the program to run.
type Command struct {
	Args []string
	Dir  string   // "": this process's
	Env  []string // added to this process's environment
	Log  string   // the file to which output is appended
	Disk Disk     // nil: the machine's own, as it is
}

// Disk starts a command with another disk than the machine's; package slowdisk has one.
type Disk interface{ Start(c *exec.Cmd) error }

// Process is a program that was started.
type Process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when err is set
	err   error

	mu  sync.Mutex // protects the field below
	due bool       // a caller has ended it, or has waited for its end
}

// Start starts a command. The process has a group of its own, so that the terminal's Ctrl-C does not reach it; should
// this process be killed, the kernel kills it, too.
func Start(c Command) (*Process, error) {
	out, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", filepath.Base(c.Args[0]), err)
	}
	defer out.Close() // the process has its own copy
	p := &Process{cmd: exec.Command(c.Args[0], c.Args[1:]...), log: c.Log, ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.Dir, out, out
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.Disk != nil {
		err = c.Disk.Start(p.cmd)
	} else {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Args[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID is the number that the operating system has given it.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the process, paused or not, has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait waits for the end. Its error is that of the process, nil for the exit code 0, and ErrRunning after patience.
func (p *Process) Wait(patience time.Duration) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-p.ended:
		p.expect()
		return p.err
	case <-limit.C:
		return fmt.Errorf("%w after %v", ErrRunning, patience)
	}
}

// ExitCode is that of a process that has ended, -1 if a signal has ended it.
func (p *Process) ExitCode() int {
	<-p.ended
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal. A process that has ended is no error: Ended reports it.
func (p *Process) Signal(s syscall.Signal) {
	if s == syscall.SIGKILL || s == syscall.SIGTERM {
		p.expect()
	}
	_ = p.cmd.Process.Signal(s)
}

// Kill ends the process with SIGKILL, paused or not, and waits for that.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Stop ends the process with SIGTERM and returns its error as Wait does. One that runs after patience is killed.
func (p *Process) Stop(patience time.Duration) error {
	p.Signal(syscall.SIGTERM)
	err := p.Wait(patience)
	if errors.Is(err, ErrRunning) {
		p.Kill()
	}
	return err
}

// Pause stops the process where it is (SIGSTOP): its connections stay open, and it answers nothing.
func (p *Process) Pause() { p.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// expect notes that the end is no surprise.
func (p *Process) expect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = true
}

// EndedEarly returns an error if the process has ended of its own accord and no one has waited
// for that.
func (p *Process) EndedEarly() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due || p.Running() {
		return nil
	}
	return fmt.Errorf("it has ended by itself: %v", p.cmd.ProcessState)
}

// Log is everything that processes with this log have printed.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(text)
}

// LogFile is the name of the file of Log.
func (p *Process) LogFile() string { return p.log }

// Tail is the end of Log, for messages.
func (p *Process) Tail() string {
	text := p.Log()
	return text[max(0, len(text)-tailBytes):]
}
