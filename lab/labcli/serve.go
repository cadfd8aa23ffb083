package labcli

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/serve"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// serveCommand returns the command that serves the page.
func serveCommand(o Options) *cobra.Command {
	var address, servers string
	var anybody bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Play runs on a page in a browser",
		Long: "Serve the lab's page, on which a run is seen, played forward and back, and broken by a\n" +
			"click. The simulator runs in this process. Ctrl-C stops it.",
		Example: "  zk-lite lab serve\n  zk-lite lab serve --address 127.0.0.1:9000",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&address, "address", "127.0.0.1:8480", "`HOST:PORT` to serve on; port 0 is any free one")
	c.Flags().BoolVar(&anybody, "anybody", false,
		"allow an address that others reach: they can make this machine work")
	if o.Ensemble != nil {
		c.Flags().StringVar(&servers, "servers", "",
			"offer experiments on this running ensemble (`HOST:PORT,...`) on the page")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkAddress(address, anybody); err != nil {
			return o.usage(err)
		}
		l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", address)
		if err != nil {
			return fmt.Errorf("--address %s: %w", address, err)
		}
		fmt.Fprintf(c.OutOrStdout(), "the lab is on http://%s/ (Ctrl-C stops it)\n", l.Addr())
		options := serve.Options{}
		if servers != "" {
			options.Ensemble = func(ctx context.Context, words []string) (trace.Trace, error) {
				return o.Ensemble(ctx, servers, words)
			}
		}
		return serve.Serve(c.Context(), l, serve.New(options))
	}
	return c
}

// checkAddress refuses an address that is not loopback, unless that is wanted.
func checkAddress(address string, anybody bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--address %q: want HOST:PORT, such as 127.0.0.1:8480", address)
	}
	ip, err := netip.ParseAddr(host)
	if anybody || host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--address %s: others may reach it; want a loopback address, or --anybody as well", address)
}
