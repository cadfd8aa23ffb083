// Package zookeeper starts Apache ZooKeeper for tests of compatibility: from Debian's packages, or a version of
// Maven Central's. It starts processes only, and knows no client.
//
// All processes end with the test.
package zookeeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/fourletter"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// Packages are the Debian packages that must be installed.
const Packages = "zookeeper libzookeeper-java default-jdk-headless"

// Class is the main class of a server.
const Class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// javaDir is where Debian keeps Java libraries.
const javaDir = "/usr/share/java"

// jars are the patterns of the jars that servers, clients and recipes need, in the order in which they are
// searched.
func jars() []string {
	return []string{"zookeeper.jar", "zookeeper-jute.jar", "zookeeper-recipes-*.jar", "slf4j-api.jar",
		"slf4j-simple.jar", "netty-*.jar", "jackson-*.jar", "snappy-java.jar", "commons-io.jar", "commons-lang.jar",
		"commons-cli.jar", "metrics-core.jar", "jetty9-s*.jar", "jetty9-util*.jar", "jetty9-http.jar", "jetty9-io.jar",
		"*servlet-api*.jar", "jline*.jar"}
}

// ClassPath is the class path of a Java program that uses ZooKeeper's server, client or
// recipes.
func ClassPath() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("there is no Java; install it with apt-get install -y %s: %w", Packages, err)
	}
	var found []string
	for i, pattern := range jars() {
		match, err := filepath.Glob(filepath.Join(javaDir, pattern))
		if err != nil || i == 0 && len(match) == 0 {
			return "", errors.Join(
				fmt.Errorf("ZooKeeper is missing; install it with: apt-get install -y %s", Packages), err)
		}
		found = append(found, match...)
	}
	return strings.Join(found, ":"), nil
}

// Flags are those of every server's Java: only warnings are logged.
func Flags() []string {
	return []string{"-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}
}

// Command runs a server of a version ("": Debian's) with a zoo.cfg, and with further flags for Java.
func Command(version, file string, flags ...string) ([]string, error) {
	classPath, err := ClassPath()
	if version != "" {
		classPath, err = Jars(version)
	}
	return command(classPath, file, flags), err
}

func command(classPath, file string, flags []string) []string {
	return slices.Concat([]string{"java"}, flags, Flags(), []string{"-cp", classPath, Class, file})
}

// Options are what the servers of an ensemble have in common.
type Options struct {
	Version   string // "": Debian's
	Servers   int    // all, with the observers, which are the last
	Observers int
	// Config has further lines of zoo.cfg. $DIR is the server's directory, $PORT a port of its own, for the
	// observerMasterPort of voters.
	Config []string
	Flags  []string // further flags for Java
	Data   string   // a directory that each data directory begins as a copy of
	Admin  bool     // AdminServer at $PORT, with Debian's libraries for it
}

// Superuser is the name and the password of the digest scheme's superuser.
const (
	Superuser   = "super:test"
	superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
)

// Ensemble is a number of servers that belong together.
type Ensemble struct {
	Servers []*Server
}

// Server is one ZooKeeper process.
type Server struct {
	Address string // of the client port
	Quorum  string // the address for other servers, on which only the leader listens
	Port    int    // for $PORT
	Dir     string // holds zoo.cfg, the directory data and the log

	tb      testing.TB
	command []string
	process *process.Process
}

// Start starts n servers of Debian's version and waits until all of them serve. It fails the test if ZooKeeper or
// Java are not installed.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	return Run(tb, Options{Servers: n})
}

// Run starts an ensemble and waits until all its servers serve.
func Run(tb testing.TB, o Options) *Ensemble {
	tb.Helper()
	classPath, err := ClassPath()
	if o.Version != "" && !o.Admin {
		classPath, err = Jars(o.Version)
	} else if o.Version != "" {
		own, fetched := Jars(o.Version)
		classPath, err = own+":"+classPath, errors.Join(err, fetched)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if o.Admin {
		o.Config = append(slices.Clone(o.Config), "admin.enableServer=true", "admin.serverAddress=127.0.0.1",
			"admin.serverPort=$PORT")
	}
	port := ports.Take(tb, 4*o.Servers)
	var members strings.Builder
	for i := range o.Servers {
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d", i+1, port[4*i+1], port[4*i+2])
		if i >= o.Servers-o.Observers {
			members.WriteString(":observer")
		}
		members.WriteByte('\n')
	}
	e := new(Ensemble)
	for i := range o.Servers {
		s := &Server{
			Address: fmt.Sprintf("127.0.0.1:%d", port[4*i]), Quorum: fmt.Sprintf("127.0.0.1:%d", port[4*i+1]),
			Port: port[4*i+3], Dir: filepath.Join(tb.TempDir(), fmt.Sprintf("server%d", i+1)), tb: tb,
		}
		s.command = command(classPath, s.ConfigFile(), append([]string{"-Xms128m", "-Xmx256m"}, o.Flags...))
		s.configure(i+1, port[4*i], members.String(), o)
		s.Start()
		e.Servers = append(e.Servers, s)
	}
	for _, s := range e.Servers {
		s.WaitServing()
	}
	return e
}

// ConnectString names all servers.
func (e *Ensemble) ConnectString() string {
	return e.list(func(s *Server) string { return s.Address })
}

// Quorum names the quorum ports of all servers.
func (e *Ensemble) Quorum() string {
	return e.list(func(s *Server) string { return s.Quorum })
}

func (e *Ensemble) list(address func(*Server) string) string {
	var list []string
	for _, s := range e.Servers {
		list = append(list, address(s))
	}
	return strings.Join(list, ",")
}

// Leader waits for a server that leads, or that is the only one, and returns it.
func (e *Ensemble) Leader() (leader *Server) {
	e.Servers[0].tb.Helper()
	wait.Until(e.Servers[0].tb, "a ZooKeeper leads", func() bool {
		i := slices.IndexFunc(e.Servers, func(s *Server) bool {
			mode := s.Mode()
			return mode == "leader" || mode == "standalone"
		})
		if i >= 0 {
			leader = e.Servers[i]
		}
		return i >= 0
	})
	return leader
}

func (s *Server) configure(id, port int, members string, o Options) {
	s.tb.Helper()
	cfg := fmt.Sprintf("tickTime=200\ninitLimit=50\nsyncLimit=25\ndataDir=%s\n"+
		"clientPort=%d\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"+
		"minSessionTimeout=1000\nmaxSessionTimeout=60000\nDigestAuthenticationProvider.superDigest=%s\n"+
		"4lw.commands.whitelist=*\nadmin.enableServer=false\nextendedTypesEnabled=true\n",
		s.DataDir(), port, superDigest)
	if o.Servers > 1 || slices.Contains(o.Config, "standaloneEnabled=false") {
		cfg += members
	}
	if o.Observers > 0 && id > o.Servers-o.Observers {
		cfg += "peerType=observer\n"
	}
	for _, line := range o.Config {
		cfg += strings.NewReplacer("$DIR", s.Dir, "$PORT", strconv.Itoa(s.Port)).Replace(line) + "\n"
	}
	err := os.MkdirAll(s.DataDir(), 0o755)
	if err == nil && o.Data != "" {
		err = os.CopyFS(s.DataDir(), os.DirFS(o.Data))
	}
	if err == nil {
		err = os.WriteFile(s.ConfigFile(), []byte(cfg), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.DataDir(), "myid"), fmt.Append(nil, id), 0o644)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
}

// DataDir is the server's dataDir.
func (s *Server) DataDir() string { return filepath.Join(s.Dir, "data") }

// ConfigFile is its zoo.cfg.
func (s *Server) ConfigFile() string { return filepath.Join(s.Dir, "zoo.cfg") }

// Start starts the process, again after Kill. It does not wait until the server
// serves.
func (s *Server) Start() {
	s.tb.Helper()
	var err error
	s.process, err = process.Start(process.Command{Args: s.command, Dir: s.Dir, Log: filepath.Join(s.Dir, "log")})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(s.process.Kill)
}

// Kill ends the process at once, and waits until it has ended.
func (s *Server) Kill() { s.process.Kill() }

// EndedEarly returns an error if the process has ended by itself.
func (s *Server) EndedEarly() error { return s.process.EndedEarly() }

// Stop ends the process with SIGTERM, as an operator does, and waits until it has ended.
func (s *Server) Stop() {
	s.tb.Helper()
	if err := s.process.Stop(wait.Patience); errors.Is(err, process.ErrRunning) {
		s.tb.Fatal(err)
	}
}

// Mode is what the server calls itself: leader, follower, observer or standalone; "" while it does not serve.
func (s *Server) Mode() string {
	text, err := fourletter.Ask(s.Address, "srvr")
	if err != nil {
		return ""
	}
	_, mode, _ := strings.Cut(text, "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}

// WaitServing waits until the server answers clients.
func (s *Server) WaitServing() {
	s.tb.Helper()
	wait.Until(s.tb, "ZooKeeper serves", func() bool {
		if err := s.process.EndedEarly(); err != nil {
			s.tb.Fatalf("ZooKeeper: %v:\n%s", err, s.process.Tail())
		}
		return s.Mode() != ""
	})
}
