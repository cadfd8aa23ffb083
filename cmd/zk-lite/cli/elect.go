package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

func (a *app) electCommand() *cobra.Command {
	var o workOptions
	c := &cobra.Command{
		Use:   "elect [flags] PATH -- COMMAND [ARGS...]",
		Short: "Run a command only where it is elected",
		Long: `Be a candidate in the election PATH, and run the command while elected: of all
candidates one at a time runs its command. When the command ends, elect ends with its
exit code, and the next candidate is elected.

If leadership is lost with the session, the command gets SIGTERM, and SIGKILL after
--grace; then elect is a candidate again. The command finds a fencing token in
ZK_LITE_FENCING_TOKEN, a decimal number that grows from leader to leader, and the path
of its znode in ZK_LITE_ELECTION. Other programs can read --data, for example the
leader's address.

The election is Curator's LeaderLatch.`,
		Example: `  zk-lite elect /app/scheduler -- ./scheduler
  zk-lite elect /app/master --data "$HOSTNAME:8080" -- ./serve --port 8080`,
		DisableFlagsInUseLine: true, // none may stand behind --
		Args:                  workArgs(1, true),
	}
	o.bind(a, c, true)
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		return a.withSession(c, func(ctx context.Context, cl *client.Client) error {
			e := recipes.NewElection(cl, args[0], o.recipe()...)
			for {
				term, err := e.Campaign(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.ErrOrStderr(), "elected: %s, fencing token %d\n", term.Path(), term.FencingToken())
				err = o.runGranted(ctx, term.Grant, args[1:], electionVariable)
				release(ctx, c, term.Resign)
				var lost *lostError
				if errors.As(err, &lost) && ctx.Err() == nil {
					fmt.Fprintf(c.ErrOrStderr(), "%v; candidate again\n", lost)
					continue
				}
				return err
			}
		})
	})
}
