// Package zookeeper starts Apache ZooKeeper, from Debian's packages, for tests of
// compatibility. It starts processes only, and knows no client.
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

// Command runs a server with a zoo.cfg, and with further flags for Java.
func Command(file string, flags ...string) ([]string, error) {
	classPath, err := ClassPath()
	if err != nil {
		return nil, err
	}
	return slices.Concat([]string{"java"}, flags, Flags(), []string{"-cp", classPath, Class, file}), nil
}

// Ensemble is a number of servers that belong together.
type Ensemble struct {
	Servers []*Server
}

// Server is one ZooKeeper process.
type Server struct {
	Address string // of the client port

	tb      testing.TB
	dir     string
	process *process.Process
}

// Start starts n servers and waits until all of them serve. It fails the test
// if ZooKeeper or Java are not installed.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	port := ports.Take(tb, 3*n)
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, port[3*i+1], port[3*i+2])
	}
	e := new(Ensemble)
	for i := range n {
		s := &Server{
			Address: fmt.Sprintf("127.0.0.1:%d", port[3*i]), tb: tb,
			dir: filepath.Join(tb.TempDir(), fmt.Sprintf("server%d", i+1)),
		}
		s.configure(i+1, port[3*i], n, members.String())
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
	var list []string
	for _, s := range e.Servers {
		list = append(list, s.Address)
	}
	return strings.Join(list, ",")
}

func (s *Server) configure(id, port, n int, members string) {
	s.tb.Helper()
	cfg := fmt.Sprintf("tickTime=200\ninitLimit=50\nsyncLimit=25\ndataDir=%s\n"+
		"clientPort=%d\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"+
		"minSessionTimeout=1000\nmaxSessionTimeout=60000\n"+
		"4lw.commands.whitelist=*\nadmin.enableServer=false\nextendedTypesEnabled=true\n",
		filepath.Join(s.dir, "data"), port)
	if n > 1 {
		cfg += members
	}
	err := os.MkdirAll(filepath.Join(s.dir, "data"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "zoo.cfg"), []byte(cfg), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "data", "myid"), fmt.Append(nil, id), 0o644)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
}

// Start starts the process, again after Kill. It does not wait until the server
// serves.
func (s *Server) Start() {
	s.tb.Helper()
	args, err := Command(filepath.Join(s.dir, "zoo.cfg"), "-Xms128m", "-Xmx256m")
	if err == nil {
		s.process, err = process.Start(process.Command{Args: args, Log: filepath.Join(s.dir, "log")})
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(s.process.Kill)
}

// Kill ends the process at once, and waits until it has ended.
func (s *Server) Kill() { s.process.Kill() }

// WaitServing waits until the server answers clients.
func (s *Server) WaitServing() {
	s.tb.Helper()
	wait.Until(s.tb, "ZooKeeper serves", func() bool {
		if err := s.process.EndedEarly(); err != nil {
			s.tb.Fatalf("ZooKeeper: %v:\n%s", err, s.process.Tail())
		}
		text, err := fourletter.Ask(s.Address, "srvr")
		return err == nil && strings.Contains(text, "Mode:")
	})
}
