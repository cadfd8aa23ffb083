package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func diffCommand(g *globals) *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff PATH [PATH]",
		Short: "Compare two subtrees, also of two ensembles",
		Long: `Compare two subtrees: data and ACLs, but not versions and times. A line
for each znode that differs:

  - PATH   only in the first
  + PATH   only in the second
  ~ PATH   in both; then what differs: data, acl, ephemeral

PATH is relative to the subtrees, "." being their roots. With --other, the second
subtree is in another ensemble; its path may be left out if it is the same. Each
subtree of a zk-lite ensemble is compared as it is in one state, two of one ensemble in
the same one; if they differ, standard error names its zxid. One of ZooKeeper's that
changes meanwhile is seen as it was when each znode's turn came. The exit code is 0 if
there is no difference and 1 if there is. Znodes that may not be read are left out with
all below them, and named on standard error; the exit code is 7 if the rest has no
difference.`,
		Example: `  zk-lite diff /app /backup/app
  zk-lite diff /app --other standby:2181`,
		Args: argCount(1, 2, 1),
	}
	f := c.Flags()
	f.StringVar(&o.other, "other", "", "servers of the second subtree, `host:port,...[/chroot]`")
	f.BoolVar(&o.noACL, "no-acl", false, "do not compare ACLs")
	f.BoolVar(&o.noEphem, "no-ephemerals", false, "leave out ephemerals")
	g.completePaths(c, 2)
	return g.command(c, func(c *cobra.Command, args []string) error {
		second := args[len(args)-1]
		if err := checkPath(second); err != nil {
			return err
		}
		if len(args) == 1 && o.other == "" {
			return usagef("one subtree; name a second, or other servers with --other")
		}
		return g.withClient(c, func(ctx context.Context, left *client.Client) error {
			right := left
			if o.other != "" {
				cl, err := g.connectTo(ctx, "--other", o.other)
				if err != nil {
					return err
				}
				defer hangUp(cl)
				err = g.watched(ctx, cl, func(ctx context.Context, right *client.Client) error {
					return diff(ctx, g.output, c, left, args[0], right, second, &o)
				})
				return g.chrootError(ctx, cl, "--other", o.other, err)
			}
			return diff(ctx, g.output, c, left, args[0], right, second, &o)
		})
	})
}

// diffOptions are the flags of diff.
type diffOptions struct {
	other          string
	noACL, noEphem bool
}

func diff(
	ctx context.Context, as output, c *cobra.Command, left *client.Client, leftRoot string,
	right *client.Client, rightRoot string, o *diffOptions,
) error {
	out := newBuffered(c.OutOrStdout())
	differ := false
	skipped := skipped{c: c}
	asOf := ""
	states := func(left, right client.Zxid) {
		switch {
		case left == 0 || right == 0: // a server is ZooKeeper's
		case o.other == "":
			asOf = fmt.Sprintf("as of %v\n", left)
		default:
			asOf = fmt.Sprintf("as of %v and %v\n", left, right)
		}
	}
	for d, err := range subtree.Diff(ctx, left, leftRoot, right, rightRoot, states) {
		if err != nil && d.Rel != "" {
			if err = skipped.note(err); err == nil {
				continue
			}
		}
		if err != nil {
			return out.done(err)
		}
		if o.ignores(&d) {
			continue
		}
		differ = true
		if err := printDifference(as, out, &d, o); err != nil {
			return err
		}
	}
	if err := out.done(nil); err != nil {
		return err
	}
	if differ {
		fmt.Fprint(c.ErrOrStderr(), asOf)
		return &exitError{code: ExitFailed}
	}
	return skipped.err()
}

func (o *diffOptions) ignores(d *subtree.Difference) bool {
	ephemeral := func(n *subtree.Node) bool { return n != nil && subtree.Ephemeral(n.Stat) }
	if o.noEphem && (ephemeral(d.Left) || ephemeral(d.Right)) {
		return true
	}
	both := d.Left != nil && d.Right != nil
	return both && o.noACL && !d.Data && !d.Ephemeral
}

func printDifference(as output, out buffered, d *subtree.Difference, o *diffOptions) error {
	sign, differs := "~", []string{}
	for _, field := range []struct {
		name string
		yes  bool
	}{{"data", d.Data}, {"acl", d.ACL && !o.noACL}, {"ephemeral", d.Ephemeral}} {
		if field.yes {
			differs = append(differs, field.name)
		}
	}
	switch {
	case d.Left == nil:
		sign = "+"
	case d.Right == nil:
		sign = "-"
	}
	path := d.Rel
	if path == "" {
		path = "."
	}
	if as.json() {
		return writeJSON(out, struct {
			Change  string   `json:"change"`
			Path    string   `json:"path"`
			Differs []string `json:"differs,omitempty"`
		}{map[string]string{"+": "added", "-": "removed", "~": "changed"}[sign], path, differs})
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(
		fmt.Sprintf("%s %s  %s", sign, path, strings.Join(differs, ", ")), " "))
	return err
}
