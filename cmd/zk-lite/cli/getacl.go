package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) getACLCommand() *cobra.Command {
	var withStat bool
	c := &cobra.Command{
		Use:     "getacl PATH",
		Aliases: []string{"getAcl"},
		Short:   "Print the access control list of a znode",
		Long: `Print the access control list of a znode, one scheme:id:perms a line. The
permissions are create, delete (of children), read, write and admin. Without the
permission admin the server hides the hashes of digests.`,
		Example: `  zk-lite getacl /app
  zk-lite setacl /app "$(zk-lite getacl /other | paste -sd,)"`,
		Args: argCount(1, 1, 1),
	}
	c.Flags().BoolVarP(&withStat, "stat", "s", false, "print the Stat, too")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			list, stat, err := cl.GetACL(ctx, args[0])
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if a.json() {
				v := struct {
					Path string    `json:"path"`
					ACL  []string  `json:"acl"`
					Stat *statJSON `json:"stat"`
				}{Path: args[0], ACL: []string{}, Stat: newStatJSON(stat)}
				for _, acl := range list {
					v.ACL = append(v.ACL, subtree.FormatACL(acl))
				}
				return writeJSON(out, v)
			}
			for _, acl := range list {
				fmt.Fprintln(out, subtree.FormatACL(acl))
			}
			if withStat {
				printStat(out, stat)
			}
			return nil
		})
	})
}
