package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
)

// addWatchName is what zkCli calls the command.
const addWatchName = "addWatch"

func watchCommand(g *globals) *cobra.Command {
	var recursive bool
	var mode string
	var count int
	var feed feedFlags
	c := &cobra.Command{
		Use:     "watch PATH",
		Aliases: []string{addWatchName},
		Short:   "Follow a znode, or a subtree, and print its events",
		Long: `Print the events of a znode as they come, until interrupted: the type, the path
and, if the server sends it, the zxid of the transaction. The znode need not
exist. With -R, those of all znodes below it; then changes of lists of children
are not reported, as creations and deletions are. Called addWatch, it has zkCli's default,
which is the subtree.

Rearmed means that the connection was lost in between: the watch goes on, and
what happened meanwhile has no event. Needs ZooKeeper 3.6 or newer.

With --values, print the transactions that change the znode or any below it: who
made them, and the new values. None is missing or comes twice, whatever happens to
connections. Needs zk-lite. --list begins with all znodes of one state; the transactions
are those after it.`,
		Example: `  zk-lite watch /app/config
  zk-lite watch -R / -o json
  zk-lite watch --values --before /app
  zk-lite watch --values --list -o json /app
  zk-lite watch --count 1 /app/ready && echo something happened`,
		Args: argCount(1, 1, 1),
	}
	f := c.Flags()
	f.BoolVarP(&recursive, "recursive", "R", false, "watch all below, too")
	f.StringVarP(&mode, "mode", "m", "", "as in zkCli: PERSISTENT, or PERSISTENT_RECURSIVE, which is -R")
	f.IntVarP(&count, "count", "n", 0, "end after so many events; 0 is never")
	feed.bind(c)
	g.bindSession(c)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if count < 0 {
			return usagef("--count %d: want 0 or more", count)
		}
		how, err := watchMode(mode, recursive, c.CalledAs() == addWatchName)
		if err != nil {
			return err
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			var err error
			if feed.values {
				err = followValues(ctx, g.output, c, cl, args[0], &feed, count)
			} else {
				err = follow(ctx, g.output, c, cl, args[0], how, count)
			}
			if interrupted(c.Context(), err) {
				return nil
			}
			return err
		})
	})
}

// watchMode is the mode that the flags ask for. The names, and the default of zkCli, are
// those of its AddWatchCommand.
func watchMode(name string, recursive, asZkCli bool) (client.AddWatchMode, error) {
	switch strings.ToUpper(name) {
	case "":
		if recursive || asZkCli {
			return client.ModeRecursive, nil
		}
		return client.ModePersistent, nil
	case "PERSISTENT_RECURSIVE":
		return client.ModeRecursive, nil
	case "PERSISTENT":
		if !recursive {
			return client.ModePersistent, nil
		}
		return 0, usagef("--mode %s and --recursive exclude each other", name)
	}
	return 0, usagef("--mode %q: want PERSISTENT or PERSISTENT_RECURSIVE", name)
}

// follow prints events until there were enough, or the context ends. A lost
// session does not end it: another watch is left in the next one.
func follow(
	ctx context.Context, as output, c *cobra.Command, cl *client.Client, path string,
	mode client.AddWatchMode, count int,
) error {
	for {
		w, err := cl.AddWatch(ctx, path, mode)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "watching %s; Ctrl-C ends it\n", path)
		err = printEvents(ctx, as, c.OutOrStdout(), w, &count)
		w.Cancel()
		if !errors.Is(err, client.ErrSessionExpired) && !errors.Is(err, client.ErrWatchOverflow) {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "events may be missing: %v\n", err)
	}
}

// printEvents returns nil when there were enough, and else why there are no more.
func printEvents(
	ctx context.Context, as output, out io.Writer, w *client.Watch, count *int,
) error {
	for {
		select {
		case e := <-w.C():
			if e.Type == client.EventEnded {
				return fmt.Errorf("the watch has ended: %w", e.Err)
			}
			if err := printEvent(as, out, e); err != nil {
				return err
			}
			if *count--; *count == 0 {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func printEvent(as output, out io.Writer, e client.Event) error {
	if as.json() {
		v := struct {
			Type string       `json:"type"`
			Path string       `json:"path"`
			Zxid *hexadecimal `json:"zxid,omitempty"`
		}{Type: e.Type.String(), Path: e.Path}
		if e.Zxid != client.NoZxid {
			zxid := hexadecimal(e.Zxid)
			v.Zxid = &zxid
		}
		return writeJSON(out, v)
	}
	text := e.Type.String() + " " + e.Path
	if e.Zxid != client.NoZxid {
		text += " " + hexadecimal(e.Zxid).String()
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// awaitEvent waits for the event of a one-shot watch and prints it; nil is no
// watch. In the shell it goes on in the background, as in zkCli.
func awaitEvent(ctx context.Context, g *globals, c *cobra.Command, w *client.Watch) error {
	if w == nil {
		return nil
	}
	if g.shell != nil {
		g.shell.await(w)
		return nil
	}
	select {
	case e := <-w.C():
		if e.Type == client.EventEnded {
			return fmt.Errorf("the watch has ended: %w", e.Err)
		}
		return printEvent(g.output, c.OutOrStdout(), e)
	case <-ctx.Done():
		w.Cancel()
		return context.Cause(ctx)
	}
}
