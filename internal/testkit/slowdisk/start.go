package slowdisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// variable is set in a process that is to install the filter: the number of the socket on which the
// descriptor goes back, and whether disks can be filled.
const variable = "ZK_LITE_SLOW_SYNCS"

// init turns a process that Start has started into the requested program. It is here, and not for
// every main and TestMain to call, because one that forgot it would run something else instead.
func init() { //nolint:gochecknoinits // see above
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	fmt.Fprintln(os.Stderr, "slowdisk:", become(text))
	os.Exit(127)
}

// become returns only with an error.
func become(text string) error {
	var socket int
	var fillable bool
	if _, err := fmt.Sscan(text, &socket, &fillable); err != nil || len(os.Args) < 3 {
		return fmt.Errorf("%s is set to %q: it is not for people", variable, text)
	}
	calls := rules
	if fillable {
		calls = withWrites
	}
	runtime.LockOSThread() // the filter is this thread's, which becomes the program's first
	unix.CloseOnExec(socket)
	listener, err := install(calls)
	if err != nil {
		_, _ = unix.Write(socket, []byte(err.Error())) // if there is no reader, the log has it
		return err
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("handing the descriptor over: %w", err)
	}
	if err := os.Unsetenv(variable); err != nil {
		return err
	}
	return fmt.Errorf("executing %s: %w", os.Args[1], unix.Exec(os.Args[1], os.Args[2:], os.Environ()))
}

// Start starts a command that was not started yet, with this disk.
func (d *Disk) Start(c *exec.Cmd) error {
	if c.Err != nil {
		return c.Err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("slowing syncs: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("slowing syncs: %w", err)
	}
	defer func() { _ = unix.Close(pair[0]) }() // nothing is lost with it
	theirs := os.NewFile(uintptr(pair[1]), "slowdisk")
	const firstExtra = 3
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Env = append(c.Env, fmt.Sprintf("%s=%d %t", variable, firstExtra+len(c.ExtraFiles), d.Fillable))
	c.ExtraFiles = append(c.ExtraFiles, theirs)
	c.Args = append([]string{"slowdisk", c.Path}, c.Args...)
	c.Path = self
	err = errors.Join(c.Start(), theirs.Close())
	if err != nil {
		return err
	}
	listener, err := receiveListener(pair[0])
	if err != nil {
		_ = c.Process.Kill()
		_ = c.Wait() // killed
		return fmt.Errorf("slowing the syncs of %s: %w", c.Args[1], err)
	}
	go d.serve(listener)
	return nil
}

// receiveListener reads the descriptor, or why there is none.
func receiveListener(socket int) (int, error) {
	text, rights := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(socket, text, rights, unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return 0, fmt.Errorf("receiving the descriptor: %w", err)
	case size == 0 && n == 0:
		return 0, errors.New("the process ended first; its output says why")
	case size == 0:
		return 0, errors.New(string(text[:n]))
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil {
		return 0, fmt.Errorf("receiving the descriptor: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, fmt.Errorf("receiving the descriptor: %w", err)
	}
	return fds[0], nil
}

// serve answers reports until the last process has ended.
func (d *Disk) serve(listener int) {
	var answers sync.WaitGroup
	for n, ok := receive(listener); ok; n, ok = receive(listener) {
		switch {
		case n.fills() && d.isFull():
			n.fail(listener, unix.ENOSPC)
		case n.fills():
			n.goOn(listener)
		default:
			answers.Add(1)
			d.delay(func() {
				defer answers.Done()
				n.goOn(listener)
			})
		}
	}
	answers.Wait()           // else the number could be another file's
	_ = unix.Close(listener) // nothing is lost with it
}
