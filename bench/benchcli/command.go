package benchcli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/noop"
	"github.com/zk-lite/zk-lite/bench/report"
)

// The forms of output.
const (
	outputText = "text"
	outputJSON = "json"
)

// options are the values of the flags that the load has no field for.
type options struct {
	cfg     load.Config
	servers string
	mix     string
	output  string
	html    string
	svg     string
	quiet   bool
	secure  Secure
}

// Secure has the flags for TLS that all commands of the program share.
type Secure interface {
	Bind(f *pflag.FlagSet)
	Config() (*tls.Config, error) // nil: no TLS
}

// Command returns "bench" with its subcommands.
func Command(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Put load on ZooKeeper-compatible servers and measure it",
		Long: `Put load on servers that speak the ZooKeeper protocol and measure throughput, latency,
and, given --pids, what it costs the servers.

A closed loop (the default) sends a connection's next request when a reply has made room. An
open loop (--rate) sends at fixed times whatever the servers do, and counts latency from the
time at which a request was intended: what waits behind a stall is counted as waiting.

A mix is one operation or several with weights, "get=90,set=10" or "90% get 10% set": get, set,
create, delete, exists, children, multi, sync. A delete deletes what its connection has created,
and creates when there is nothing to delete. Or it is a workload of YCSB, with its popularity of keys
(Zipf's law, 0.99): ycsb-a (50 % get, 50 % set), ycsb-b (95 % get), ycsb-c (get), ycsb-d (95 % get of
what was created last, 5 % create).

Everything happens below --prefix, which is deleted at start and end.`,
		Example: `  zk-lite bench --mix get=90,set=10 --connections 50
  zk-lite bench --mix set --rate 5000 --duration 1m --html report.html
  zk-lite bench --mix ycsb-a --keys 1000000 --value-size 64 --rate 5000
  zk-lite bench watch --connections 1000   # with maxClientCnxns=0
  zk-lite bench failover --pids 101,102,103 --kill-leader-after 2s`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVarP(&o.mix, "mix", "m", o.cfg.Mix.String(), "operations and weights")
	f.IntVarP(&o.cfg.InFlight, "in-flight", "d", o.cfg.InFlight,
		fmt.Sprintf("requests of a connection without a reply (with --rate: at most, %d)", load.OpenInFlight))
	f.Float64VarP(&o.cfg.Rate, "rate", "r", 0, "open loop: requests a second of all connections")
	f.IntVar(&o.cfg.Keys, "keys", o.cfg.Keys, "znodes that are read and written")
	f.Float64Var(&o.cfg.Zipf, "zipf", 0, "exponent of the popularity of keys; 0 is uniform")
	f.IntVar(&o.cfg.MultiSize, "multi-size", o.cfg.MultiSize, "operations of a multi")
	f.BoolVar(&o.cfg.Reuse, "reuse", false, "find in place the znodes of a run with --keep and as many --keys")
	f.BoolVar(&o.cfg.Return, "return", false, "return to the session, at once, when a connection ends")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) {
			if err := o.cfg.SetMix(o.mix); err != nil {
				return nil, err
			}
			if o.cfg.Rate > 0 && !f.Changed("in-flight") {
				o.cfg.InFlight = load.OpenInFlight
			}
			return load.Run(ctx, o.cfg)
		})
	}
	o.common(c)
	c.AddCommand(watchCommand(secure), sessionsCommand(secure), failoverCommand(secure), idleCommand(secure),
		fillCommand(secure), noopCommand(), httpCommand(secure))
	secure.Bind(c.PersistentFlags())
	return c
}

// common adds the flags of all subcommands.
func (o *options) common(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&o.servers, "server", "s", "127.0.0.1:2181",
		"servers, `host:port,...`; connections are spread over them")
	f.IntVarP(&o.cfg.Connections, "connections", "c", o.cfg.Connections, "connections, a session each")
	f.DurationVarP(&o.cfg.Duration, "duration", "t", o.cfg.Duration, "time that is measured")
	f.DurationVarP(&o.cfg.WarmUp, "warm-up", "w", o.cfg.WarmUp, "time before that, not measured")
	f.IntVar(&o.cfg.ValueSize, "value-size", o.cfg.ValueSize, "bytes of a znode")
	f.StringVar(&o.cfg.Prefix, "prefix", o.cfg.Prefix, "znode below which all happens; it is deleted")
	f.BoolVar(&o.cfg.Keep, "keep", false, "leave the znodes at the end")
	f.Uint64Var(&o.cfg.Seed, "seed", o.cfg.Seed, "of everything random")
	f.DurationVar(&o.cfg.SessionTimeout, "session-timeout", o.cfg.SessionTimeout, "of the sessions")
	f.IntSliceVar(&o.cfg.PIDs, "pids", nil,
		"the servers' processes on this machine, to measure CPU and memory; in the order of --server")
	f.DurationVar(&o.cfg.Interval, "interval", o.cfg.Interval,
		"between two lines of progress and two points of a plot")
	f.StringVar(&o.cfg.Local, "local-address", "", "`IP` address from which to connect")
	f.StringVar(&o.cfg.Auth, "auth", "", "identity of the clients, `SCHEME:CREDENTIALS`, as digest:user:password")
	f.StringVarP(&o.output, "output", "o", outputText, "output format, text or json")
	f.StringVar(&o.html, "html", "", "also write a page with plots to a `file`")
	f.StringVar(&o.svg, "svg", "", "also write the plots to a `file`")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress on standard error")
}

// run measures and prints.
func (o *options) run(
	c *cobra.Command, measure func(context.Context) (*load.Result, error),
) error {
	if o.output != outputText && o.output != outputJSON {
		return fmt.Errorf("--output %q: %s and %s are possible", o.output, outputText, outputJSON)
	}
	var err error
	if o.cfg.TLS, err = o.secure.Config(); err != nil {
		return err
	}
	o.cfg.Hosts = strings.FieldsFunc(o.servers, func(r rune) bool { return r == ',' || r == ' ' })
	if !o.quiet {
		o.cfg.Progress = func(s load.Sample) { progress(c.ErrOrStderr(), s) }
	}
	res, err := measure(c.Context())
	if res == nil {
		return err
	}
	// Results measured before an error or an interrupt are shown all the same.
	return errors.Join(o.show(c.OutOrStdout(), res), err)
}

func (o *options) show(w io.Writer, res *load.Result) error {
	render := report.Text
	if o.output == outputJSON {
		render = report.JSON
	}
	err := render(w, res)
	return errors.Join(err, write(o.html, res, report.HTML), write(o.svg, res, report.SVG))
}

// write renders into a file, if one is named.
func write(name string, res *load.Result, render func(io.Writer, *load.Result) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return errors.Join(render(f, res), f.Close())
}

func progress(w io.Writer, s load.Sample) {
	warm := ""
	if s.WarmUp {
		warm = "  (warm-up)"
	}
	fmt.Fprintf(w, "%8s  %12s/s  p50 %9s  p99 %9s  max %9s%s\n",
		s.At.Round(100*time.Millisecond), report.Count(s.PerSecond), report.Time(s.P50.Duration()),
		report.Time(s.P99.Duration()), report.Time(s.Max.Duration()), warm)
}

func watchCommand(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	c := &cobra.Command{
		Use:   "watch",
		Short: "Measure how long an event takes to many watchers of one znode",
		Long: `Each connection leaves a watch on the same znode; then it is changed, and the time is taken
until each watcher, and the last, has the event. Repeated for --duration.`,
		Args: cobra.NoArgs,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) { return load.Watch(ctx, o.cfg) })
	}
	o.common(c)
	return c
}

func sessionsCommand(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	c := &cobra.Command{
		Use:   "sessions",
		Short: "Open and close sessions as fast as the servers let it",
		Args:  cobra.NoArgs,
	}
	var ephemeral bool
	c.Flags().BoolVar(&ephemeral, "ephemeral", false, "create an ephemeral znode in each, all one operation")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) {
			if ephemeral {
				return load.Churn(ctx, o.cfg)
			}
			return load.Sessions(ctx, o.cfg)
		})
	}
	o.common(c)
	return c
}

func failoverCommand(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	o.cfg.SessionTimeout = 10 * time.Second
	var after time.Duration
	c := &cobra.Command{
		Use:   "failover",
		Short: "Measure the longest time without an answer while a server is killed",
		Long: `Clients with one request in flight each come back to their sessions at another server when
they lose a connection. The result is the longest time in which nobody had an answer, and how many
connections to the killed server and to the others were dropped.

With --kill-leader-after this command kills the leader's process with SIGKILL (srvr must be allowed,
--pids in the order of --server). Without, something else does it meanwhile.`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVarP(&o.mix, "mix", "m", "set", "operations and weights")
	c.Flags().IntVar(&o.cfg.Keys, "keys", o.cfg.Keys, "znodes that are read and written")
	c.Flags().DurationVar(&after, "kill-leader-after", 0, "kill the leader after so long; 0: do not")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) {
			var kill load.Killer
			var err error
			if err = o.cfg.SetMix(o.mix); err != nil {
				return nil, err
			}
			if after > 0 {
				if kill, err = load.KillLeader(o.cfg.Hosts, o.cfg.PIDs, o.cfg.TLS); err != nil {
					return nil, err
				}
			}
			return load.Failover(ctx, o.cfg, kill, after)
		})
	}
	o.common(c)
	return c
}

func idleCommand(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	c := &cobra.Command{
		Use:   "idle",
		Short: "Measure what sessions cost that have nothing to say",
		Long: `Keep --connections sessions alive with a ping every third of their timeout, and, with
--pids, show the CPU that the servers need for it.`,
		Args: cobra.NoArgs,
	}
	var ephemeral bool
	c.Flags().BoolVar(&ephemeral, "ephemeral", false, "create an ephemeral znode in each")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) { return load.Idle(ctx, o.cfg, ephemeral) })
	}
	o.common(c)
	return c
}

func fillCommand(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	o.cfg.Keys = 1_000_000
	c := &cobra.Command{
		Use:   "fill",
		Short: "Create a tree of a given size and leave it",
		Long: `Create --keys znodes of --value-size bytes in multis, and leave them; with --pids
the servers' memory is shown.`,
		Args: cobra.NoArgs,
	}
	c.Flags().IntVar(&o.cfg.Keys, "keys", o.cfg.Keys, "znodes")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) { return load.Fill(ctx, o.cfg) })
	}
	o.common(c)
	return c
}

func noopCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "noop",
		Short: "Run a server that answers without doing anything: the upper bound of all measurements",
		Args:  cobra.NoArgs,
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:2181", "address")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		s, err := noop.Listen(listen)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), "answering at", s.Addr())
		<-ctx.Done()
		return s.Close()
	}
	return c
}
