package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

// existingFlags say what cp and import do with znodes that are there already.
type existingFlags struct{ overwrite, skip, parents bool }

func (e *existingFlags) bind(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&e.overwrite, "overwrite", false, "replace data and ACL of znodes that exist")
	f.BoolVar(&e.skip, "skip-existing", false, "leave znodes that exist as they are")
	f.BoolVar(&e.parents, "parents", false, "create what is missing above the destination")
}

func (e *existingFlags) choice() (subtree.Existing, error) {
	switch {
	case e.overwrite && e.skip:
		return 0, usagef("--overwrite and --skip-existing exclude each other")
	case e.overwrite:
		return subtree.Replace, nil
	case e.skip:
		return subtree.Keep, nil
	}
	return subtree.Refuse, nil
}

// prepare creates what is missing above path.
func (e *existingFlags) prepare(ctx context.Context, cl *client.Client, path string) error {
	if !e.parents {
		return nil
	}
	return cl.EnsurePath(ctx, znode.Parent(path), client.Persistent)
}

func (a *app) cpCommand() *cobra.Command {
	var recursive bool
	var existing existingFlags
	c := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy a znode, or a subtree, with data and ACLs",
		Long: `Copy a znode, with -R also all below it: data and ACLs, but not versions and
times, nor ephemerals, which belong to a session. DESTINATION is the path of the
copy, not that of a parent. Servers do not report which znodes are containers or have a
time to live: the copies are persistent.

The copy of a subtree is not one transaction: it is not the source as it was at one
moment, others see it grow, and at the first error it ends and says how far it got;
what has been copied stays. Znodes that exist are such an error, unless --overwrite
or --skip-existing says what to do with them; with either it can be repeated. Znodes
that may not be read are left out with all below them, and named on standard error;
the exit code is 7 then.`,
		Example: `  zk-lite cp /app/config /app/config.old
  zk-lite cp -R /app /backup/app --parents`,
		Args: argCount(2, 2, 2),
	}
	c.Flags().BoolVarP(&recursive, "recursive", "R", false, "copy all that is below, too")
	existing.bind(c)
	a.completePaths(c, 2)
	return a.command(c, func(c *cobra.Command, args []string) error {
		choice, err := existing.choice()
		if err != nil {
			return err
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if err := existing.prepare(ctx, cl, args[1]); err != nil {
				return err
			}
			p := newProgress(c, "copied")
			skipped := skipped{c: c, progress: p}
			n, err := subtree.Copy(ctx, cl, args[0], cl, args[1], recursive, choice, p.step, skipped.note)
			p.clear()
			if err := a.reportCount(c, "copied", args[1], n, err); err != nil {
				return err
			}
			return skipped.err()
		})
	})
}

// reportCount reports what cp and import have done.
func (a *app) reportCount(
	c *cobra.Command, what, path string, n subtree.Count, err error,
) error {
	if n.Ephemerals > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%d ephemeral znodes were left out\n", n.Ephemerals)
	}
	if done := n.Created + n.Replaced; err != nil && (done > 0 || errors.Is(err, client.ErrNodeExists)) {
		return &partError{done, what, err, "to go on, repeat it with --skip-existing or --overwrite"}
	}
	if err != nil || !a.json() {
		return err
	}
	return writeJSON(c.OutOrStdout(), map[string]any{
		"path": path, "created": n.Created, "replaced": n.Replaced,
		"kept": n.Kept, "ephemerals": n.Ephemerals,
	})
}
