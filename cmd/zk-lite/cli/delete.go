package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
)

func (a *app) deleteCommand() *cobra.Command {
	var version int32
	c := &cobra.Command{
		Use:   "delete PATH",
		Short: "Delete a znode that has no children",
		Example: `  zk-lite delete /app/config
  zk-lite delete -v 3 /app/config`,
		Args: argCount(1, 1, 1),
	}
	c.Flags().Int32VarP(&version, "version", "v", int32(client.AnyVersion),
		"only if the data has this version")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if err := cl.Delete(ctx, args[0], client.Version(version)); err != nil {
				return err
			}
			if a.json() {
				return writeJSON(c.OutOrStdout(), map[string]any{"path": args[0], "deleted": 1})
			}
			return nil
		})
	})
}
