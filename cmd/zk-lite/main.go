// Command zk-lite is a coordination service that speaks ZooKeeper's protocol: the
// server, an ensemble for development, and tools. The commands for clients and operators
// are in package cli.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, out := rootCommand(), &standardOutput{File: os.Stdout}
	root.SetOut(out)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("writing the output: %w", out.err)
	}
	if err != nil {
		if text := cli.Message(err); text != "" {
			fmt.Fprintln(os.Stderr, "zk-lite:", text)
		}
		os.Exit(cli.ExitCode(err))
	}
}

// standardOutput remembers that it could not be written: half a list must not pass for a whole one.
type standardOutput struct {
	*os.File
	err error // the first
}

// Write implements io.Writer.
func (o *standardOutput) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "zk-lite",
		Short:         "A coordination service that speaks ZooKeeper's protocol",
		Long:          "A coordination service that speaks ZooKeeper's protocol.\n\n" + cli.DefaultsHelp,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cli.AddCommands(root,
		[]*cobra.Command{
			serverCommand(), doctorCommand(), supportCommand(), recoverCommand(), formCommand(), devCommand(),
			importZooKeeperCommand(), exportZooKeeperCommand(), takeoverCommand(),
		},
		[]*cobra.Command{
			inspectCommand(), sizeCommand(), benchCommand(), labCommand(), docsCommand(), manCommand(),
			versionCommand(),
		})
	return root
}
