package benchcli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
)

// defaultHTTP is the HTTP port of a server on this machine.
const defaultHTTP = "127.0.0.1:8080"

// httpCommand measures the HTTP API instead of the ZooKeeper protocol.
func httpCommand(secure Secure) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	c := &cobra.Command{
		Use:   "http",
		Short: "Put load on the HTTP API",
		Long: `Put gets, sets and creates on the HTTP ports named by --server: one request under way on
each connection. The subcommands measure locks and streams. Loops are closed or, with --rate, open, as
with the ZooKeeper protocol.

Everything happens below --prefix, which is deleted at start and end.`,
		Example: `  zk-lite bench http --server 127.0.0.1:8080 --mix get=90,set=10 --connections 64
  zk-lite bench http lock --connections 64
  zk-lite bench http streams --connections 1000`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVarP(&o.mix, "mix", "m", o.cfg.Mix.String(), "operations and weights, of get, set and create")
	f.Float64VarP(&o.cfg.Rate, "rate", "r", 0, "open loop: requests a second of all connections")
	f.IntVar(&o.cfg.Keys, "keys", o.cfg.Keys, "znodes that are read and written")
	f.Float64Var(&o.cfg.Zipf, "zipf", 0, "exponent of the popularity of keys; 0 is uniform")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) {
			if err := o.cfg.SetMix(o.mix); err != nil {
				return nil, err
			}
			return httpload.Run(ctx, o.cfg, httpload.ZKLite{})
		})
	}
	o.commonAt(c, defaultHTTP)
	c.AddCommand(
		httpPart(secure, "lock", "Take locks and give them back",
			`Each connection has a session and a lock of its own, `+
				`which it takes and gives back;
one operation is both requests.`, 64, httpload.Locks),
		httpPart(secure, "streams", "Measure how long a change takes to many streams",
			`Each connection is a stream of `+
				`server-sent events about the same znode; it is changed, and
the time is taken until each stream, and the last, has told of it. Repeated for --duration.`, 1000,
			httpload.Streams))
	return c
}

// httpPart is a subcommand without a mix.
func httpPart(
	secure Secure, use, short, long string, conns int,
	measure func(context.Context, load.Config, httpload.API) (*load.Result, error),
) *cobra.Command {
	o := &options{cfg: load.Default(), secure: secure}
	o.cfg.Connections = conns
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return o.run(c, func(ctx context.Context) (*load.Result, error) {
			return measure(ctx, o.cfg, httpload.ZKLite{})
		})
	}
	o.commonAt(c, defaultHTTP)
	return c
}

// commonAt is common with another default for --server.
func (o *options) commonAt(c *cobra.Command, host string) {
	o.common(c)
	f := c.Flags().Lookup("server")
	f.DefValue, o.servers = host, host
	f.Usage = fmt.Sprintf("HTTP ports, `%s`; connections are spread over them", "host:port,...")
}
