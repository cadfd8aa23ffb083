package cli

import (
	"context"
	"fmt"
	"path"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

// findOptions are the flags of find: all that are given must hold.
type findOptions struct {
	name, data string
	minSize    int
	ephemeral  bool

	pattern *regexp.Regexp
}

func (a *app) findCommand() *cobra.Command {
	var o findOptions
	c := &cobra.Command{
		Use:   "find [PATH]",
		Short: "Print the paths of znodes in a subtree that meet conditions",
		Long: `Print the paths of the znodes in a subtree that meet all conditions given. The
name is a pattern with * ? [a-z]; the data is matched by a regular expression.
Only --data reads the data.`,
		Example: `  zk-lite find / --name '*.lock'
  zk-lite find /app --data 'host=db[0-9]+'
  zk-lite find / --ephemeral
  zk-lite find / --min-size 100000`,
		Args: argCount(0, 1, 0),
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "the name matches a `pattern`")
	f.StringVar(&o.data, "data", "", "the data matches a regular `expression`")
	f.IntVar(&o.minSize, "min-size", 0, "the data has at least so many `bytes`")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "it belongs to a session")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		root := append(args, "/")[0]
		if err := checkPath(root); err != nil {
			return err
		}
		if err := o.compile(); err != nil {
			return err
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			return a.find(ctx, c, cl, root, &o)
		})
	})
}

func (o *findOptions) compile() error {
	if o.minSize < 0 {
		return usagef("--min-size %d: want 0 or more", o.minSize)
	}
	if _, err := path.Match(o.name, ""); err != nil {
		return usagef("--name %q: %w", o.name, err)
	}
	var err error
	if o.pattern, err = regexp.Compile(o.data); err != nil {
		return usagef("--data: %w", err)
	}
	return nil
}

func (o *findOptions) matches(n *subtree.Node) bool {
	if o.name != "" {
		if ok, _ := path.Match(o.name, znode.Base(n.Path)); !ok { // compile has checked it
			return false
		}
	}
	return int(n.Stat.DataLength) >= o.minSize &&
		(!o.ephemeral || subtree.Ephemeral(n.Stat)) &&
		(o.data == "" || o.pattern.Match(n.Data))
}

func (a *app) find(
	ctx context.Context, c *cobra.Command, cl *client.Client, root string, o *findOptions,
) error {
	out := newBuffered(c.OutOrStdout())
	skipped := skipped{c: c}
	for n, err := range subtree.Walk(ctx, cl, root, subtree.Options{Data: o.data != ""}) {
		if err == nil && !o.matches(&n) {
			continue
		}
		switch {
		case err != nil:
			err = skipped.note(err)
		case a.json():
			err = writeJSON(out, struct {
				Path string    `json:"path"`
				Stat *statJSON `json:"stat"`
			}{n.Path, newStatJSON(n.Stat)})
		default:
			_, err = fmt.Fprintln(out, n.Path)
		}
		if err != nil {
			return out.done(err)
		}
	}
	return out.done(skipped.err())
}
