package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) lsCommand() *cobra.Command {
	var recursive, withStat, watch bool
	c := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List the children of a znode, one a line",
		Long: `List the names of the children of a znode (default /), sorted, one a line.

With -R, list the paths of the znode and of all below it. With -w, wait for the
next change of the list after printing it, and print the event.`,
		Example: `  zk-lite ls /
  zk-lite ls -R /app
  zk-lite ls -R -s -o json / | jq 'select(.stat.ephemeralOwner != "0x0") | .path'`,
		Args: argCount(0, 1, 0),
	}
	f := c.Flags()
	f.BoolVarP(&recursive, "recursive", "R", false, "list all that is below, as paths")
	f.BoolVarP(&withStat, "stat", "s", false, "print the Stat, too")
	f.BoolVarP(&watch, "watch", "w", false, "wait for the next change and print it")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		path := "/"
		if len(args) == 1 {
			path = args[0]
		}
		switch {
		case recursive && watch:
			return usagef("-w goes without -R; `watch -R %s` follows a subtree", path)
		case recursive && withStat && !a.json():
			return usagef("-s with -R needs -o json")
		}
		if err := checkPath(path); err != nil {
			return err
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if recursive {
				return a.listAll(ctx, c, cl, path, withStat)
			}
			return a.list(ctx, c, cl, path, withStat, watch)
		})
	})
}

func (a *app) list(
	ctx context.Context, c *cobra.Command, cl *client.Client, path string, withStat, watch bool,
) error {
	var names []string
	var stat client.Stat
	var w *client.Watch
	var err error
	if watch {
		names, stat, w, err = cl.ChildrenW(ctx, path)
	} else {
		names, stat, err = cl.Children(ctx, path)
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	out := c.OutOrStdout()
	if a.json() {
		v := struct {
			Path     string    `json:"path"`
			Children []string  `json:"children"`
			Stat     *statJSON `json:"stat,omitempty"`
		}{Path: path, Children: append([]string{}, names...)}
		if withStat {
			v.Stat = newStatJSON(stat)
		}
		if err := writeJSON(out, v); err != nil {
			return err
		}
		return a.awaitEvent(ctx, c, w)
	}
	for _, name := range names {
		fmt.Fprintln(out, name)
	}
	if withStat {
		printStat(out, stat)
	}
	return a.awaitEvent(ctx, c, w)
}

func (a *app) listAll(
	ctx context.Context, c *cobra.Command, cl *client.Client, path string, withStat bool,
) error {
	out := newBuffered(c.OutOrStdout())
	skipped := skipped{c: c}
	for n, err := range subtree.Walk(ctx, cl, path, subtree.Options{}) {
		if err != nil {
			if err := skipped.note(err); err != nil {
				return out.done(err)
			}
			continue
		}
		if !a.json() {
			fmt.Fprintln(out, n.Path)
			continue
		}
		v := struct {
			Path string    `json:"path"`
			Stat *statJSON `json:"stat,omitempty"`
		}{Path: n.Path}
		if withStat {
			v.Stat = newStatJSON(n.Stat)
		}
		if err := writeJSON(out, v); err != nil {
			return err
		}
	}
	return out.done(skipped.err())
}
