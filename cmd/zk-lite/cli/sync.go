package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
)

func (a *app) syncCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sync [PATH]",
		Short: "Wait until the server has caught up with the leader",
		Long: `Wait until the server that this command is connected to has every write that
was acknowledged before. Useful in the shell, before reads; other commands open a
connection of their own.`,
		Example: `  zk-lite sync`,
		Args:    argCount(0, 1, 0),
	}
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		path := append(args, "/")[0]
		if err := checkPath(path); err != nil {
			return err
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			err := cl.Sync(ctx, path)
			if err == nil && a.json() {
				err = writeJSON(c.OutOrStdout(), map[string]any{"path": path})
			}
			return err
		})
	})
}
