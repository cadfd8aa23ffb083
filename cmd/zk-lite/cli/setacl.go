package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) setACLCommand() *cobra.Command {
	var withStat, recursive bool
	var version int32
	c := &cobra.Command{
		Use:     "setacl PATH ACL",
		Aliases: []string{"setAcl"},
		Short:   "Replace the access control list of a znode",
		Long: `Replace the access control list of a znode by a list of scheme:id:perms, with
commas between them. The schemes are world:anyone, auth: (the identity that this command
has proved to be), digest:user:hash, ip:address/bits. The permissions are letters
of cdrwa: create, delete (of children), read, write, admin. Lists are not
inherited; -R replaces those of all znodes below, too.`,
		Example: `  zk-lite setacl /app world:anyone:r,auth::cdrwa --auth digest:ann:secret
  zk-lite setacl -R /app world:anyone:cdrwa`,
		Args: argCount(2, 2, 1),
	}
	f := c.Flags()
	f.Int32VarP(&version, "version", "v", int32(client.AnyVersion), "only if the ACL has this version")
	f.BoolVarP(&withStat, "stat", "s", false, "print the new Stat")
	f.BoolVarP(&recursive, "recursive", "R", false, "also of all znodes below")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		list, err := parseACL(args[1])
		if err != nil {
			return err
		}
		if recursive && version != int32(client.AnyVersion) {
			return usagef("-v goes without -R: every znode has a version of its own")
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			stat, err := cl.SetACL(ctx, args[0], list, client.Version(version))
			if err == nil && recursive {
				err = setACLBelow(ctx, cl, args[0], list)
			}
			if err != nil {
				return err
			}
			return a.printStatOf(c, args[0], stat, withStat)
		})
	})
}

// setACLBelow replaces the lists of all znodes below root.
func setACLBelow(ctx context.Context, cl *client.Client, root string, list []client.ACL) error {
	for n, err := range subtree.Walk(ctx, cl, root, subtree.Options{}) {
		if err != nil {
			return err
		}
		if n.Depth == 0 {
			continue
		}
		_, err = cl.SetACL(ctx, n.Path, list, client.AnyVersion)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return err
		}
	}
	return nil
}
