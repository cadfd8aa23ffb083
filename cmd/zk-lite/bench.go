package main

import (
	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/bench/benchcli"
)

// benchCommand returns the command "bench", the load generator.
func benchCommand() *cobra.Command { return benchcli.Command() }
