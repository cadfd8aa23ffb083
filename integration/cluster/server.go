package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
)

// logTailBytes is how much of a log is shown after a failure.
const logTailBytes = 6 << 10

// Server is one server of an ensemble: a place in its configuration, a
// directory, and a process while it runs.
type Server struct {
	ID      int
	DataDir string
	Disk    *disk.Disk // nil: its data is on the machine's own
	Binary  string     // of zk-lite at its next start; empty: the one to test
	Env     []string   // added to its environment at its next start

	e                                            *Ensemble
	dir                                          string
	clientPort, peerPort, electionPort, httpPort int

	mu      sync.Mutex // protects the fields below
	process *process   // nil before the first start
	paused  bool
}

// process is one run of a server.
type process struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the fields below are set
	err     error
	stopped bool // ended because the kit wanted it; written under Server.mu
}

// Addr is where clients connect.
func (s *Server) Addr() string { return fmt.Sprintf("%s:%d", s.host(), s.clientPort) }

// HTTPAddr is where the HTTP port of zk-lite is.
func (s *Server) HTTPAddr() string { return fmt.Sprintf("%s:%d", s.host(), s.httpPort) }

// host is the address of the server.
func (s *Server) host() string {
	if s.e.opts.Network != nil {
		return s.e.opts.Network.IP(s.ID)
	}
	if s.e.opts.Hosts {
		return fmt.Sprintf("127.9.0.%d", s.ID)
	}
	return "127.0.0.1"
}

// Log is everything the server has printed, over all its runs.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(text)
}

func (s *Server) logTail() string {
	text := s.Log()
	return text[max(0, len(text)-logTailBytes):]
}

func (s *Server) logFile() string    { return filepath.Join(s.dir, "log") }
func (s *Server) configFile() string { return filepath.Join(s.dir, "zoo.cfg") }

// prepare writes what a server needs before its first start.
func (s *Server) prepare() error {
	for _, dir := range []string{s.dir, s.DataDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("creating a directory: %w", err)
		}
	}
	myid := filepath.Join(s.DataDir, "myid")
	if err := os.WriteFile(myid, fmt.Appendln(nil, s.ID), 0o640); err != nil {
		return fmt.Errorf("writing myid: %w", err)
	}
	if err := os.WriteFile(s.configFile(), []byte(s.e.settings(s)), 0o640); err != nil {
		return fmt.Errorf("writing zoo.cfg: %w", err)
	}
	if s.Disk != nil {
		s.Disk.Settle() // what the kit writes is not what is tested
	}
	return nil
}

// Snapshots are the state files of the server's complete snapshots. One that was not
// finished has a directory with .tmp behind its name.
func (s *Server) Snapshots() (files []string) {
	s.e.t.Helper()
	all, err := filepath.Glob(filepath.Join(s.DataDir, "snapshots", "*-*-*", "state.bin"))
	if err != nil {
		s.e.t.Fatal(err)
	}
	for _, path := range all {
		if !strings.HasSuffix(filepath.Dir(path), ".tmp") {
			files = append(files, path)
		}
	}
	return files
}

// Wipe empties the data directory of a server that is down, as a replaced disk
// would; the configuration stays.
func (s *Server) Wipe() {
	s.e.t.Helper()
	if s.Running() {
		s.e.t.Fatalf("server %d is running", s.ID)
	}
	err := os.RemoveAll(s.DataDir)
	if err == nil {
		err = s.prepare()
	}
	if err != nil {
		s.e.t.Fatalf("wiping server %d: %v", s.ID, err)
	}
}

// Start runs the server; it does not wait until it serves.
func (s *Server) Start() {
	s.e.t.Helper()
	if s.Running() {
		s.e.t.Fatalf("server %d is running already", s.ID)
	}
	if err := s.start(); err != nil {
		s.e.t.Fatalf("starting server %d: %v", s.ID, err)
	}
}

func (s *Server) start() error {
	args, err := s.e.program.command(s)
	if err != nil {
		return err
	}
	if wrap := s.e.opts.Wrap; wrap != nil {
		args = append(wrap(s.ID), args...)
	}
	if network := s.e.opts.Network; network != nil {
		args = network.Command(s.ID, args)
	}
	out, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer out.Close() // the process has its own copy
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Stdout, c.Stderr = s.dir, out, out
	// Not in the file: a release that does not know a setting refuses to start with it there.
	c.Env = slices.Concat([]string{"ZK_LITE_AUTOPILOT_STABLE_TIME=1000"}, os.Environ(), s.e.opts.Env, s.Env)
	// A group of its own keeps the terminal's Ctrl-C from the servers; the kit
	// ends them, and should the test's process be killed, the kernel does.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", args[0], err)
	}
	p := &process{cmd: c, ended: make(chan struct{})}
	go func() {
		p.err = c.Wait()
		close(p.ended)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process, s.paused = p, false
	return nil
}

// Running reports whether the server has a process, paused or not.
func (s *Server) Running() bool {
	p := s.current()
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// PID is the number of the server's process.
func (s *Server) PID() int { return s.current().cmd.Process.Pid }

// Paused reports whether Pause was called without a Resume.
func (s *Server) Paused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// endedEarly is an error if the server ended though nobody told it to.
func (s *Server) endedEarly() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.stopped {
		return nil
	}
	select {
	case <-s.process.ended:
		return fmt.Errorf("server %d ended by itself: %w", s.ID, errors.Join(s.process.err, errNot))
	default:
		return nil
	}
}

func (s *Server) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig == os.Kill || sig == syscall.SIGTERM {
		s.process.stopped = true
	}
	// An error means that the process has ended, which callers find out.
	_ = s.process.cmd.Process.Signal(sig)
}

// waitEnd waits for the end of the process and returns what it ended with.
func (s *Server) waitEnd(patience time.Duration) error {
	s.e.t.Helper()
	p := s.current()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		s.e.t.Fatalf("server %d has not ended after %v", s.ID, patience)
		return nil
	}
}

// Kill ends the server with SIGKILL: nothing is written or said any more.
func (s *Server) Kill() {
	s.e.t.Helper()
	s.signal(os.Kill)
	s.waitEnd(Patience)
}

// Stop ends the server in good order, with SIGTERM, and fails the test if that
// is not what it does.
func (s *Server) Stop() {
	s.e.t.Helper()
	s.signal(syscall.SIGTERM)
	if err := s.waitEnd(Patience); err != nil {
		s.e.t.Errorf("server %d did not stop in good order: %v", s.ID, err)
	}
}

// WaitEnd waits until the server ends by itself and returns its error, nil for
// the exit code 0.
func (s *Server) WaitEnd() error {
	s.e.t.Helper()
	err := s.waitEnd(Patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.stopped = true // somebody was waiting for it
	return err
}

// Pause stops the process where it is (SIGSTOP): its connections stay open and
// nothing answers.
func (s *Server) Pause() {
	s.signal(syscall.SIGSTOP)
	s.setPaused(true)
}

// Resume undoes Pause.
func (s *Server) Resume() {
	s.signal(syscall.SIGCONT)
	s.setPaused(false)
}

func (s *Server) setPaused(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
}

// Restart kills the server and starts it again; it does not wait until it
// serves.
func (s *Server) Restart() {
	s.e.t.Helper()
	s.Kill()
	s.Start()
}

// PeerAddr is where the other servers connect, as in a server.N line.
func (s *Server) PeerAddr() string {
	return fmt.Sprintf("%s:%d:%d", s.host(), s.peerPort, s.electionPort)
}
