package system

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
)

// ZKLite runs with ZooKeeper's configuration.
type ZKLite struct {
	speaksZooKeeper
	name, binary string
	root         string   // of the checkout from which it was built; "" if only the binary is known
	lines        []string // of every zoo.cfg
	// TLS is for its clients; nil: they speak without.
	TLS *tls.Config
}

// Ours is the name of the zk-lite that is built from this checkout, Apache that of Apache ZooKeeper.
const (
	Ours   = "zk-lite"
	Apache = "ZooKeeper"
)

// NewBuild is an earlier build of zk-lite, for a comparison with this checkout's.
func NewBuild(name, binary string) (*ZKLite, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(name) {
		return nil, fmt.Errorf("a build's name %q must consist of letters, digits, dots and dashes", name)
	}
	path, err := exec.LookPath(binary)
	if err == nil {
		path, err = filepath.Abs(path) // servers have directories of their own
	}
	if err != nil {
		return nil, fmt.Errorf("the binary of %s: %w", name, err)
	}
	return &ZKLite{name: name, binary: path}, nil
}

// NewZKLite builds this checkout's binary into a directory.
func NewZKLite(root, dir string) (*ZKLite, error) {
	z := &ZKLite{name: Ours, root: root, binary: filepath.Join(dir, "zk-lite")}
	c := exec.Command("go", "build", "-o", z.binary, "./cmd/zk-lite")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building zk-lite: %w\n%s", err, out)
	}
	return z, nil
}

// Name implements System.
func (z *ZKLite) Name() string { return z.name }

// Binary is the path of the program, which also has the load generator.
func (z *ZKLite) Binary() string { return z.binary }

// Version is the commit of this checkout, or the checksum of a binary that was built before.
func (z *ZKLite) Version() (string, error) {
	if z.root == "" {
		content, err := os.ReadFile(z.binary)
		if err != nil {
			return "", fmt.Errorf("reading the binary of %s: %w", z.name, err)
		}
		return fmt.Sprintf("%s, sha256 %.6x", z.binary, sha256.Sum256(content)), nil
	}
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

// Settings implements System.
func (z *ZKLite) Settings() []string {
	return []string{"zk-lite server --config zoo.cfg", shownCfg() + " (the same file)",
		"all else is its default; every entry is synced before it is acknowledged"}
}

func (z *ZKLite) start(e *Ensemble, o *Setup) error {
	with := *o
	with.Lines = slices.Concat(o.Lines, z.lines)
	return startZoo(e, &with, func(file string) ([]string, error) {
		return []string{z.binary, "server", "--config", file}, nil
	})
}

// GoTrace makes a Go program write a line for every garbage collection.
const GoTrace = "GODEBUG=gctrace=1"

// LiveHeap is the live heap after the last collection, as GoTrace reports it.
func (*ZKLite) LiveHeap(_ context.Context, p *process.Process) (int64, error) {
	return lastTrace(p.LogFile())
}

// lastTrace reads the last line of GoTrace in a log.
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
		return 0, fmt.Errorf("the log has no line of %s", GoTrace)
	}
	n, err := strconv.ParseInt(all[len(all)-1][1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the live heap: %w", err)
	}
	return n << 20, nil
}

// NewNoop is the server that does no work, which is a subcommand of zk-lite.
func NewNoop(z *ZKLite) System { return &noop{binary: z.binary} }

// noop is the server that does no work.
type noop struct {
	speaksZooKeeper
	binary string
}

func (*noop) Name() string             { return "noop" }
func (*noop) Version() (string, error) { return "bench/noop of this commit", nil }

func (*noop) Settings() []string {
	return []string{"zk-lite bench noop --listen 127.0.0.1:PORT, three processes",
		"answers from memory without looking, stores and replicates nothing"}
}

func (c *noop) start(e *Ensemble, o *Setup) error {
	ports, err := e.take(o.Servers)
	if err != nil {
		return err
	}
	for i, port := range ports {
		host := fmt.Sprintf("127.0.0.1:%d", port)
		err := e.spawn(filepath.Join(e.dir, fmt.Sprint(i+1)), host, c.binary, "bench", "noop",
			"--listen", host)
		if err != nil {
			return err
		}
	}
	return nil
}

// ready is when it takes connections: it knows no four-letter words.
func (*noop) ready(_ context.Context, host string) error {
	c, err := net.DialTimeout("tcp", host, time.Second)
	if err != nil {
		return fmt.Errorf("not listening: %w", err)
	}
	return c.Close()
}

func (*noop) LiveHeap(context.Context, *process.Process) (int64, error) {
	return 0, fmt.Errorf("the no-op server has no znodes")
}

// Secure is this zk-lite with certificates of an authority in a new directory below dir: servers speak TLS to each
// other and, if clients is true, with clients, which show certificates as well. The port for clients still accepts
// connections without TLS, which ask whether servers are ready.
func (z *ZKLite) Secure(name, dir string, clients bool) (*ZKLite, error) {
	dir, err := os.MkdirTemp(dir, "tls-")
	if err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	for _, args := range [][]string{{"init"}, {"issue", "server", "--host", "127.0.0.1"}, {"issue", "client"}} {
		c := exec.Command(z.binary, append([]string{"tls", "--dir", filepath.Join(dir, "ca")}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("making certificates: %w\n%s", err, out)
		}
	}
	file := func(name string) string { return filepath.Join(dir, "ca", name) }
	stores := func(prefix string) []string {
		return []string{
			prefix + "keyStore.location=" + file("server.pem"), prefix + "trustStore.location=" + file("ca.pem"),
		}
	}
	s := *z
	s.name, s.lines = name, append(stores("ssl.quorum."), "sslQuorum=true")
	if !clients {
		return &s, nil
	}
	s.lines = append(append(s.lines, stores("ssl.")...), "client.portUnification=true")
	roots, err := os.ReadFile(file("ca.pem"))
	pair, pairErr := tls.LoadX509KeyPair(file("client.pem"), file("client.pem"))
	if err := errors.Join(err, pairErr); err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	s.TLS = &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	s.TLS.RootCAs.AppendCertsFromPEM(roots)
	return &s, nil
}

// Run implements System.
func (z *ZKLite) Run(ctx context.Context, k Kind, cfg load.Config, after time.Duration) (*load.Result, error) {
	cfg.TLS = z.TLS
	return z.speaksZooKeeper.Run(ctx, k, cfg, after)
}
