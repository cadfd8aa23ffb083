package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

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

	mu      sync.Mutex       // protects the fields below
	process *process.Process // nil before the first start
	paused  bool
}

// Addr is where clients connect.
func (s *Server) Addr() string { return fmt.Sprintf("%s:%d", s.host(), s.clientPort) }

// MoveClients gives the server another client port, from its next start on.
func (s *Server) MoveClients(port int) {
	s.e.t.Helper()
	s.clientPort = port
	if err := s.prepare(); err != nil {
		s.e.t.Fatalf("server %d: %v", s.ID, err)
	}
}

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

func (s *Server) logFile() string    { return filepath.Join(s.dir, "log") }
func (s *Server) configFile() string { return filepath.Join(s.dir, "zoo.cfg") }

// prepare writes the files that a server needs before its first start.
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
		s.Disk.Settle() // the kit's own files are not under test
	}
	return nil
}

// Snapshots are the state files of the server's complete snapshots. The directory of an
// unfinished one has a name that ends in .tmp.
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
	// Not in the file: a release that does not know a setting refuses to start with it there.
	env := slices.Concat([]string{"ZK_LITE_AUTOPILOT_STABLE_TIME=1000"}, s.e.opts.Env, s.Env)
	p, err := process.Start(process.Command{Args: args, Dir: s.dir, Env: env, Log: s.logFile()})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process, s.paused = p, false
	return nil
}

// Running reports whether the server has a process, paused or not.
func (s *Server) Running() bool {
	p := s.current()
	return p != nil && p.Running()
}

// PID is the number of the server's process.
func (s *Server) PID() int { return s.current().PID() }

// Paused reports whether Pause was called without a Resume.
func (s *Server) Paused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

func (s *Server) current() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// endedEarly is an error if the server ended although no one stopped it.
func (s *Server) endedEarly() error {
	if p := s.current(); p != nil {
		if err := p.EndedEarly(); err != nil {
			return fmt.Errorf("server %d: %w", s.ID, err)
		}
	}
	return nil
}

// Kill ends the server with SIGKILL: it writes and sends nothing more.
func (s *Server) Kill() {
	s.e.t.Helper()
	s.current().Signal(syscall.SIGKILL)
	_ = s.WaitEnd() // killed, as it is meant to be
}

// Stop ends the server in good order, with SIGTERM, and fails the test if the server does
// anything else.
func (s *Server) Stop() {
	s.e.t.Helper()
	s.current().Signal(syscall.SIGTERM)
	if err := s.WaitEnd(); err != nil {
		s.e.t.Errorf("server %d did not stop in good order: %v", s.ID, err)
	}
}

// WaitEnd waits until the server ends of its own accord and returns its error, nil for the exit
// code 0.
func (s *Server) WaitEnd() error {
	s.e.t.Helper()
	err := s.current().Wait(wait.Patience)
	if errors.Is(err, process.ErrRunning) {
		s.e.t.Fatalf("server %d: %v", s.ID, err)
	}
	return err
}

// Pause stops the process where it is (SIGSTOP): its connections stay open and
// nothing answers.
func (s *Server) Pause() {
	s.current().Pause()
	s.setPaused(true)
}

// Resume undoes Pause.
func (s *Server) Resume() {
	s.current().Resume()
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
