package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

func (a *app) treeCommand() *cobra.Command {
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
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		path := append(args, "/")[0]
		if err := checkPath(path); err != nil {
			return err
		}
		if depth < 1 || most < 1 {
			return usagef("--depth %d --max %d: want 1 or more", depth, most)
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			return a.drawTree(ctx, c, cl, path, depth, most)
		})
	})
}

func (a *app) drawTree(
	ctx context.Context, c *cobra.Command, cl *client.Client, path string, depth, most int,
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
			if a.json() {
				end = c.ErrOrStderr() // it is no object
			}
			fmt.Fprintf(end, "... ends after %d znodes; --max shows more\n", most)
			break
		}
		bars = append(bars[:max(node.Depth-1, 0)], !node.Last)
		if a.json() {
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
	b.WriteString(name)
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
