package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/authority"
	"github.com/zk-lite/zk-lite/internal/process"
)

// devOptions are the flags of dev.
type devOptions struct {
	servers                        int
	dir                            string
	clientPort, httpPort, peerPort int
	verbose                        bool
	tls                            bool
}

// The flags for the ports of dev.
const (
	clientPortFlag = "client-port"
	httpPortFlag   = "http-port"
	peerPortFlag   = "peer-port"
)

// maxPort is the last port of TCP.
const maxPort = 65535

// electionOffset is the distance from a server's peer port to its election port, which is
// in the list of members and not opened.
const electionOffset = 1000

func devCommand() *cobra.Command {
	var o devOptions
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole ensemble in one process, for development",
		Long: `Run an ensemble of servers in this process, on loopback, with ports, disks and
elections as in production. Ctrl-C stops it. Its data stays in --data-dir: the next
run with the same directory has it.`,
		Example: `  zk-lite dev
  zk-lite dev --servers 5 --data-dir /tmp/five`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.IntVar(&o.servers, "servers", 3, "number of servers, 1 to 7")
	f.StringVar(&o.dir, "data-dir", "zk-lite-dev", "directory of the ensemble's data")
	f.IntVar(&o.clientPort, clientPortFlag, 2181, "ZooKeeper port of the first server; the others follow")
	f.IntVar(&o.httpPort, httpPortFlag, 8080, "HTTP port of the first server; the others follow")
	f.IntVar(&o.peerPort, peerPortFlag, 2888, "port between servers of the first one; the others follow")
	f.BoolVar(&o.tls, "tls", false, "speak only TLS with clients; the certificates are made below --data-dir")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print the servers' logs")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(runsServers(runtime.GOOS), o.check()); err != nil {
			return err
		}
		logs := io.Writer(os.Stderr)
		if !o.verbose {
			logs = io.Discard
		}
		logger := newLogger(logs, false, 0)
		defer process.TuneCollector(logger)()
		defer process.AdjustProcessors(logger)()
		build := readBuildInfo()
		if err := o.issue(); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "starting an ensemble of %d in this process, data in %s\n", o.servers, o.dir)
		return run(c.Context(), logger, func(fatal func(error)) (closer, error) {
			d := &dev{closed: make(chan struct{})}
			for id := 1; id <= o.servers; id++ {
				n, err := app.Open(app.Options{
					Settings: o.settings(id), Version: build.full(), Built: build.built(),
					Memory: process.Memory() / int64(o.servers),
					Logger: logger.With("server", id), Fatal: fatal,
				})
				if err != nil {
					return nil, errors.Join(portError(id, err), d.Close())
				}
				d.nodes = append(d.nodes, n)
			}
			fmt.Fprintln(c.OutOrStdout(), "waiting until all servers serve clients")
			go d.announce(c.OutOrStdout(), &o)
			return d, nil
		})
	}
	return c
}

// check finds errors in the flags, and a directory that belongs to an ensemble of
// another size.
func (o *devOptions) check() error {
	if o.servers < 1 || o.servers > 7 {
		return cli.Usage(fmt.Errorf("--servers %d: want 1 to 7", o.servers))
	}
	if err := o.checkPorts(); err != nil {
		return cli.Usage(err)
	}
	have, err := filepath.Glob(filepath.Join(o.dir, "server-*", "identity.json"))
	if err != nil {
		return fmt.Errorf("looking into %s: %w", o.dir, err)
	}
	if len(have) != 0 && len(have) != o.servers {
		return fmt.Errorf("%s holds an ensemble of %d servers; use --servers %d or another --data-dir",
			o.dir, len(have), len(have))
	}
	return nil
}

// checkPorts finds invalid ranges of ports, and ranges that overlap.
func (o *devOptions) checkPorts() error {
	type portRange struct {
		flag       string
		first, max int
	}
	ranges := []portRange{{clientPortFlag, o.clientPort, maxPort}, {httpPortFlag, o.httpPort, maxPort}}
	if o.servers > 1 { // one alone has no port for others
		ranges = append(ranges, portRange{peerPortFlag, o.peerPort, maxPort - electionOffset})
	}
	for i, r := range ranges {
		if r.first == 0 && o.servers == 1 {
			continue // any port
		}
		if r.first < 1 || r.first+o.servers-1 > r.max {
			return fmt.Errorf("--%s %d: want the first of %d ports from 1 to %d",
				r.flag, r.first, o.servers, r.max)
		}
		for _, other := range ranges[:i] {
			if max(r.first, other.first)-min(r.first, other.first) < o.servers {
				return fmt.Errorf("--%s %d and --%s %d overlap: each is the first of %d ports",
					other.flag, other.first, r.flag, r.first, o.servers)
			}
		}
	}
	return nil
}

// portError names the flag for a port that cannot be opened, in place of the setting.
func portError(id int, err error) error {
	var port *app.ListenError
	if !errors.As(err, &port) {
		return err
	}
	flag := peerPortFlag
	switch port.Setting {
	case app.ClientPortSetting, app.SecureClientPortSetting:
		flag = clientPortFlag
	case app.HTTPPortSetting:
		flag = httpPortFlag
	}
	return fmt.Errorf("server %d: %w; stop what uses the port, or choose others with --%s", id, port.Err, flag)
}

// settings are those of one server: the defaults, with everything on loopback.
func (o *devOptions) settings(id int) config.Settings {
	s, _, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		panic(fmt.Sprintf("dev: the defaults are wrong: %v", err)) // a test loads them
	}
	s.MyID = id
	s.DataDir = filepath.Join(o.dir, fmt.Sprintf("server-%d", id))
	s.DataLogDir = s.DataDir
	s.ClientPortAddress, s.ClientPort = "127.0.0.1", o.clientPort+id-1
	s.AdminAddress, s.AdminPort = "127.0.0.1", o.httpPort+id-1
	s.ZooKeeper.Words = []string{"*"}
	s.ZooKeeper.MaxPerAddress = 0
	s.Standalone = o.servers == 1
	if o.tls {
		s.SecureClientPort, s.SecureClientPortAddress, s.ClientPort = s.ClientPort, s.ClientPortAddress, config.NoPort
		s.AdminForceHTTPS = true
		s.TLS.Key.Location, s.TLS.Trust.Location = o.file("server.pem"), o.file("ca.pem")
	}
	for k := 1; k <= o.servers; k++ {
		s.Servers = append(s.Servers, config.Server{
			ID: k, Host: "127.0.0.1", PeerPort: o.peerPort + k - 1, ElectionPort: o.peerPort + electionOffset + k - 1,
			Role: config.Participant, ClientHost: "127.0.0.1", ClientPort: o.clientPort + k - 1,
		})
	}
	return s
}

// dev is the running ensemble.
type dev struct {
	nodes  []*app.Server
	closed chan struct{}
}

// announce waits for a leader and prints the addresses and what to try next.
func (d *dev) announce(w io.Writer, o *devOptions) {
	for !d.serving() {
		select {
		case <-d.closed:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	var hosts []string
	for _, n := range d.nodes {
		hosts = append(hosts, n.ClientAddr().String())
	}
	fmt.Fprintf(w, "\nzk-lite %s: an ensemble of %d is running, data in %s\n\n", version, len(d.nodes), o.dir)
	fmt.Fprintf(w, "  ZooKeeper clients   %s\n", strings.Join(hosts, ","))
	scheme, curl := "http", "curl"
	if o.tls {
		scheme, curl = "https", "curl --cacert "+o.file("ca.pem")
	}
	first := fmt.Sprintf("%s://%s", scheme, d.nodes[0].HTTPAddr())
	fmt.Fprintf(w, "  dashboard           %s/ui/\n", first)
	for i, n := range d.nodes {
		fmt.Fprintf(w, "  server %d            %s://%s/readyz   %s\n", i+1, scheme, n.HTTPAddr(),
			n.Server().Status().Role)
	}
	fmt.Fprintf(w, "\nTry, in another terminal:\n\n")
	fmt.Fprintf(w, "  export ZK_LITE_SERVER=%s\n", hosts[0])
	if o.tls {
		fmt.Fprintf(w, "  export ZK_LITE_TLS_CA=%s ZK_LITE_TLS_CERT=%s\n", o.file("ca.pem"), o.file("client.pem"))
	}
	program := programName(os.Args[0])
	fmt.Fprintf(w, "  %s ui                # the dashboard, logged in\n", program)
	fmt.Fprintf(w, "  %s status\n  %s shell\n", program, program)
	fmt.Fprintf(w, "  %s %s/readyz\n\nCtrl-C stops it.\n", curl, first)
}

// programName is what the user can type to run this program again.
func programName(arg0 string) string {
	if strings.Contains(arg0, "go-build") { // of go run, which has removed it by then
		return "go run ./cmd/zk-lite"
	}
	return arg0
}

func (d *dev) serving() bool {
	for _, n := range d.nodes {
		if !n.Server().Serving() {
			return false
		}
	}
	return true
}

// Close stops all servers at the same time: none needs to hand its leadership over.
func (d *dev) Close() error {
	close(d.closed)
	errs := make([]error, len(d.nodes))
	var wg sync.WaitGroup
	for i, n := range d.nodes {
		wg.Go(func() { errs[i] = n.Close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// devLife is how long the certificates of dev are good; a later run makes new ones.
const devLife = 365 * 24 * time.Hour

// file is a file of the authority of dev --tls.
func (o *devOptions) file(name string) string { return filepath.Join(o.dir, "tls", name) }

// issue makes the certificates of dev --tls: an authority once, and what it signs at each start.
func (o *devOptions) issue() error {
	if !o.tls {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	dir := filepath.Dir(o.file("ca.pem"))
	ca, err := authority.Open(dir)
	if err != nil {
		if ca, err = authority.Create(dir, "zk-lite dev", 10*devLife); err != nil {
			return err
		}
	}
	if _, err := ca.Issue("server", []string{"localhost", "127.0.0.1", "::1"}, devLife, true); err != nil {
		return err
	}
	_, err = ca.Issue("client", nil, devLife, true)
	return err
}
