package system

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// javaDir is where Debian keeps Java libraries, debianPackages what puts them
// there.
const (
	javaDir        = "/usr/share/java"
	debianPackages = "zookeeper libzookeeper-java default-jdk-headless"
)

// zookeeper is Apache ZooKeeper from Debian's packages, as Debian configures
// Java for it but with a heap of 2 GiB, as much as its guide asks for at least;
// forceSync, its default, is on.
type zookeeper struct {
	speaksZooKeeper
	classPath string
}

// NewZooKeeper finds Debian's package.
func NewZooKeeper() (System, error) {
	var all []string
	for _, pattern := range []string{"zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar",
		"slf4j-simple.jar", "netty-*.jar", "jackson-*.jar", "snappy-java.jar", "commons-io.jar",
		"commons-lang.jar", "commons-cli.jar", "metrics-core.jar", "jetty9-s*.jar",
		"jetty9-util*.jar", "jetty9-http.jar", "jetty9-io.jar", "*servlet-api*.jar"} {
		found, err := filepath.Glob(filepath.Join(javaDir, pattern))
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", pattern, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 || filepath.Base(all[0]) != "zookeeper.jar" {
		return nil, fmt.Errorf("ZooKeeper is missing; install it with: apt-get install -y %s",
			debianPackages)
	}
	return &zookeeper{classPath: strings.Join(all, ":")}, nil
}

func (*zookeeper) Name() string { return Apache }

func (*zookeeper) Version() (string, error) {
	zk, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "libzookeeper-java").Output()
	if err != nil {
		return "", fmt.Errorf("asking for ZooKeeper's version: %w", err)
	}
	java, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking for Java's version: %w", err)
	}
	first, _, _ := bytes.Cut(java, []byte("\n"))
	return fmt.Sprintf("%s (Debian), %s", zk, first), nil
}

func (z *zookeeper) flags() []string {
	return []string{"java", "-Xms2g", "-Xmx2g", "-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}
}

const quorumPeer = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

func (z *zookeeper) Settings() []string {
	return []string{strings.Join(z.flags(), " ") + " " + quorumPeer + " zoo.cfg", shownCfg(),
		"forceSync is its default, yes: every transaction is synced before it is acknowledged"}
}

func (z *zookeeper) start(e *Ensemble, o *Setup) error {
	return startZoo(e, o, func(file string) []string {
		return append(z.flags(), "-cp", z.classPath, quorumPeer, file)
	})
}

// LiveHeap collects garbage and reads the heap in use (jcmd, part of the JDK).
func (*zookeeper) LiveHeap(ctx context.Context, p *Process) (int64, error) {
	pid := strconv.Itoa(p.PID())
	if out, err := exec.CommandContext(ctx, "jcmd", pid, "GC.run").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("collecting garbage: %w: %s", err, out)
	}
	out, err := exec.CommandContext(ctx, "jcmd", pid, "GC.heap_info").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("reading the heap: %w: %s", err, out)
	}
	return parseHeapInfo(string(out))
}

// parseHeapInfo reads "garbage-first heap   total 2097152K, used 490123K" and the
// same line of Java's other collectors.
func parseHeapInfo(text string) (int64, error) {
	found := regexp.MustCompile(`total \d+K, used (\d+)K`).FindAllStringSubmatch(text, -1)
	if found == nil {
		return 0, fmt.Errorf("jcmd GC.heap_info says nothing of a heap: %q", text)
	}
	sum := int64(0)
	for _, m := range found {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the heap in use: %w", err)
		}
		sum += n << 10
	}
	return sum, nil
}
