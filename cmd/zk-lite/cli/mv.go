package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) mvCommand() *cobra.Command {
	var parents bool
	c := &cobra.Command{
		Use:   "mv SOURCE DESTINATION",
		Short: "Move a znode and all below it, in one transaction",
		Long: `Move a znode and all below it, with data and ACLs, in one transaction: others see
it at the one place or at the other. What is too large for one transaction (1000
znodes, 900 KiB) or has ephemerals is refused. DESTINATION is the new path, not
that of a parent. The new znodes have new versions and times; containers and znodes with a time
to live become persistent.`,
		Example: `  zk-lite mv /app/config.new /app/config`,
		Args:    argCount(2, 2, 2),
	}
	c.Flags().BoolVar(&parents, "parents", false,
		"create what is missing above the destination, before the transaction")
	a.completePaths(c, 2)
	return a.command(c, func(c *cobra.Command, args []string) error {
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			n, err := subtree.Move(ctx, cl, args[0], args[1], parents)
			if err == nil && a.json() {
				err = writeJSON(c.OutOrStdout(), map[string]any{"path": args[1], "moved": n})
			}
			return err
		})
	})
}
