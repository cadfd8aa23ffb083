package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func lsCommand(g *globals) *cobra.Command {
	var recursive, withStat, watch bool
	var types string
	c := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List the children of a znode, one a line",
		Long: `List the names of the children of a znode (default /), sorted, one a line. What a
terminal would not show stands as \u{202e}; -o json has the names as they are.

With -R, list the paths of the znode and of all below it. With -w, wait for the
next change of the list after printing it, and print the event.

With --type, list those of a type, which is persistent, ephemeral, container or ttl,
or of several with commas between them. The ZooKeeper protocol does not tell the
types: this asks a zk-lite at its HTTP API (--http). Children that may not be read
are left out.`,
		Example: `  zk-lite ls /
  zk-lite ls --type ephemeral,ttl /app
  zk-lite ls -R /app
  zk-lite ls -R -s -o json / | jq 'select(.stat.ephemeralOwner != "0x0") | .path'`,
		Args: argCount(0, 1, 0),
	}
	f := c.Flags()
	f.BoolVarP(&recursive, "recursive", "R", false, "list all that is below, as paths")
	f.BoolVarP(&withStat, "stat", "s", false, "print the Stat, too")
	f.BoolVarP(&watch, "watch", "w", false, "wait for the next change and print it")
	if g.shell == nil {
		f.StringVar(&types, "type", "", "only those of these `types`: persistent, ephemeral, container, ttl")
		f.StringVar(&g.http, httpFlag, os.Getenv(httpVariable), "with --type: "+httpUsage)
	}
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		path := "/"
		if len(args) == 1 {
			path = args[0]
		}
		switch {
		case c.Flags().Changed("type") && (recursive || watch || withStat):
			return usagef("--type goes without -R, -s and -w")
		case recursive && watch:
			return usagef("-w goes without -R; `watch -R %s` follows a subtree", path)
		case recursive && withStat && !g.output.json():
			return usagef("-s with -R needs -o json")
		}
		if err := checkPath(path); err != nil {
			return err
		}
		if c.Flags().Changed("type") {
			return listTypes(g, c, path, types)
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if recursive {
				return listAll(ctx, g.output, c, cl, path, withStat)
			}
			return list(ctx, g, c, cl, path, withStat, watch)
		})
	})
}

func list(
	ctx context.Context, g *globals, c *cobra.Command, cl *client.Client, path string, withStat, watch bool,
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
	if g.output.json() {
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
		return awaitEvent(ctx, g, c, w)
	}
	for _, name := range names {
		fmt.Fprintln(out, visible(name))
	}
	if withStat {
		printStat(out, stat)
	}
	return awaitEvent(ctx, g, c, w)
}

// listTypes lists the children of some types, a page at a time.
func listTypes(g *globals, c *cobra.Command, path, types string) error {
	api, err := g.httpClient(c.Context())
	if err != nil {
		return err
	}
	full := path // HTTP knows no chroot
	if _, chroot, _ := strings.Cut(strings.TrimPrefix(g.server, client.ServicePrefix), "/"); chroot != "" {
		full = strings.TrimSuffix("/"+chroot+path, "/")
	}
	names := []string{}
	for next := ""; ; {
		var page struct {
			Children []string `json:"children"`
			Next     string   `json:"next"`
		}
		query := url.Values{"children": {""}, "type": {types}, "after": {next}}
		target := (&url.URL{Path: "/v1/znodes" + full, RawQuery: query.Encode()}).RequestURI()
		r := &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true}
		if err := api.JSON(c.Context(), r, &page); err != nil {
			return err
		}
		names = append(names, page.Children...)
		if next = page.Next; next == "" {
			break
		}
	}
	if g.output.json() {
		return writeJSON(c.OutOrStdout(), map[string]any{"path": path, "children": names})
	}
	for _, name := range names {
		fmt.Fprintln(c.OutOrStdout(), visible(name))
	}
	return nil
}

func listAll(
	ctx context.Context, as output, c *cobra.Command, cl *client.Client, path string, withStat bool,
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
		if !as.json() {
			fmt.Fprintln(out, visible(n.Path))
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

func getCommand(g *globals) *cobra.Command {
	var withStat, watch, asBase64 bool
	var to getTo
	c := &cobra.Command{
		Use:   "get PATH",
		Short: "Print the data of a znode",
		Long: `Print the data of a znode, byte for byte; nothing is added, not even the end of
a line. With -b it is a line of base64. With -s the Stat follows on lines of its
own. With -w, wait for the next change of the data after printing it, and print the
event.

With --to, write the data into a file, which is there as a whole or not at all. Of a
znode that put has written, that is the whole value, whose SHA-256 has been checked.`,
		Example: `  zk-lite get /app/config
  zk-lite get /models/ranking --to ranking.bin
  zk-lite get /app/config > config.yaml
  zk-lite get -o json /app/config | jq -r .stat.version`,
		Args: argCount(1, 1, 1),
	}
	f := c.Flags()
	f.BoolVarP(&withStat, "stat", "s", false, "print the Stat, too")
	f.BoolVarP(&asBase64, "base64", "b", false, "print the data in base64")
	f.BoolVarP(&watch, "watch", "w", false, "wait for the next change and print it")
	to.bind(c)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if to.file != "" && (withStat || asBase64 || watch) || to.file == "" && to.force {
			return usagef("--to goes without -s, -b and -w, and --force with --to")
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if to.file != "" {
				return to.get(ctx, g, c, cl, args[0])
			}
			var data []byte
			var stat client.Stat
			var w *client.Watch
			var err error
			if watch {
				data, stat, w, err = cl.GetW(ctx, args[0])
			} else {
				data, stat, err = cl.Get(ctx, args[0])
			}
			if err == nil {
				err = printData(g.output, c, args[0], data, stat, asBase64, withStat || watch)
			}
			if err != nil {
				return err
			}
			return awaitEvent(ctx, g, c, w)
		})
	})
}

// dataJSON is a znode in JSON. The encoding says what the data is; the data of a
// znode that has none is null.
type dataJSON struct {
	Path     string    `json:"path"`
	Data     *string   `json:"data"`
	Encoding string    `json:"encoding,omitempty"`
	Stat     *statJSON `json:"stat,omitempty"`
}

func newDataJSON(path string, data []byte, stat client.Stat, asBase64 bool) dataJSON {
	v := dataJSON{Path: path, Stat: newStatJSON(stat)}
	v.Data, v.Encoding = subtree.EncodeData(data)
	if asBase64 && data != nil {
		v.Data, v.Encoding = new(base64.StdEncoding.EncodeToString(data)), "base64"
	}
	return v
}

// printData prints data alone, or as a line if something follows.
func printData(
	as output, c *cobra.Command, path string, data []byte, stat client.Stat, asBase64, more bool,
) error {
	if as.json() {
		return writeJSON(c.OutOrStdout(), newDataJSON(path, data, stat, asBase64))
	}
	if asBase64 {
		data = []byte(base64.StdEncoding.EncodeToString(data) + "\n")
	}
	out := lineTracker{w: c.OutOrStdout()}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("writing the data: %w", err)
	}
	if more {
		out.endLine()
		if flag := c.Flags().Lookup("stat"); flag != nil && flag.Changed {
			printStat(&out, stat)
		}
	}
	return nil
}

func statCommand(g *globals) *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "stat PATH",
		Short: "Print the Stat of a znode: versions, times, owner",
		Long: `Print the Stat of a znode. With -w, wait for the next change of the znode after
that, and print the event; the znode need not exist then.`,
		Example: `  zk-lite stat /app/config
  zk-lite stat -o json /app/config | jq .stat.version
  zk-lite stat -w /app/ready      # wait until it is created, changed or deleted`,
		Args: argCount(1, 1, 1),
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "wait for the next change and print it")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			var exists bool
			var stat client.Stat
			var w *client.Watch
			var err error
			if watch {
				exists, stat, w, err = cl.ExistsW(ctx, args[0])
			} else {
				exists, stat, err = cl.Exists(ctx, args[0])
			}
			switch {
			case err != nil:
				return err
			case exists:
				err = printStatOf(g.output, c, args[0], stat, true)
			case !watch:
				err = &client.OpError{Op: "exists", Path: args[0], Err: client.ErrNoNode}
			}
			if err != nil {
				return err
			}
			return awaitEvent(ctx, g, c, w)
		})
	})
}

func getACLCommand(g *globals) *cobra.Command {
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
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			list, stat, err := cl.GetACL(ctx, args[0])
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if g.output.json() {
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

func syncCommand(g *globals) *cobra.Command {
	var maxStale time.Duration
	c := &cobra.Command{
		Use:   "sync [PATH]",
		Short: "Wait until the server has caught up with the leader",
		Long: `Wait until the server that this command is connected to has every write that
was acknowledged before. Useful in the shell, before reads; other commands open a
connection of their own.

With --max-stale, which servers of zk-lite have, do not wait if the server knows that it
has every write that was acknowledged so long ago, and print how old its state may be.`,
		Example: `  zk-lite sync
  zk-lite sync --max-stale 500ms`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().DurationVar(&maxStale, "max-stale", 0, "how old the server's state may be")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		path := append(args, "/")[0]
		if err := checkPath(path); err != nil {
			return err
		}
		if maxStale < 0 {
			return usagef("--max-stale %v: want 0 or more", maxStale)
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if c.Flags().Changed("max-stale") {
				age, err := cl.SyncWithin(ctx, maxStale)
				if err == nil && g.output.json() {
					return writeJSON(c.OutOrStdout(), map[string]any{"staleness": age.String()})
				}
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "at most %v old\n", age)
				}
				return err
			}
			err := cl.Sync(ctx, path)
			if err == nil && g.output.json() {
				err = writeJSON(c.OutOrStdout(), map[string]any{"path": path})
			}
			return err
		})
	})
}
