package main

import (
	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/labcli"
)

// labCommand returns the command "lab". Its scenarios run on the simulator only
// until Options.Real is given a runner built on the recipes.
func labCommand() *cobra.Command {
	return labcli.Command(labcli.Options{})
}
