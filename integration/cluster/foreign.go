package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// ProgramPatience is how long a program of another language may take in all, on a machine that is busy with other
	// tests.
	ProgramPatience = 4 * time.Minute
	// ProgramTail is how much of what a program logs is shown after a failure.
	ProgramTail = 8 << 10
	// maxLine bounds a line of a program.
	maxLine = 1 << 20
)

// Command is a process that ends with ctx, and its children with it.
func Command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	return c
}

// Execute runs a program to its end in a directory and returns what it printed; it fails the test if the program fails.
func Execute(t testing.TB, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ProgramPatience)
	defer cancel()
	out, err := Command(ctx, dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("command %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Testdata is the absolute path of a file in the tests' directory testdata.
func Testdata(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Kazoo is the command that runs a program with Debian's kazoo; another Python that is first in the path may have none.
func Kazoo(t testing.TB, file string) []string {
	t.Helper()
	python := NeedTool(t, "/usr/bin/python3", "python3")
	NeedTool(t, "/usr/lib/python3/dist-packages/kazoo", "python3-kazoo")
	return []string{python, Testdata(t, file)}
}

// curatorPackages are those of Curator's jars.
const curatorPackages = "libcurator-recipes-java libcurator-framework-java libcurator-client-java"

// CuratorClassPath is the class path of a Java program that uses Curator.
func CuratorClassPath(t testing.TB) string {
	t.Helper()
	path := ClassPath(t)
	for _, jar := range []string{"curator-recipes", "curator-framework", "curator-client", "guava"} {
		path += ":" + NeedTool(t, "/usr/share/java/"+jar+".jar", curatorPackages)
	}
	return path
}

// Java compiles programs that use ZooKeeper's client, and Curator if one is named after it. It returns the command that
// runs them, up to the class path: further flags, a class and its arguments follow.
func Java(t testing.TB, sources ...string) []string {
	t.Helper()
	javac := NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	classPath, dir := ClassPath(t), t.TempDir()
	if strings.Contains(strings.Join(sources, " "), "Curator") {
		classPath = CuratorClassPath(t)
	}
	compile := []string{javac, "-encoding", "UTF-8", "-nowarn", "-cp", classPath, "-d", dir}
	for _, name := range sources {
		compile = append(compile, Testdata(t, name))
	}
	Execute(t, dir, compile...)
	return []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", dir + ":" + classPath}
}

// Program is a running program that reads commands from its standard input, prints lines, and ends at the end of its
// input.
type Program struct {
	t      testing.TB
	c      *exec.Cmd
	in     io.WriteCloser
	logged *os.File
	ended  chan struct{} // closed once all is read
}

// StartProgram starts a program, which ends with the test. A goroutine of its own hands each line to hear.
func StartProgram(t testing.TB, hear func(line string), args ...string) *Program {
	t.Helper()
	p := &Program{t: t, c: Command(t.Context(), t.TempDir(), args...), ended: make(chan struct{})}
	in, err1 := p.c.StdinPipe()
	out, err2 := p.c.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatalf("pipes of %s: %v, %v", args[0], err1, err2)
	}
	var err error
	if p.logged, err = os.Create(filepath.Join(p.c.Dir, "stderr")); err != nil {
		t.Fatal(err)
	}
	p.in, p.c.Stderr = in, p.logged
	if err := p.c.Start(); err != nil {
		t.Fatalf("starting %s: %v", args[0], err)
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			hear(lines.Text())
		}
	}()
	t.Cleanup(p.end)
	return p
}

// Say sends the program a line. It fails the test if the program has ended.
func (p *Program) Say(words ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, words...); err != nil {
		p.t.Fatalf("telling %s %v: %v", filepath.Base(p.c.Path), words, err)
	}
}

func (p *Program) end() {
	_ = p.in.Close() // its sign to end
	<-p.ended
	// The test's context has ended before, and killed it.
	if err := p.c.Wait(); err != nil && p.t.Context().Err() == nil {
		p.t.Errorf("%s: %v", filepath.Base(p.c.Path), err)
	}
	if p.t.Failed() {
		text, err := os.ReadFile(p.logged.Name())
		p.t.Logf("what %s logged: %s, %v", filepath.Base(p.c.Path), text[max(0, len(text)-ProgramTail):], err)
	}
	_ = p.logged.Close() // the process has ended
}
