//go:build zookeeper

package zktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/ports"
)

// jars are the patterns of what a server needs, below /usr/share/java, where
// Debian's packages put them. They are in the order in which they are searched.
var jars = [...]string{
	"zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar", "slf4j-nop.jar", "netty-*.jar",
	"jackson-*.jar", "snappy-java.jar", "commons-io.jar", "commons-lang.jar", "commons-cli.jar",
	"metrics-core.jar",
}

// process is an Apache ZooKeeper server.
type process struct{ *server }

type server struct {
	dir, listen string
	classpath   string
	cmd         *exec.Cmd // nil while stopped
	done        chan struct{}
}

func startProcesses(tb testing.TB, n int) []process {
	tb.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		tb.Fatalf("no java: %v; install Debian's zookeeper and libzookeeper-java", err)
	}
	var classpath []string
	for _, pattern := range jars {
		match, err := filepath.Glob(filepath.Join("/usr/share/java", pattern))
		if err != nil || len(match) == 0 && pattern == jars[0] {
			tb.Fatalf("no %s in /usr/share/java (%v); install Debian's zookeeper and "+
				"libzookeeper-java", pattern, err)
		}
		classpath = append(classpath, match...)
	}
	port := ports.Take(tb, 3*n)
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, port[3*i], port[3*i+1])
	}
	var all []process
	for i := range n {
		s := &server{
			dir:       filepath.Join(tb.TempDir(), fmt.Sprintf("server-%d", i+1)),
			listen:    fmt.Sprintf("127.0.0.1:%d", port[3*i+2]),
			classpath: strings.Join(classpath, ":"),
		}
		s.configure(tb, i+1, port[3*i+2], n, members.String())
		s.Start(tb)
		tb.Cleanup(s.Stop)
		all = append(all, process{s})
	}
	return all
}

func (s *server) configure(tb testing.TB, id, port, n int, members string) {
	tb.Helper()
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
		tb.Fatal(err)
	}
}

func (s *server) address() string { return s.listen }

// Start starts the server, again after Stop. It does not wait until it serves.
func (s *server) Start(tb testing.TB) {
	tb.Helper()
	out, err := os.Create(filepath.Join(s.dir, "out"))
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()
	s.cmd = exec.Command("java", "-Xms128m", "-Xmx256m", "-cp", s.classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.dir, "zoo.cfg"))
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s.done = make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // killed: the state is of no interest
		close(s.done)
	}()
}

// Stop kills the server, if it runs.
func (s *server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.done
	s.cmd = nil
}

// Main runs the tests of a package with one server that all of them may use, and
// returns the exit code. It is for TestMain: one server for all is much quicker
// than one for each.
func Main(m *testing.M, use func(*Server)) int {
	tb := new(mainTB)
	defer tb.cleanup()
	use(Start(tb, 1).Servers[0])
	return m.Run()
}

// mainTB is the testing.TB of TestMain, which has none.
type mainTB struct {
	testing.TB // nil: the methods below are all that is called
	cleanups   []func()
}

func (tb *mainTB) Helper() {}

func (tb *mainTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "zktest")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system clears what is left
	return dir
}

// Fatal panics: there is no test to fail yet.
func (tb *mainTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (tb *mainTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (tb *mainTB) cleanup() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}
