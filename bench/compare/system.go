package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// servers is the size of every ensemble.
const servers = 3

// readyTime is how long an ensemble may take to serve.
const readyTime = 60 * time.Second

// system is something to be measured.
type system interface {
	name() string
	// version is what it says of itself.
	version() (string, error)
	// settings are the lines that a reader needs to judge the comparison, the
	// command and the configuration of the first server.
	settings() []string
	// start prepares and starts the servers in an empty directory.
	start(dir string, env []string) ([]*process, []string, error)
	// ready is nil when a server takes clients.
	ready(ctx context.Context, host string) error
	// run puts a load on the servers.
	run(ctx context.Context, r *row, cfg load.Config, after time.Duration) (*load.Result, error)
	// liveHeap is the memory of a server that is in use, after a collection.
	liveHeap(ctx context.Context, p *process) (int64, error)
}

// ensemble is a system that runs.
type ensemble struct {
	system
	dir       string
	processes []*process
	hosts     []string
}

// up starts a system in a directory of its own and waits until all of its
// servers serve.
func up(ctx context.Context, s system, base string, env []string) (*ensemble, error) {
	dir, err := os.MkdirTemp(base, s.name()+"-")
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.name(), err)
	}
	e := &ensemble{system: s, dir: dir}
	if e.processes, e.hosts, err = s.start(dir, env); err == nil {
		err = e.wait(ctx)
	}
	if err != nil {
		if len(e.processes) > 0 {
			err = fmt.Errorf("%w; the first server's log ends with:\n%s", err, e.processes[0].tail())
		}
		e.down()
		return nil, fmt.Errorf("starting %s: %w", s.name(), err)
	}
	return e, nil
}

func (e *ensemble) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i, host := range e.hosts {
		for err := e.ready(ctx, host); err != nil; err = e.ready(ctx, host) {
			select {
			case <-tick.C:
			case <-e.processes[i].ended:
				return fmt.Errorf("server %d has ended", i+1)
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			}
		}
	}
	return nil
}

// down stops all servers and deletes their data.
func (e *ensemble) down() {
	for _, p := range e.processes {
		p.stop()
	}
	if err := os.RemoveAll(e.dir); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
	}
}

func (e *ensemble) pids() (pids []int) {
	for _, p := range e.processes {
		pids = append(pids, p.pid())
	}
	return pids
}

// speaksZooKeeper is what systems of that protocol share.
type speaksZooKeeper struct{}

// ready asks for the mode, which a server has that serves.
func (speaksZooKeeper) ready(ctx context.Context, host string) error {
	text, err := load.FourLetter(ctx, host, "srvr")
	if err == nil && !strings.Contains(text, "Mode: ") {
		err = fmt.Errorf("%s is not serving: %s", host, text)
	}
	return err
}

func (speaksZooKeeper) run(
	ctx context.Context, r *row, cfg load.Config, after time.Duration,
) (*load.Result, error) {
	switch r.kind {
	case kindWatch:
		return load.Watch(ctx, cfg)
	case kindSessions:
		return load.Sessions(ctx, cfg)
	case kindFailover:
		kill, err := load.KillLeader(cfg.Hosts, cfg.PIDs)
		if err != nil {
			return nil, err
		}
		return load.Failover(ctx, cfg, kill, after)
	case kindIdle:
		return load.Idle(ctx, cfg)
	case kindMemory:
		return load.Fill(ctx, cfg)
	}
	return load.Run(ctx, cfg)
}

// zooCfg is the configuration that ZooKeeper and zk-lite share, line by line.
func zooCfg(dir string, id int, ports []int) []string {
	lines := []string{"tickTime=2000", "initLimit=10", "syncLimit=5",
		"dataDir=" + filepath.Join(dir, "data"), fmt.Sprintf("clientPort=%d", ports[3*id-3]),
		"clientPortAddress=127.0.0.1", "maxClientCnxns=0", "4lw.commands.whitelist=*",
		"admin.enableServer=false"}
	for k := 1; k <= servers; k++ {
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", k, ports[3*k-2], ports[3*k-1]))
	}
	return lines
}

// writeZoo writes zoo.cfg and myid of one server and returns the path of the
// first.
func writeZoo(dir string, id int, lines []string) (string, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return "", fmt.Errorf("preparing a server: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, id), 0o640); err != nil {
		return "", fmt.Errorf("preparing a server: %w", err)
	}
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o640); err != nil {
		return "", fmt.Errorf("preparing a server: %w", err)
	}
	return file, nil
}

// startZoo starts servers that read a zoo.cfg; command returns a server's
// program and arguments.
func startZoo(
	dir string, env []string, command func(file string) []string,
) (all []*process, hosts []string, err error) {
	ports, err := freePorts(3 * servers)
	if err != nil {
		return nil, nil, err
	}
	for id := 1; id <= servers; id++ {
		own := filepath.Join(dir, fmt.Sprintf("server-%d", id))
		file, err := writeZoo(own, id, zooCfg(own, id, ports))
		if err != nil {
			return all, hosts, err
		}
		p, err := spawn(own, env, command(file)...)
		if err != nil {
			return all, hosts, err
		}
		all, hosts = append(all, p), append(hosts, fmt.Sprintf("127.0.0.1:%d", ports[3*id-3]))
	}
	return all, hosts, nil
}

// shownCfg is zooCfg as a reader sees it, without this machine's directories.
func shownCfg() string {
	ports := []int{2181, 2888, 3888, 2182, 2889, 3889, 2183, 2890, 3890}
	return strings.Join(zooCfg("DIR", 1, ports), "; ")
}
