package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/ensemble"
	"github.com/zk-lite/zk-lite/lab/labcli"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// labCommand returns the command "lab", whose scenarios run on real servers too.
func labCommand() *cobra.Command {
	return labcli.Command(labcli.Options{
		Real: func(servers string) (election.Runner, error) {
			return reachable{ensemble.Runner{Servers: servers}}, nil
		},
		Ensemble: experiment,
		Usage:    cli.Usage,
	})
}

// reachable is a runner that looks first whether there is a server, as the other commands
// do: the candidates would wait for one as long as for anything else.
type reachable struct{ ensemble.Runner }

// KillLeader implements election.Runner.
func (r reachable) KillLeader(
	ctx context.Context, k election.KillLeader,
) (election.Outcome, error) {
	if err := cli.Reach(ctx, "--servers", r.Servers); err != nil {
		return election.Outcome{}, err
	}
	return r.Runner.KillLeader(ctx, k)
}

// experiment performs one on running servers, after it has looked whether there are any.
func experiment(ctx context.Context, servers string, words []string) (trace.Trace, error) {
	e, err := ensemble.ParseExperiment(words)
	if err != nil {
		return trace.Trace{}, cli.Usage(err)
	}
	if err := cli.Reach(ctx, "--servers", servers); err != nil {
		return trace.Trace{}, err
	}
	return ensemble.Runner{Servers: servers}.Trace(ctx, e)
}
