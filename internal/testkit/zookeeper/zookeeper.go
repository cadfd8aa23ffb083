// Package zookeeper starts Apache ZooKeeper, from Debian's packages, for tests: what is
// compatible with it is tested against it. It starts processes only, and knows no client.
//
// Each process has a goroutine that waits for its end. All end with the test.
package zookeeper

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// jars are the patterns of what a server needs, below /usr/share/java, where
// Debian's packages put them. They are in the order in which they are searched.
var jars = [...]string{
	"zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar", "slf4j-nop.jar", "netty-*.jar",
	"jackson-*.jar", "snappy-java.jar", "commons-io.jar", "commons-lang.jar", "commons-cli.jar",
	"metrics-core.jar",
}

// Ensemble is a number of servers that belong together.
type Ensemble struct {
	Servers []*Server
}

// Server is one ZooKeeper process.
type Server struct {
	Address string // of the client port

	tb        testing.TB
	dir       string
	classpath string
	cmd       *exec.Cmd
	done      chan struct{} // closed when the process has ended
}

// Start starts n servers and waits until all of them serve. It fails the test
// if ZooKeeper or Java are not installed.
func Start(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	classpath := classpath(tb)
	port := ports.Take(tb, 3*n)
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, port[3*i+1], port[3*i+2])
	}
	e := new(Ensemble)
	for i := range n {
		s := &Server{
			Address: fmt.Sprintf("127.0.0.1:%d", port[3*i]), tb: tb,
			dir: filepath.Join(tb.TempDir(), fmt.Sprintf("server%d", i+1)), classpath: classpath,
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

func classpath(tb testing.TB) string {
	tb.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		tb.Fatalf("no java: %v; install Debian's zookeeper and libzookeeper-java", err)
	}
	var found []string
	for _, pattern := range jars {
		match, err := filepath.Glob(filepath.Join("/usr/share/java", pattern))
		if err != nil || len(match) == 0 && pattern == jars[0] {
			tb.Fatalf("no ZooKeeper at /usr/share/java (%v); install Debian's zookeeper and "+
				"libzookeeper-java", err)
		}
		found = append(found, match...)
	}
	return strings.Join(found, ":")
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

// Start starts the process again after Kill. It does not wait until the server
// serves.
func (s *Server) Start() {
	s.tb.Helper()
	out, err := os.Create(filepath.Join(s.dir, "out"))
	if err != nil {
		s.tb.Fatal(err)
	}
	defer out.Close()
	s.cmd = exec.Command("java", "-Xms128m", "-Xmx256m", "-cp", s.classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.dir, "zoo.cfg"))
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	done := make(chan struct{})
	cmd := s.cmd
	s.done = done
	go func() {
		_ = cmd.Wait() // killed: the state is of no interest
		close(done)
	}()
	s.tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-done
	})
}

// Kill ends the process at once, and waits until it has ended.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.done
}

// Pause stops the process without ending it: connections stay open and silent.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
}

// WaitServing waits until the server answers clients.
func (s *Server) WaitServing() {
	s.tb.Helper()
	wait.Until(s.tb, "ZooKeeper serves", func() bool {
		select {
		case <-s.done:
			out, _ := os.ReadFile(filepath.Join(s.dir, "out")) // only for the message
			s.tb.Fatalf("ZooKeeper has ended:\n%s", out)
		default:
		}
		return bytes.Contains(s.Ask("srvr"), []byte("Mode:"))
	})
}

// Ask sends a four-letter word and returns the answer, or nothing if there is
// none.
func (s *Server) Ask(word string) []byte {
	conn, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return nil
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return nil
	}
	answer, _ := io.ReadAll(conn) // a partial answer is one
	return answer
}
