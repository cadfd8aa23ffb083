package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// zkLite is built from this checkout and runs with ZooKeeper's configuration.
type zkLite struct {
	speaksZooKeeper
	binary, root string
}

// newZKLite builds the binary into a directory.
func newZKLite(root, dir string) (*zkLite, error) {
	z := &zkLite{root: root, binary: filepath.Join(dir, "zk-lite")}
	c := exec.Command("go", "build", "-trimpath", "-o", z.binary, "./cmd/zk-lite")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building zk-lite: %w\n%s", err, out)
	}
	return z, nil
}

func (*zkLite) name() string { return "zk-lite" }

func (z *zkLite) version() (string, error) {
	git := func(args ...string) (string, error) {
		c := exec.Command("git", args...)
		c.Dir = z.root
		out, err := c.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", fmt.Errorf("asking for the commit: %w", err)
	}
	changed, err := git("status", "--porcelain", "--untracked-files=no", "--", "*.go", "go.mod")
	if err != nil {
		return "", fmt.Errorf("asking for changes: %w", err)
	}
	if changed != "" {
		commit += " with uncommitted changes"
	}
	return "commit " + commit, nil
}

func (z *zkLite) settings() []string {
	return []string{"zk-lite server --config zoo.cfg", shownCfg() + " (the same file)",
		"all else is its default; every entry is synced before it is acknowledged"}
}

func (z *zkLite) start(dir string, env []string) ([]*process, []string, error) {
	return startZoo(dir, env, func(file string) []string {
		return []string{z.binary, "server", "--config", file}
	})
}

// goTrace makes a Go program write a line for every garbage collection.
const goTrace = "GODEBUG=gctrace=1"

// liveHeap is what the last collection has left, of which goTrace tells.
func (*zkLite) liveHeap(_ context.Context, p *process) (int64, error) { return lastTrace(p.log) }

// lastTrace reads the last line of goTrace in a log.
func lastTrace(log string) (int64, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, fmt.Errorf("reading the traces of the garbage collector: %w", err)
	}
	return parseTrace(string(text))
}

// parseTrace reads the heap marked as live, the third of three numbers, from the
// last line like "gc 7 @1.2s 3%: ... ms cpu, 110->112->56 MB, 113 MB goal, ...".
func parseTrace(text string) (int64, error) {
	all := regexp.MustCompile(`(?m)^gc \d+ @.*, \d+->\d+->(\d+) MB,`).FindAllStringSubmatch(text, -1)
	if all == nil {
		return 0, fmt.Errorf("the log has no line of %s", goTrace)
	}
	n, err := strconv.ParseInt(all[len(all)-1][1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the live heap: %w", err)
	}
	return n << 20, nil
}

// canned is the server that does no work.
type canned struct {
	speaksZooKeeper
	binary string
}

func (*canned) name() string             { return "ceiling" }
func (*canned) version() (string, error) { return "bench/ceiling of this commit", nil }

func (*canned) settings() []string {
	return []string{"zk-lite bench ceiling --listen 127.0.0.1:PORT, three processes",
		"answers from memory without looking, stores and replicates nothing"}
}

func (c *canned) start(dir string, env []string) (all []*process, hosts []string, err error) {
	ports, err := freePorts(servers)
	if err != nil {
		return nil, nil, err
	}
	for i, port := range ports {
		host := fmt.Sprintf("127.0.0.1:%d", port)
		p, err := spawn(filepath.Join(dir, fmt.Sprint(i+1)), env, c.binary, "bench", "ceiling",
			"--listen", host)
		if err != nil {
			return all, hosts, err
		}
		all, hosts = append(all, p), append(hosts, host)
	}
	return all, hosts, nil
}

// ready is when it takes connections: it knows no four-letter words.
func (*canned) ready(_ context.Context, host string) error {
	c, err := net.DialTimeout("tcp", host, time.Second)
	if err != nil {
		return fmt.Errorf("not listening: %w", err)
	}
	return c.Close()
}

func (*canned) liveHeap(context.Context, *process) (int64, error) {
	return 0, fmt.Errorf("the ceiling has no znodes")
}
