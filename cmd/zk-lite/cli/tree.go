package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

func treeCommand(g *globals) *cobra.Command {
	var depth, most int
	c := &cobra.Command{
		Use:   "tree [PATH]",
		Short: "Draw a subtree",
		Long: `Draw a subtree, with the size of the data. What lies
deeper than --depth is counted, and the drawing ends after --max znodes. With -o json
a znode that may not be read has no stat and is "unreadable".`,
		Example: `  zk-lite tree /
  zk-lite tree --depth 1 /brokers`,
		Args: argCount(0, 1, 0),
	}
	f := c.Flags()
	f.IntVar(&depth, "depth", 5, "levels below PATH")
	f.IntVar(&most, "max", 1000, "znodes at most")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		path := append(args, "/")[0]
		if err := checkPath(path); err != nil {
			return err
		}
		if depth < 1 || most < 1 {
			return usagef("--depth %d --max %d: want 1 or more", depth, most)
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			return drawTree(ctx, g.output, c, cl, path, depth, most)
		})
	})
}

func drawTree(
	ctx context.Context, as output, c *cobra.Command, cl *client.Client, path string, depth, most int,
) error {
	out := newBuffered(c.OutOrStdout())
	skipped := skipped{c: c}
	var bars []bool // by depth: do siblings follow
	n := 0
	for node, err := range subtree.Walk(ctx, cl, path, subtree.Options{MaxDepth: depth}) {
		if err != nil && node.Depth == 0 {
			return out.done(err)
		}
		if err != nil {
			if err := skipped.note(err); err != nil {
				return out.done(err)
			}
		}
		if n++; n > most {
			end := io.Writer(out)
			if as.json() {
				end = c.ErrOrStderr() // it is no object
			}
			fmt.Fprintf(end, "... ends after %d znodes; --max shows more\n", most)
			break
		}
		bars = append(bars[:max(node.Depth-1, 0)], !node.Last)
		if as.json() {
			if err := writeJSON(out, newTreeJSON(&node, err != nil)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(out, drawNode(&node, bars, err != nil, node.Depth == depth))
	}
	return out.done(skipped.err())
}

// treeJSON is a znode in JSON. One that may not be read has no Stat.
type treeJSON struct {
	Path       string    `json:"path"`
	Depth      int       `json:"depth"`
	Stat       *statJSON `json:"stat"`
	Unreadable bool      `json:"unreadable,omitempty"`
}

func newTreeJSON(n *subtree.Node, unreadable bool) treeJSON {
	v := treeJSON{Path: n.Path, Depth: n.Depth, Unreadable: unreadable}
	if !unreadable {
		v.Stat = newStatJSON(n.Stat)
	}
	return v
}

// drawNode is the line of a znode. bars has for each level above whether more
// siblings follow there.
func drawNode(n *subtree.Node, bars []bool, unreadable, cut bool) string {
	var b strings.Builder
	name := n.Path
	if n.Depth > 0 {
		name = znode.Base(n.Path)
		for _, more := range bars[:len(bars)-1] {
			if more {
				b.WriteString("│   ")
			} else {
				b.WriteString("    ")
			}
		}
		if bars[len(bars)-1] {
			b.WriteString("├── ")
		} else {
			b.WriteString("└── ")
		}
	}
	b.WriteString(visible(name))
	var notes []string
	if unreadable {
		notes = append(notes, "not readable")
	}
	if n.Stat.DataLength > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes", n.Stat.DataLength))
	}
	if subtree.Ephemeral(n.Stat) {
		notes = append(notes, "ephemeral")
	}
	if cut && n.Stat.NumChildren > 0 {
		notes = append(notes, fmt.Sprintf("%d children", n.Stat.NumChildren))
	}
	if len(notes) > 0 {
		fmt.Fprintf(&b, "  (%s)", strings.Join(notes, ", "))
	}
	return b.String()
}

func findCommand(g *globals) *cobra.Command {
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
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		root := append(args, "/")[0]
		if err := checkPath(root); err != nil {
			return err
		}
		if err := o.compile(); err != nil {
			return err
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			return find(ctx, g.output, c, cl, root, &o)
		})
	})
}

// findOptions are the flags of find: all that are given must hold.
type findOptions struct {
	name, data string
	minSize    int
	ephemeral  bool

	pattern *regexp.Regexp
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

func find(
	ctx context.Context, as output, c *cobra.Command, cl *client.Client, root string, o *findOptions,
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
		case as.json():
			err = writeJSON(out, struct {
				Path string    `json:"path"`
				Stat *statJSON `json:"stat"`
			}{n.Path, newStatJSON(n.Stat)})
		default:
			_, err = fmt.Fprintln(out, visible(n.Path))
		}
		if err != nil {
			return out.done(err)
		}
	}
	return out.done(skipped.err())
}

func deleteAllCommand(g *globals) *cobra.Command {
	var batch int
	var yes bool
	c := &cobra.Command{
		Use:     "deleteall PATH",
		Aliases: []string{"rmr"},
		Short:   "Delete a znode and all below it",
		Long: `Delete a znode and all below it. This is not one transaction: a client that looks
meanwhile sees a part. Children that others create meanwhile go, too.

On a terminal it says how many there are, and asks; --yes does not ask, nor do scripts
and the shell.`,
		Example: `  zk-lite deleteall /app/old`,
		Args:    argCount(1, 1, 1),
	}
	c.Flags().IntVarP(&batch, "batch-size", "b", subtree.MaxDeleteWindow,
		fmt.Sprintf("so many deletions under way at a time; never more than %d",
			subtree.MaxDeleteWindow))
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if args[0] == "/" {
			return usagef("deleteall / would delete everything; name the subtrees one by one")
		}
		if batch < 1 {
			return usagef("--batch-size %d: want 1 or more", batch)
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if !yes && isTerminal(c.InOrStdin()) {
				if err := askToDelete(ctx, c, cl, args[0]); err != nil {
					return err
				}
			}
			p := newProgress(c, "deleted")
			n, err := subtree.Delete(ctx, cl, args[0], batch, p.step)
			p.clear()
			if err != nil {
				if n > 0 {
					err = &partError{n, "deleted", err, "repeat it to delete the others"}
				}
				return err
			}
			if g.output.json() {
				return writeJSON(c.OutOrStdout(), map[string]any{"path": args[0], "deleted": n})
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s deleted\n", count(n, "znode"))
			return err
		})
	})
}

// askToDelete says how much there is below a path. Servers before ZooKeeper 3.6 cannot count.
func askToDelete(ctx context.Context, c *cobra.Command, cl *client.Client, path string) error {
	below := "all below it"
	switch n, err := cl.GetAllChildrenNumber(ctx, path); {
	case err == nil:
		below = count(n, "znode") + " below it"
	case errors.Is(err, client.ErrNoNode):
		return err
	}
	return askYes(c, fmt.Sprintf("Delete %s and %s?", visible(path), below))
}
