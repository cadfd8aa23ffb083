package system

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/internal/testkit/process"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// apache is Apache ZooKeeper from Debian's packages, or another version from Maven Central, as Debian configures Java
// for it but with a heap of 2 GiB, the minimum that its guide recommends; forceSync, its default, is on.
type apache struct {
	speaksZooKeeper
	version string // "": Debian's
}

// NewZooKeeper finds Debian's package, or fetches a version that the tests of compatibility use.
func NewZooKeeper(version string) (System, error) {
	if version != "" && !slices.Contains(zookeeper.Versions(), version) {
		return nil, fmt.Errorf("-zookeeper %s: there are %s", version, strings.Join(zookeeper.Versions(), ", "))
	}
	_, err := zookeeper.Command(version, "")
	return &apache{version: version}, err
}

func (*apache) Name() string { return Apache }

func (a *apache) Version() (string, error) {
	zk, from := []byte(a.version), "Maven Central"
	var err error
	if a.version == "" {
		from = "Debian"
		zk, err = exec.Command("dpkg-query", "-W", "-f", "${Version}", "libzookeeper-java").Output()
	}
	if err != nil {
		return "", fmt.Errorf("asking for ZooKeeper's version: %w", err)
	}
	java, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking for Java's version: %w", err)
	}
	first, _, _ := bytes.Cut(java, []byte("\n"))
	return fmt.Sprintf("%s (%s), %s", zk, from, first), nil
}

// apacheFlags are for Java.
func apacheFlags() []string { return []string{"-Xms2g", "-Xmx2g"} }

func (*apache) Settings() []string {
	return []string{"java " + strings.Join(append(apacheFlags(), zookeeper.Flags()...), " ") + " " + zookeeper.Class +
		" zoo.cfg", shownCfg(), "forceSync is its default, yes: every transaction is synced before it is acknowledged"}
}

func (a *apache) start(e *Ensemble, o *Setup) error {
	return startZoo(e, o, func(file string) ([]string, error) {
		return zookeeper.Command(a.version, file, apacheFlags()...)
	})
}

// LiveHeap collects garbage and reads the heap in use (jcmd, part of the JDK).
func (*apache) LiveHeap(ctx context.Context, p *process.Process) (int64, error) {
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
