// Command zk-lite is a ZooKeeper-compatible coordination service: the server,
// a whole ensemble for development, and tools.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set at the build of a release (-ldflags "-X main.version=1.2.3").
var version = "0.1.0-dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "zk-lite:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "zk-lite",
		Short:         "A coordination service that speaks ZooKeeper's protocol",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(serverCommand(), devCommand(), labCommand())
	return root
}
