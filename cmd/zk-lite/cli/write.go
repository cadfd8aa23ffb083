package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

func createCommand(g *globals) *cobra.Command {
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
	g.bindSession(c)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
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
		data, rest, err := o.source.take(c, g.shell != nil, args[1:])
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
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			return create(ctx, g, c, cl, args[0], data, mode, ttl, acl, &o)
		})
	})
}

// createOptions are the flags of create.
type createOptions struct {
	sequential, ephemeral, container, parents, withStat bool
	ttl                                                 string
	source                                              dataSource
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

func create(
	ctx context.Context, g *globals, c *cobra.Command, cl *client.Client, path string, data []byte,
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
	if g.output.json() {
		err = printStatOf(g.output, c, made, stat, false)
	} else {
		fmt.Fprintln(c.OutOrStdout(), made)
		err = printStatOf(g.output, c, made, stat, o.withStat)
	}
	if err != nil || !mode.Ephemeral() || g.shell != nil {
		return err
	}
	return keep(c, cl, session, made)
}

// keep waits while an ephemeral lives.
func keep(c *cobra.Command, cl *client.Client, s client.Session, path string) error {
	fmt.Fprintf(c.ErrOrStderr(), "%s lives as long as this command; Ctrl-C deletes it\n", path)
	ctx, cancel := s.Context(c.Context()) // nothing must be sent in another session
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
			return fmt.Errorf("%s was deleted by another client", path)
		}
		select {
		case <-w.C():
		case <-ctx.Done():
		}
	}
}

func setCommand(g *globals) *cobra.Command {
	var withStat, fromBase64 bool
	var version int32
	var source dataSource
	c := &cobra.Command{
		Use:   "set PATH [DATA | -]",
		Short: "Replace the data of a znode",
		Long: `Replace the data of a znode, by the argument, by what comes on standard input
(-), or by a file (--file). With -v only if the znode has that version. With -b
what is given is base64, and the data is what it stands for.`,
		Example: `  zk-lite set /app/config 'debug: true'
  zk-lite set /app/config --file config.yaml
  date | zk-lite set -v 3 /app/config -`,
		Args: argCount(1, 2, 1),
	}
	f := c.Flags()
	f.Int32VarP(&version, "version", "v", int32(client.AnyVersion), "only if the data has this version")
	f.BoolVarP(&withStat, "stat", "s", false, "print the new Stat")
	f.BoolVarP(&fromBase64, "base64", "b", false, "what is given is base64 of the data")
	source.bind(c)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if len(args) == 1 && source.file == "" {
			return usagef("no data; usage: %s", c.UseLine())
		}
		data, rest, err := source.take(c, g.shell != nil, args[1:])
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return usagef("data both as an argument and from --file")
		}
		if fromBase64 {
			if data, err = base64.StdEncoding.AppendDecode(nil, data); err != nil {
				return usagef("--base64: the data is not base64: %w", err)
			}
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			stat, err := cl.Set(ctx, args[0], data, client.Version(version))
			if err != nil {
				return err
			}
			return printStatOf(g.output, c, args[0], stat, withStat)
		})
	})
}

func deleteCommand(g *globals) *cobra.Command {
	var version int32
	c := &cobra.Command{
		Use:   "delete PATH",
		Short: "Delete a znode that has no children",
		Example: `  zk-lite delete /app/config
  zk-lite delete -v 3 /app/config`,
		Args: argCount(1, 1, 1),
	}
	c.Flags().Int32VarP(&version, "version", "v", int32(client.AnyVersion),
		"only if the data has this version")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if err := cl.Delete(ctx, args[0], client.Version(version)); err != nil {
				return err
			}
			if g.output.json() {
				return writeJSON(c.OutOrStdout(), map[string]any{"path": args[0], "deleted": 1})
			}
			return nil
		})
	})
}

func setACLCommand(g *globals) *cobra.Command {
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
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		list, err := parseACL(args[1])
		if err != nil {
			return err
		}
		if recursive && version != int32(client.AnyVersion) {
			return usagef("-v goes without -R: every znode has a version of its own")
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			stat, err := cl.SetACL(ctx, args[0], list, client.Version(version))
			if err == nil && recursive {
				err = setACLBelow(ctx, cl, args[0], list)
			}
			if err != nil {
				return err
			}
			return printStatOf(g.output, c, args[0], stat, withStat)
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

// parseACL reads scheme:id:perms,... (zkCli's AclParser): the scheme ends at
// the first colon, the permissions begin behind the last.
func parseACL(s string) ([]client.ACL, error) {
	var list []client.ACL
	for item := range strings.SplitSeq(s, ",") {
		acl, err := subtree.ParseACL(strings.TrimSpace(item))
		if err != nil {
			return nil, Usage(err)
		}
		list = append(list, acl)
	}
	return list, nil
}

// maxInput bounds what is read as the data of one znode. Servers take a megabyte
// unless their jute.maxbuffer is raised, which goes up to this in practice.
const maxInput = 64 << 20

// dataSource is where the data of set and create comes from.
type dataSource struct{ file string }

func (d *dataSource) bind(c *cobra.Command) {
	c.Flags().StringVarP(&d.file, "file", "f", "", "take the data from a file")
}

// take returns the data, and the arguments behind it. Without any it is nil.
func (d *dataSource) take(c *cobra.Command, inShell bool, args []string) ([]byte, []string, error) {
	switch {
	case d.file != "":
		f, err := os.Open(d.file)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		data, err := readAll(f)
		return data, args, err
	case len(args) == 0:
		return nil, nil, nil
	case args[0] == "-" && inShell:
		return nil, nil, usagef("in the shell, - is not possible: use --file")
	case args[0] == "-":
		data, err := readAll(c.InOrStdin())
		return data, args[1:], err
	}
	return []byte(args[0]), args[1:], nil
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("reading the data: %w", err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("the data is longer than %d bytes", maxInput)
	}
	return data, nil
}
