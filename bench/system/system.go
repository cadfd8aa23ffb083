package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
)

// DefaultServers is the size of an ensemble unless another is requested.
const DefaultServers = 3

const (
	// readyTime is how long an ensemble may take to serve.
	readyTime = 60 * time.Second
	// stopTime is how long a server may take to end before it is killed.
	stopTime = 20 * time.Second
)

// System is something to be measured.
type System interface {
	Name() string
	// Version is the version that it reports.
	Version() (string, error)
	// Settings are the lines that a reader needs to judge the comparison, the
	// command and the configuration of the first server.
	Settings() []string
	// start prepares and starts the servers in an empty directory. On errors it has put the
	// running ones into e.
	start(e *Ensemble, o *Setup) error
	// ready is nil when a server takes clients.
	ready(ctx context.Context, host string) error
	// Run puts a load on the servers; a leader is killed after a part of the time.
	Run(ctx context.Context, k Kind, cfg load.Config, after time.Duration) (*load.Result, error)
	// LiveHeap is the memory of a server that is in use, after a collection.
	LiveHeap(ctx context.Context, p *process.Process) (int64, error)
}

// Kind is a way to measure.
type Kind int

// The kinds, after the functions of package load.
const (
	Load Kind = iota
	Watch
	Sessions
	Idle
	Churn
	Failover
	Memory
)

// Setup of an ensemble. The zero value is three servers.
type Setup struct {
	Servers int // 0: DefaultServers
	// Observers are as many of the servers, the last ones, that have no vote, of systems with a zoo.cfg.
	Observers int
	Env       []string // of the processes
	// HTTP opens the HTTP port of systems that have one closed by default.
	HTTP bool
	// Lines are added to every server's zoo.cfg.
	Lines []string
	// Sync is how much longer the syncs of each server take, of the last one those of all that
	// follow; none: they are left alone, and not counted.
	Sync []slowdisk.Profile
	Seed uint64 // of Sync
	Fill bool   // the disks of Sync can be filled
	// Network is where servers with a zoo.cfg are, each in its place; nil: all are on loopback.
	Network *network.Network
}

// host is the address of a server.
func (o *Setup) host(id int) string {
	if o.Network != nil {
		return o.Network.IP(id)
	}
	return "127.0.0.1"
}

// disk is that of the server that is spawned next.
func (o *Setup) disk(id int) *slowdisk.Disk {
	if len(o.Sync) == 0 {
		return nil
	}
	d := slowdisk.New(o.Sync[min(id, len(o.Sync))-1], o.Seed+uint64(id))
	d.Fillable = o.Fill
	return d
}

// Ensemble is a system that runs.
type Ensemble struct {
	System
	Processes []*process.Process
	Hosts     []string // of the client ports
	HTTP      []string // of the HTTP ports, if there are any
	// Disks are the servers' where Setup.Sync slows them, else nil.
	Disks []*slowdisk.Disk

	dir      string
	ports    []*ports.Reservation
	commands []process.Command // of the processes, to start them again
	setup    *Setup
}

// DataDir is where a server keeps its data, of ZooKeeper and zk-lite.
func (e *Ensemble) DataDir(server int) string { return filepath.Join(e.commands[server].Dir, "data") }

// Up starts a system in a directory of its own and waits until all of its
// servers serve.
func Up(ctx context.Context, s System, base string, o Setup) (*Ensemble, error) {
	if o.Servers == 0 {
		o.Servers = DefaultServers
	}
	dir, err := os.MkdirTemp(base, s.Name()+"-")
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Name(), err)
	}
	e := &Ensemble{System: s, dir: dir, setup: &o}
	if err = s.start(e, &o); err == nil {
		err = e.Wait(ctx)
	}
	if err != nil {
		if len(e.Processes) > 0 {
			err = fmt.Errorf("%w; the first server's log ends with:\n%s", err, e.Processes[0].Tail())
		}
		e.Down()
		return nil, fmt.Errorf("starting %s: %w", s.Name(), err)
	}
	return e, nil
}

// spawn adds a server, whose output goes to dir/log.
func (e *Ensemble) spawn(dir, host string, args ...string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("starting a server: %w", err)
	}
	c := process.Command{Args: args, Dir: dir, Env: e.setup.Env, Log: filepath.Join(dir, "log")}
	disk := e.setup.disk(len(e.Processes) + 1)
	if disk != nil {
		c.Disk = disk
	}
	p, err := process.Start(c)
	if err != nil {
		return err
	}
	e.Disks = append(e.Disks, disk)
	e.Processes, e.Hosts, e.commands = append(e.Processes, p), append(e.Hosts, host), append(e.commands, c)
	return nil
}

// take returns n ports that are the ensemble's until it goes down.
func (e *Ensemble) take(n int) ([]int, error) {
	r, err := ports.Reserve(n)
	if err != nil {
		return nil, fmt.Errorf("starting servers: %w", err)
	}
	e.ports = append(e.ports, r)
	return r.Ports, nil
}

// Restart starts a stopped server again, on its stored data. Wait reports when it serves.
func (e *Ensemble) Restart(i int) error {
	p, err := process.Start(e.commands[i])
	if err != nil {
		return err
	}
	e.Processes[i] = p
	return nil
}

// Ready is nil if a server takes clients.
func (e *Ensemble) Ready(ctx context.Context, i int) error { return e.ready(ctx, e.Hosts[i]) }

// Wait waits until all servers serve.
func (e *Ensemble) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i, host := range e.Hosts {
		for err := e.ready(ctx, host); err != nil; err = e.ready(ctx, host) {
			select {
			case <-tick.C:
			case <-e.Processes[i].Ended():
				return fmt.Errorf("server %d has ended", i+1)
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			}
		}
	}
	return nil
}

// Stop ends all servers, one after the other. Restart starts them again.
func (e *Ensemble) Stop() {
	for i, p := range e.Processes {
		if e.Disks[i] != nil {
			e.Disks[i].Release()
		}
		_ = p.Stop(stopTime) // killed if it does not end: the results do not depend on it
	}
}

// Down stops all servers and deletes their data.
func (e *Ensemble) Down() {
	e.Stop()
	for _, r := range e.ports {
		r.Release()
	}
	if err := os.RemoveAll(e.dir); err != nil {
		fmt.Fprintln(os.Stderr, "deleting the servers' data:", err)
	}
}

// PIDs are the servers' processes, in the order of Hosts.
func (e *Ensemble) PIDs() (pids []int) {
	for _, p := range e.Processes {
		pids = append(pids, p.PID())
	}
	return pids
}

// speaksZooKeeper is shared by systems of that protocol.
type speaksZooKeeper struct{}

// ready asks for the mode, which only a serving server has.
func (speaksZooKeeper) ready(ctx context.Context, host string) error {
	text, err := load.FourLetter(ctx, host, "srvr")
	if err == nil && !strings.Contains(text, "Mode: ") {
		err = fmt.Errorf("%s is not serving: %s", host, text)
	}
	return err
}

// Run uses package load.
func (speaksZooKeeper) Run(
	ctx context.Context, k Kind, cfg load.Config, after time.Duration,
) (*load.Result, error) {
	switch k {
	case Watch:
		return load.Watch(ctx, cfg)
	case Sessions:
		return load.Sessions(ctx, cfg)
	case Churn:
		return load.Churn(ctx, cfg)
	case Failover:
		kill, err := load.KillLeader(cfg.Hosts, cfg.PIDs, cfg.TLS)
		if err != nil {
			return nil, err
		}
		return load.Failover(ctx, cfg, kill, after)
	case Idle:
		return load.Idle(ctx, cfg, false)
	case Memory:
		return load.Fill(ctx, cfg)
	}
	return load.Run(ctx, cfg)
}

// zooCfg is the configuration that ZooKeeper and zk-lite share, line by line.
func zooCfg(dir string, id int, ports []int, o *Setup) []string {
	lines := []string{"tickTime=2000", "initLimit=10", "syncLimit=5",
		"dataDir=" + filepath.Join(dir, "data"), fmt.Sprintf("clientPort=%d", ports[3*id-3]),
		"clientPortAddress=" + o.host(id), "maxClientCnxns=0", "4lw.commands.whitelist=*",
		"admin.enableServer=false"}
	if o.HTTP {
		lines[len(lines)-1] = fmt.Sprintf("admin.serverPort=%d", ports[3*o.Servers+id-1])
		lines = append(lines, "admin.serverAddress="+o.host(id))
	}
	if o.Servers == 1 {
		return append(lines, o.Lines...)
	}
	for k := 1; k <= o.Servers; k++ {
		role := ""
		if k > o.Servers-o.Observers {
			role = ":observer"
		}
		lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d%s", k, o.host(k), ports[3*k-2], ports[3*k-1], role))
	}
	if id > o.Servers-o.Observers {
		lines = append(lines, "peerType=observer")
	}
	return append(lines, o.Lines...)
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
func startZoo(e *Ensemble, o *Setup, command func(file string) ([]string, error)) error {
	ports, err := e.take(4 * o.Servers)
	if err != nil {
		return err
	}
	for id := 1; id <= o.Servers; id++ {
		own := filepath.Join(e.dir, fmt.Sprintf("server-%d", id))
		file, err := writeZoo(own, id, zooCfg(own, id, ports, o))
		if err != nil {
			return err
		}
		args, err := command(file)
		if err != nil {
			return err
		}
		if o.Network != nil {
			args = o.Network.Command(id, args)
		}
		err = e.spawn(own, fmt.Sprintf("%s:%d", o.host(id), ports[3*id-3]), args...)
		if err != nil {
			return err
		}
		if o.HTTP {
			e.HTTP = append(e.HTTP, fmt.Sprintf("%s:%d", o.host(id), ports[3*o.Servers+id-1]))
		}
	}
	return nil
}

// shownCfg is zooCfg as a reader sees it, without this machine's directories.
func shownCfg() string {
	ports := []int{2181, 2888, 3888, 2182, 2889, 3889, 2183, 2890, 3890}
	return strings.Join(zooCfg("DIR", 1, ports, &Setup{Servers: 3}), "; ")
}
