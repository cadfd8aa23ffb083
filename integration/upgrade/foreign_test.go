//go:build upgrade

package upgrade_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// foreign is a client of others: a program that creates the znode of each line of its input, and prints "written",
// "unknown" if its connection was lost, or what else was wrong. It closes its session at the end of its input.
type foreign struct {
	name string
	args []string // its connect string follows
}

// foreigners are kazoo, and ZooKeeper's Java and C clients, compiled.
func foreigners(t *testing.T) []foreign {
	t.Helper()
	const python = "/usr/bin/python3"
	cluster.NeedTool(t, python, "python3")
	cluster.NeedTool(t, "/usr/lib/python3/dist-packages/kazoo", "python3-kazoo")
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	gcc := cluster.NeedTool(t, "/usr/bin/gcc", "gcc libc6-dev")
	cluster.NeedTool(t, "/usr/include/zookeeper/zookeeper.h", "libzookeeper-mt-dev")
	dir, classPath, source := t.TempDir(), cluster.ClassPath(t), func(name string) string {
		path, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := filepath.Join(dir, "load")
	run(t, "", javac, "-cp", classPath, "-d", dir, source("Load.java"))
	run(t, "", gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DTHREADED", "-o", c, source("load.c"),
		"-lzookeeper_mt", "-lpthread")
	return []foreign{
		{"kazoo", []string{python, source("load.py")}},
		{"java", []string{"java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", dir + ":" + classPath, "Load"}},
		{"c", []string{c}},
	}
}

// run runs a program to its end, in a directory; "": this one.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("command %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// useForeign lets a foreign client work until the load ends.
func (l *load) useForeign(who string, args []string) {
	c := exec.Command(args[0], append(args[1:], l.e.ConnectString())...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err1 != nil || err2 != nil {
		l.t.Errorf("%s: pipes: %v, %v", who, err1, err2)
		return
	}
	var logged strings.Builder
	c.Stderr = &logged
	if err := c.Start(); err != nil {
		l.t.Errorf("%s: %v", who, err)
		return
	}
	answers := bufio.NewReader(out)
	for n := 0; l.ctx.Err() == nil; n++ {
		path := fmt.Sprintf("/load/%s-%d", who, n)
		fmt.Fprintln(in, path)
		said, err := answers.ReadString('\n')
		switch {
		case said == "written\n":
			l.note(&l.written, who, path)
		case said == "unknown\n":
			l.note(&l.unread, who, path)
		default:
			l.t.Errorf("%s: creating %s: %q, %v", who, path, said, err)
			l.stop()
		}
		l.wait()
	}
	in.Close()
	if _, err := io.Copy(io.Discard, answers); err != nil {
		l.t.Errorf("%s: %v", who, err)
	}
	if err := c.Wait(); err != nil {
		l.t.Errorf("%s: exit: %v; its log ends in %s", who, err, logged.String()[max(0, logged.Len()-4096):])
	}
}
