package system

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
)

// etcd is etcd's own server program, built from its module.
type etcd struct {
	binary, loader string
}

// NewEtcd builds server and load generator into a directory.
func NewEtcd(root, dir string) (System, error) {
	e := &etcd{binary: filepath.Join(dir, "etcd"), loader: filepath.Join(dir, "etcdload")}
	for binary, pkg := range map[string]string{
		e.binary: "go.etcd.io/etcd/server/v3", e.loader: ".",
	} {
		// -mod=mod: a new version of one of our own dependencies is not an error there.
		c := exec.Command("go", "build", "-mod=mod", "-trimpath", "-o", binary, pkg)
		c.Dir = filepath.Join(root, "bench", "system", "etcdload")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	}
	return e, nil
}

func (*etcd) Name() string { return "etcd" }

func (e *etcd) Version() (string, error) {
	out, err := exec.Command(e.binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for etcd's version: %w", err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "etcd Version: "), nil
}

func (e *etcd) Settings() []string {
	flags := e.flags("DIR", 1, []int{2379, 2380, 2381, 2382, 2383, 2384})
	return []string{"etcd " + strings.Join(flags, " "),
		"syncs every entry before it is acknowledged (--unsafe-no-fsync is not given)",
		"gets are serializable, as the others' are: answered by the server that is asked"}
}

// flags are those that an ensemble on one machine needs, and a quota above the
// default of 2 GiB, which a long run without compaction would reach.
func (*etcd) flags(dir string, id int, ports []int) []string {
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	var cluster []string
	for k := 1; k <= len(ports)/2; k++ {
		cluster = append(cluster, fmt.Sprintf("n%d=%s", k, url(ports[2*k-1])))
	}
	client, peer := url(ports[2*id-2]), url(ports[2*id-1])
	return []string{"--name", fmt.Sprintf("n%d", id), "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(cluster, ","), "--log-level", "warn",
		"--quota-backend-bytes", "8589934592"}
}

func (e *etcd) start(up *Ensemble, o *Setup) error {
	ports, err := up.take(2 * o.Servers)
	if err != nil {
		return err
	}
	for id := 1; id <= o.Servers; id++ {
		own, host := filepath.Join(up.dir, fmt.Sprint(id)), fmt.Sprintf("127.0.0.1:%d", ports[2*id-2])
		err := up.spawn(own, host, append([]string{e.binary}, e.flags(own, id, ports)...)...)
		if err != nil {
			return err
		}
	}
	up.HTTP = up.Hosts // its gateway is on the client port
	return nil
}

func (*etcd) ready(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/health", nil)
	if err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not healthy: %s", host, answer.Status)
	}
	return nil
}

// openCallers is the most goroutines of a connection in an open loop, where they share its rate. A request that is due
// while all of them wait counts from when it was due.
const openCallers = 32

// Run starts the load generator and follows its output.
func (e *etcd) Run(
	ctx context.Context, k Kind, cfg load.Config, after time.Duration,
) (*load.Result, error) {
	kind := map[Kind]string{Load: "load", Memory: "fill", Churn: "churn", Failover: "failover"}[k]
	if kind == "" {
		return nil, errors.New("etcd has no counterpart of it")
	}
	var killed string
	if k == Failover {
		leader, err := etcdLeader(ctx, cfg.Hosts)
		if err != nil {
			return nil, err
		}
		killed = cfg.Hosts[leader]
		cfg.Measured = func(begun bool) {
			if begun {
				time.AfterFunc(after, func() { _ = syscall.Kill(cfg.PIDs[leader], syscall.SIGKILL) })
			}
		}
	}
	if cfg.Rate > 0 {
		cfg.InFlight = min(cfg.InFlight, openCallers)
	}
	input, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd's load: %w", err)
	}
	c := exec.CommandContext(ctx, e.loader, kind)
	c.Stdin = bytes.NewReader(input)
	var out, trouble bytes.Buffer
	c.Stdout = &out
	words, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("etcd's load: %w", err)
	}
	follow(words, cfg.Measured, &trouble)
	if err := c.Wait(); err != nil {
		return nil, fmt.Errorf("etcd's load: %w: %s", err, trouble.Bytes())
	}
	res := &load.Result{}
	err = json.Unmarshal(out.Bytes(), res)
	if res.Failover != nil {
		res.Failover.Killed, res.Failover.KilledAt = killed, after
	}
	return res, err
}

// etcdLeader asks the servers which of them leads.
func etcdLeader(ctx context.Context, hosts []string) (int, error) {
	for i, host := range hosts {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+"/v3/maintenance/status",
			strings.NewReader("{}"))
		if err != nil {
			return 0, fmt.Errorf("asking for etcd's leader: %w", err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, fmt.Errorf("asking for etcd's leader: %w", err)
		}
		var status struct {
			Header struct {
				Member string `json:"member_id"`
			}
			Leader string
		}
		err = errors.Join(json.NewDecoder(answer.Body).Decode(&status), answer.Body.Close())
		if err != nil {
			return 0, fmt.Errorf("asking for etcd's leader: %w", err)
		}
		if status.Leader != "" && status.Leader == status.Header.Member {
			return i, nil
		}
	}
	return 0, errors.New("no server of etcd says that it leads")
}

// follow passes on begin and end, and keeps the rest for messages.
func follow(words io.Reader, measured func(bool), trouble *bytes.Buffer) {
	for lines := bufio.NewScanner(words); lines.Scan(); {
		word := lines.Text()
		switch {
		case word != "begin" && word != "end":
			fmt.Fprintln(trouble, word)
		case measured != nil:
			measured(word == "begin")
		}
	}
}

func (*etcd) LiveHeap(_ context.Context, p *process.Process) (int64, error) {
	return lastTrace(p.LogFile())
}
