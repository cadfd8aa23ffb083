package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) deleteAllCommand() *cobra.Command {
	var batch int
	c := &cobra.Command{
		Use:     "deleteall PATH",
		Aliases: []string{"rmr"},
		Short:   "Delete a znode and all below it",
		Long: `Delete a znode and all below it. This is not one transaction: a client that looks
meanwhile sees a part. Children that others create meanwhile go, too.`,
		Example: `  zk-lite deleteall /app/old`,
		Args:    argCount(1, 1, 1),
	}
	c.Flags().IntVarP(&batch, "batch-size", "b", subtree.MaxDeleteWindow,
		fmt.Sprintf("so many deletions under way at a time; never more than %d",
			subtree.MaxDeleteWindow))
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		if args[0] == "/" {
			return usagef("deleteall / would delete everything; name the subtrees one by one")
		}
		if batch < 1 {
			return usagef("--batch-size %d: want 1 or more", batch)
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			p := newProgress(c, "deleted")
			n, err := subtree.Delete(ctx, cl, args[0], batch, p.step)
			p.clear()
			if err != nil {
				if n > 0 {
					err = &partError{n, "deleted", err, "repeat it to delete the others"}
				}
				return err
			}
			if a.json() {
				return writeJSON(c.OutOrStdout(), map[string]any{"path": args[0], "deleted": n})
			}
			return nil
		})
	})
}
