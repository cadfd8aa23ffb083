package main

import (
	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/lab/ensemble"
	"github.com/zk-lite/zk-lite/lab/labcli"
	"github.com/zk-lite/zk-lite/lab/scenario"
)

// labCommand returns the command "lab", whose scenarios run on real servers too.
func labCommand() *cobra.Command {
	return labcli.Command(labcli.Options{
		Real: func(servers string) (scenario.Runner, error) {
			return ensemble.Runner{Servers: servers}, nil
		},
		Usage: cli.Usage,
	})
}
