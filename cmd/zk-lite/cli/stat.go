package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
)

func (a *app) statCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "stat PATH",
		Short: "Print the Stat of a znode: versions, times, owner",
		Long: `Print the Stat of a znode. With -w, wait for the next change of the znode after
that, and print the event; the znode need not exist then.`,
		Example: `  zk-lite stat /app/config
  zk-lite stat -o json /app/config | jq .stat.version
  zk-lite stat -w /app/ready      # wait until it is created, changed or deleted`,
		Args: argCount(1, 1, 1),
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "wait for the next change and print it")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			var exists bool
			var stat client.Stat
			var w *client.Watch
			var err error
			if watch {
				exists, stat, w, err = cl.ExistsW(ctx, args[0])
			} else {
				exists, stat, err = cl.Exists(ctx, args[0])
			}
			switch {
			case err != nil:
				return err
			case exists:
				err = a.printStatOf(c, args[0], stat, true)
			case !watch:
				err = &client.OpError{Op: "exists", Path: args[0], Err: client.ErrNoNode}
			}
			if err != nil {
				return err
			}
			return a.awaitEvent(ctx, c, w)
		})
	})
}
