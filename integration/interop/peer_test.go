//go:build interop

package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// peer is a Java process with Curator's recipes (testdata/CuratorPeer.java) that executes
// commands.
type peer struct {
	t   *testing.T
	in  io.Writer
	mu  sync.Mutex // protects the fields below
	ids int
	got map[string][]string // output of each id that no one has asked for yet
}

// deed is something that the peer does.
type deed struct {
	p  *peer
	id string
}

// startPeer compiles and starts the process. It ends with the test.
func startPeer(t *testing.T, e *cluster.Ensemble) *peer {
	t.Helper()
	const packages = "libcurator-recipes-java libcurator-framework-java libcurator-client-java"
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	classPath, dir := cluster.ClassPath(t), t.TempDir()
	for _, jar := range []string{"curator-recipes", "curator-framework", "curator-client", "guava"} {
		classPath += ":" + cluster.NeedTool(t, "/usr/share/java/"+jar+".jar", packages)
	}
	run(t, dir, javac, "-encoding", "UTF-8", "-nowarn", "-cp", classPath, "-d", dir, testdata(t, "CuratorPeer.java"))
	c := command(t.Context(), dir, "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", dir+":"+classPath, "CuratorPeer", e.ConnectString())
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logged, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = logged
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, in: in, got: map[string][]string{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			id, text, _ := strings.Cut(lines.Text(), " ")
			p.mu.Lock()
			p.got[id] = append(p.got[id], text)
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() { p.end(c, in, ended, logged) })
	return p
}

func (p *peer) end(c *exec.Cmd, in io.Closer, ended <-chan struct{}, logged *os.File) {
	in.Close() // its sign to end
	<-ended
	// The test's context may have ended before, and killed it.
	if err := c.Wait(); err != nil && p.t.Context().Err() == nil {
		p.t.Errorf("the peer: %v", err)
	}
	if p.t.Failed() {
		text, err := os.ReadFile(logged.Name())
		p.t.Logf("what the peer logged: %s, %v", text[max(0, len(text)-stderrTail):], err)
	}
	logged.Close()
}

// begin has the peer begin something.
func (p *peer) begin(words ...any) *deed {
	p.t.Helper()
	p.mu.Lock()
	p.ids++
	d := &deed{p, fmt.Sprint(p.ids)}
	p.mu.Unlock()
	d.say(words...)
	return d
}

func (d *deed) say(words ...any) {
	d.p.t.Helper()
	if _, err := fmt.Fprintln(d.p.in, append([]any{d.id}, words...)...); err != nil {
		d.p.t.Fatalf("telling the peer %v: %v", words, err)
	}
}

// next waits for the next output of a deed.
func (d *deed) next() (text string) {
	d.p.t.Helper()
	wait.Succeeds(d.p.t, "the peer says something of "+d.id, func() error {
		d.p.mu.Lock()
		defer d.p.mu.Unlock()
		if len(d.p.got[d.id]) == 0 {
			return fmt.Errorf("it has said nothing")
		}
		text = d.p.got[d.id][0]
		d.p.got[d.id] = d.p.got[d.id][1:]
		return nil
	})
	return text
}

// expect waits for words of the peer, which must be these.
func (d *deed) expect(want string) {
	d.p.t.Helper()
	if got := d.next(); got != want {
		d.p.t.Fatalf("the peer says %q, want %q", got, want)
	}
}

// silent fails the test if the peer has printed something.
func (d *deed) silent() {
	d.p.t.Helper()
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if said := d.p.got[d.id]; len(said) > 0 {
		d.p.t.Fatalf("the peer says %q, want nothing yet", said)
	}
}

// release makes the peer release what it holds.
func (d *deed) release() {
	d.p.t.Helper()
	d.say("do release")
	d.expect("released")
}

// eventually asks the peer again and again until the answer is the one that is wanted.
func (d *deed) eventually(question, want string) {
	d.p.t.Helper()
	wait.Succeeds(d.p.t, "the peer sees "+want, func() error {
		d.say("do", question)
		if got := d.next(); got != want {
			return fmt.Errorf("it sees %q", got)
		}
		return nil
	})
}
