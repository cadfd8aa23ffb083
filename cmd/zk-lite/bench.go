package main

import (
	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/bench/benchcli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
)

// benchCommand returns the command "bench", the load generator.
func benchCommand() *cobra.Command { return benchcli.Command(&cli.TLSFlags{}) }
