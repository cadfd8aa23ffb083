package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// createOptions are the flags of create.
type createOptions struct {
	sequential, ephemeral, container, parents, withStat bool
	ttl                                                 string
	source                                              dataSource
}

func (a *app) createCommand() *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use:   "create PATH [DATA | -] [ACL]",
		Short: "Create a znode and print its path",
		Long: `Create a znode and print its path. The data is the argument, what comes on
standard input (-), or a file (--file). The ACL is a list of scheme:id:perms,
the permissions being letters of cdrwa; without one everybody may do everything.

An ephemeral znode (-e) lives as long as its session, and the session ends with
the command: the command keeps running until it is interrupted, or the znode is
lost.`,
		Example: `  zk-lite create /app/config 'debug: false'
  zk-lite create --parents /a/b/c
  zk-lite create -s /queue/item- "$(date)"
  zk-lite create -e /app/lock "$HOSTNAME"
  zk-lite create -t 1h /cache/x '' digest:ann:sCxtVJ1gPG8UW/jzFHR0A1ZKY5s=:cdrwa`,
		Args: argCount(1, 3, 0),
	}
	f := c.Flags()
	f.BoolVarP(&o.sequential, "sequential", "s", false, "append a number that the server gives")
	f.BoolVarP(&o.ephemeral, "ephemeral", "e", false, "delete it when the session ends")
	f.BoolVarP(&o.container, "container", "c", false, "delete it when its last child has gone")
	f.StringVarP(&o.ttl, "ttl", "t", "", "delete it when unchanged and childless for so long (30s; 5000 is ms)")
	f.BoolVar(&o.parents, "parents", false, "create what is missing above it")
	f.BoolVar(&o.withStat, "stat", false, "print the Stat, too")
	o.source.bind(c)
	a.bindSession(c)
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		mode, ttl, err := o.mode()
		if err != nil {
			return err
		}
		check := args[0]
		if o.sequential {
			check += "0" // a number follows, so the name may end in a slash
		}
		if err := checkPath(check); err != nil {
			return err
		}
		data, rest, err := o.source.take(a, c, args[1:])
		if err != nil {
			return err
		}
		var acl []client.ACL
		switch {
		case len(rest) > 1:
			return usagef("%q is one argument too many; usage: %s", rest[1], c.UseLine())
		case len(rest) == 1:
			if acl, err = parseACL(rest[0]); err != nil {
				return err
			}
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			return a.create(ctx, c, cl, args[0], data, mode, ttl, acl, &o)
		})
	})
}

// mode is the kind of znode that the flags ask for.
func (o *createOptions) mode() (client.Mode, time.Duration, error) {
	if o.container && (o.sequential || o.ephemeral || o.ttl != "") {
		return 0, 0, usagef("-c goes without -s, -e and -t: a container is a kind of its own")
	}
	if o.ephemeral && o.ttl != "" {
		return 0, 0, usagef("-e and -t exclude each other: an ephemeral ends with its session")
	}
	var ttl time.Duration
	if o.ttl != "" {
		var err error
		if ttl, err = parseTTL(o.ttl); err != nil {
			return 0, 0, err
		}
	}
	switch {
	case o.container:
		return client.Container, 0, nil
	case ttl > 0 && o.sequential:
		return client.PersistentSequentialTTL, ttl, nil
	case ttl > 0:
		return client.PersistentTTL, ttl, nil
	case o.ephemeral && o.sequential:
		return client.EphemeralSequential, 0, nil
	case o.ephemeral:
		return client.Ephemeral, 0, nil
	case o.sequential:
		return client.PersistentSequential, 0, nil
	}
	return client.Persistent, 0, nil
}

// parseTTL reads a duration, or milliseconds as zkCli does.
func parseTTL(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if ms, bad := strconv.ParseInt(s, 10, 40); bad == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || d < time.Millisecond {
		return 0, usagef("-t %q: want a duration such as 30s, or milliseconds, 1 or more", s)
	}
	return d, nil
}

func (a *app) create(
	ctx context.Context, c *cobra.Command, cl *client.Client, path string, data []byte,
	mode client.Mode, ttl time.Duration, acl []client.ACL, o *createOptions,
) error {
	if o.parents {
		if err := cl.EnsurePath(ctx, znode.Parent(path), client.Persistent, acl...); err != nil {
			return err
		}
	}
	session := cl.Session()
	ctx, cancel := session.Context(ctx)
	defer cancel()
	var made string
	var stat client.Stat
	var err error
	if mode.TTL() {
		made, stat, err = cl.CreateTTL(ctx, path, data, mode, ttl, acl...)
	} else {
		made, stat, err = cl.Create(ctx, path, data, mode, acl...)
	}
	if err != nil {
		return err
	}
	if a.json() {
		err = a.printStatOf(c, made, stat, false)
	} else {
		fmt.Fprintln(c.OutOrStdout(), made)
		err = a.printStatOf(c, made, stat, o.withStat)
	}
	if err != nil || !mode.Ephemeral() || a.shell != nil {
		return err
	}
	return a.keep(c, cl, session, made)
}

// keep waits while an ephemeral lives.
func (a *app) keep(c *cobra.Command, cl *client.Client, s client.Session, path string) error {
	fmt.Fprintf(c.ErrOrStderr(), "%s lives as long as this command; Ctrl-C deletes it\n", path)
	ctx, cancel := s.Context(c.Context()) // nothing is to be asked in another session
	defer cancel()
	for {
		exists, _, w, err := cl.ExistsW(ctx, path)
		switch {
		case c.Context().Err() != nil:
			return cl.Close()
		case s.Err() != nil:
			return fmt.Errorf("%s is gone with its session: %w", path, s.Err())
		case err != nil:
			return err
		case !exists:
			return fmt.Errorf("%s was deleted by somebody else", path)
		}
		select {
		case <-w.C():
		case <-ctx.Done():
		}
	}
}
