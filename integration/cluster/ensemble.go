package cluster

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// Options change how an ensemble is run. The zero value is the usual one.
type Options struct {
	// Config has further lines of every zoo.cfg, which override the kit's own.
	Config map[string]string
	// Dir is where the data lives; empty: a directory that ends with the test.
	Dir string
	// DataDir gives a server (1..n) a data directory of its own elsewhere; ""
	// or nil leaves it below Dir.
	DataDir func(id int) string
	// Disks, one for each server, contain the data directories, so that they can fail and lose
	// power; nil: the machine's own.
	Disks []*disk.Disk
	// Env is added to the environment of the servers.
	Env []string
	// ZooKeeper is the version that StartZooKeeper runs; "": the oracle's.
	ZooKeeper string
	// JavaFlags are for the JVM of ZooKeeper servers.
	JavaFlags []string
	// First is how many servers form the ensemble, if not all. The others are not started; each knows the first ones
	// and itself.
	First int
	// NotStarted leaves all servers down.
	NotStarted bool
	// Quiet leaves the logs unprinted when the test fails.
	Quiet bool
	// Network puts every server into a network namespace of its own; nil: all
	// are on loopback.
	Network *network.Network
	// Hosts gives each server a loopback address of its own, 127.9.0.1 and so on, where the other servers find it
	// at the same ports in every run: data directories keep those addresses. Two such ensembles cannot run at once.
	Hosts bool
	// Wrap is put before a server's command, as of "unshare"; nil: nothing.
	Wrap func(id int) []string
}

// The super user of every ensemble of the kit, as arguments of "auth digest".
const (
	SuperCredentials = "super:integration"
	superDigest      = "super:FGl0qT2M5E+MH9QCeyPBy30Tcxc="
)

// Ensemble is a number of servers that form an ensemble, or a standalone one.
type Ensemble struct {
	Name    string // "zk-lite" or "ZooKeeper"
	t       testing.TB
	opts    Options
	program program
	servers []*Server
}

// program runs a server with a zoo.cfg.
type program interface {
	// command is the program and its arguments.
	command(s *Server) ([]string, error)
	// config adds settings that only this program knows to a zoo.cfg.
	config(s *Server, settings map[string]string)
}

// Start runs n zk-lite servers and waits until they serve. One server runs standalone.
func Start(t testing.TB, n int, o Options) *Ensemble {
	t.Helper()
	return start(t, "zk-lite", n, o, zkLite{})
}

// StartZooKeeper runs n servers of Apache ZooKeeper.
func StartZooKeeper(t testing.TB, n int, o Options) *Ensemble {
	t.Helper()
	return start(t, "ZooKeeper", n, o, apache{})
}

func start(t testing.TB, name string, n int, o Options, p program) *Ensemble {
	t.Helper()
	e := &Ensemble{Name: name, t: t, opts: o, program: p}
	if e.opts.Dir == "" {
		e.opts.Dir = t.TempDir()
	}
	port := ports.Take(t, 4*n)
	for id := 1; id <= n; id++ {
		at := 4 * (id - 1)
		s := &Server{ID: id, e: e, clientPort: port[at], peerPort: port[at+1],
			electionPort: port[at+2], httpPort: port[at+3]}
		if o.Hosts {
			s.peerPort, s.electionPort = 2888, 3888
		}
		s.dir = filepath.Join(e.opts.Dir, fmt.Sprintf("%s-%d", strings.ToLower(name), id))
		s.DataDir = filepath.Join(s.dir, "data")
		if o.DataDir != nil && o.DataDir(id) != "" {
			s.DataDir = o.DataDir(id)
		}
		if o.Disks != nil {
			s.Disk = o.Disks[id-1]
			s.DataDir = filepath.Join(s.Disk.Dir(), "data")
		}
		e.servers = append(e.servers, s)
	}
	for _, s := range e.servers {
		if err := s.prepare(); err != nil {
			t.Fatalf("preparing server %d: %v", s.ID, err)
		}
	}
	t.Cleanup(e.close)
	if !o.NotStarted {
		for _, s := range e.servers {
			if e.knows(nil, s) {
				s.Start()
			}
		}
		e.WaitServing()
	}
	return e
}

// close ends all servers and shows their logs after a failure.
func (e *Ensemble) close() {
	for _, s := range e.servers {
		if s.Running() {
			s.Kill()
		}
	}
	if !e.t.Failed() || e.opts.Quiet {
		return
	}
	for _, s := range e.servers {
		if p := s.current(); p != nil {
			e.t.Logf("the log of %s server %d:\n%s", e.Name, s.ID, p.Tail())
		}
	}
}

// Servers are all servers, running or not.
func (e *Ensemble) Servers() []*Server { return append([]*Server(nil), e.servers...) }

// Server is the server with a number, from 1.
func (e *Ensemble) Server(id int) *Server { return e.servers[id-1] }

// Running are the servers that have been started and are neither ended nor
// paused.
func (e *Ensemble) Running() (running []*Server) {
	for _, s := range e.servers {
		if s.Running() && !s.Paused() {
			running = append(running, s)
		}
	}
	return running
}

// ConnectString is the connect string for ZooKeeper clients: all servers' addresses.
func (e *Ensemble) ConnectString() string {
	var all []string
	for _, s := range e.servers {
		all = append(all, s.Addr())
	}
	return strings.Join(all, ",")
}

// StartAll starts the servers that are not running.
func (e *Ensemble) StartAll() {
	e.t.Helper()
	for _, s := range e.servers {
		if !s.Running() {
			s.Start()
		}
	}
}

// KillAll kills servers at once, all running ones if none are named, as a power cut of the
// processes would.
func (e *Ensemble) KillAll(servers ...*Server) {
	e.t.Helper()
	if len(servers) == 0 {
		servers = e.servers
	}
	for _, s := range servers {
		if s.Running() {
			s.current().Signal(syscall.SIGKILL)
		}
	}
	for _, s := range servers {
		_ = s.WaitEnd() // killed, as it is meant to be
	}
}

// WaitServing waits until every running server serves, one of them leads (or is standalone),
// and the others vote: a server that is added again does so once it has caught up, and until
// then the ensemble still changes.
func (e *Ensemble) WaitServing() {
	e.t.Helper()
	wait.Succeeds(e.t, e.Name+" serves on all running servers", func() error {
		leaders := 0
		for _, s := range e.Running() {
			mode, err := s.Mode()
			if err != nil {
				return fmt.Errorf("server %d: %w", s.ID, err)
			}
			switch mode {
			case ModeLeader, ModeStandalone:
				leaders++
			case ModeObserver:
				return fmt.Errorf("server %d has no vote yet", s.ID)
			}
		}
		if leaders != 1 {
			return fmt.Errorf("%d servers say that they lead", leaders)
		}
		for _, s := range e.servers {
			if err := s.endedEarly(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Leader waits for a leader among the running servers and returns it.
func (e *Ensemble) Leader() (leader *Server) {
	e.t.Helper()
	wait.Succeeds(e.t, "a leader", func() error {
		var found []*Server
		for _, s := range e.Running() {
			mode, err := s.Mode()
			if err == nil && (mode == ModeLeader || mode == ModeStandalone) {
				found = append(found, s)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("%d servers say that they lead", len(found))
		}
		leader = found[0]
		return nil
	})
	return leader
}

// Followers are the running servers besides the leader.
func (e *Ensemble) Followers() []*Server {
	e.t.Helper()
	_, followers := e.Roles()
	return followers
}

// Roles are the leader and the other running servers, of one moment: separate questions for the
// leader and for its followers may see two leaders.
func (e *Ensemble) Roles() (leader *Server, followers []*Server) {
	e.t.Helper()
	leader = e.Leader()
	for _, s := range e.Running() {
		if s != leader {
			followers = append(followers, s)
		}
	}
	return leader, followers
}

// knows reports whether a server has another one in its configuration.
func (e *Ensemble) knows(s, x *Server) bool {
	return e.opts.First == 0 || x.ID <= e.opts.First || x == s
}

// settings are the lines of a server's zoo.cfg.
func (e *Ensemble) settings(s *Server) string {
	set := map[string]string{
		"tickTime": "500", "initLimit": "20", "syncLimit": "10",
		"dataDir":           s.DataDir,
		"clientPort":        fmt.Sprint(s.clientPort),
		"clientPortAddress": s.host(),
		"maxClientCnxns":    "0", "4lw.commands.whitelist": "*",
		"admin.enableServer":                       "false",
		"extendedTypesEnabled":                     "true",
		"DigestAuthenticationProvider.superDigest": superDigest,
	}
	if len(e.servers) > 1 {
		for _, x := range e.servers {
			if e.knows(s, x) {
				set[fmt.Sprintf("server.%d", x.ID)] = x.PeerAddr()
			}
		}
	}
	e.program.config(s, set)
	for k, v := range e.opts.Config {
		set[k] = v
	}
	var lines []string
	for k, v := range set {
		lines = append(lines, k+"="+v+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}
