package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/znode"
)

func cpCommand(g *globals) *cobra.Command {
	var recursive bool
	var existing existingFlags
	c := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy a znode, or a subtree, with data and ACLs",
		Long: `Copy a znode, with -R also all below it: data and ACLs, but not versions and
times, nor ephemerals, which belong to a session. DESTINATION is the path of the
copy, not that of a parent. Servers do not report which znodes are containers or have a
time to live: the copies are persistent.

The copy of a subtree shows one state of it, whose zxid is in the JSON of -o json (of
ZooKeeper: each znode when its turn came). It is not one transaction: others see it grow,
and at the first error it ends and says how far it got; what has been copied stays.
Znodes that exist are such an error, unless --overwrite or --skip-existing says what to
do with them; with either it can be repeated. Znodes that may not be read are left out
with all below them, and named on standard error; the exit code is 7 then.`,
		Example: `  zk-lite cp /app/config /app/config.old
  zk-lite cp -R /app /backup/app --parents`,
		Args: argCount(2, 2, 2),
	}
	c.Flags().BoolVarP(&recursive, "recursive", "R", false, "copy all that is below, too")
	existing.bind(c)
	g.completePaths(c, 2)
	return g.command(c, func(c *cobra.Command, args []string) error {
		choice, err := existing.choice()
		if err != nil {
			return err
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if err := existing.prepare(ctx, cl, args[1]); err != nil {
				return err
			}
			p := newProgress(c, "copied")
			skipped := skipped{c: c, progress: p}
			n, err := subtree.Copy(ctx, cl, args[0], cl, args[1], recursive, choice, p.step, skipped.note)
			p.clear()
			if err := reportCount(g.output, c, "copied", args[1], n, err); err != nil {
				return err
			}
			return skipped.err()
		})
	})
}

func mvCommand(g *globals) *cobra.Command {
	var parents bool
	c := &cobra.Command{
		Use:   "mv SOURCE DESTINATION",
		Short: "Move a znode and all below it, in one transaction",
		Long: `Move a znode and all below it, with data and ACLs, in one transaction: others see
it at the one place or at the other. What is too large for one transaction (1000
znodes, 900 KiB) or has ephemerals is refused. DESTINATION is the new path, not
that of a parent. The new znodes have new versions and times; containers and znodes with a time
to live become persistent.`,
		Example: `  zk-lite mv /app/config.new /app/config`,
		Args:    argCount(2, 2, 2),
	}
	c.Flags().BoolVar(&parents, "parents", false,
		"create what is missing above the destination, before the transaction")
	g.completePaths(c, 2)
	return g.command(c, func(c *cobra.Command, args []string) error {
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			n, err := subtree.Move(ctx, cl, args[0], args[1], parents)
			if err == nil && g.output.json() {
				err = writeJSON(c.OutOrStdout(), map[string]any{"path": args[1], "moved": n})
			}
			return err
		})
	})
}

func exportCommand(g *globals) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "export [PATH]",
		Short: "Write a subtree as lines of JSON",
		Long: `Write a subtree as lines of JSON, on standard output or into a file: a header,
a line for every znode, and a last line with their number. Data that is not UTF-8
is written as base64; the field "encoding" says which. ACLs are in it, /zookeeper
is not, nor does it say which znodes are containers or have a time to live. It shows
one state, whose zxid is in the header; of ZooKeeper, a subtree that changes meanwhile
is seen as it was when each znode's turn came. Znodes that may not be read are left out with all below
them, and named on standard error; the exit code is 7 then.`,
		Example: `  zk-lite export /app > app.jsonl
  zk-lite export / --file all.jsonl
  zk-lite export /app | zk-lite import --server other:2181 /app`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().StringVarP(&file, "file", "f", "", "write into a file")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		path := append(args, "/")[0]
		if err := checkPath(path); err != nil {
			return err
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			p := newProgress(c, "exported")
			defer p.clear()
			skipped := skipped{c: c, progress: p}
			write := func(out io.Writer) error {
				n, err := subtree.Export(ctx, cl, path, out, p.step, skipped.note)
				if err != nil && n > 0 {
					err = &partError{n: n, what: "exported", err: err}
				}
				return err
			}
			var err error
			if file == "" {
				err = write(c.OutOrStdout())
			} else {
				err = writeFile(file, write)
			}
			if err != nil {
				return err
			}
			return skipped.err()
		})
	})
}

// writeFile writes a file that is there as a whole or, after an error, not at
// all.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
		return err
	}
	return os.Rename(f.Name(), name)
}

func importCommand(g *globals) *cobra.Command {
	var file string
	var dryRun bool
	var existing existingFlags
	c := &cobra.Command{
		Use:   "import [PATH]",
		Short: "Create the znodes of an export",
		Long: `Create the znodes of an export, read from standard input or from a file, at PATH
or else where they were. Ephemerals are left out: they belong to a session. --dry-run
reads the export to its end and writes nothing.

It is not one transaction: others see it grow, and at the first error it ends and
says how far it got; what has been imported stays. Znodes that exist are such an
error, unless --overwrite or --skip-existing says what to do with them; with either
it can be repeated.`,
		Example: `  zk-lite import < app.jsonl
  zk-lite import /copy/of/app --file app.jsonl --parents
  zk-lite import --file app.jsonl --skip-existing   # go on after an error`,
		Args: argCount(0, 1, 0),
	}
	f := c.Flags()
	f.StringVarP(&file, "file", "f", "", "read from a file")
	f.BoolVar(&dryRun, "dry-run", false, "only check the export")
	existing.bind(c)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		choice, err := existing.choice()
		if err != nil {
			return err
		}
		if len(args) == 1 {
			if err := checkPath(args[0]); err != nil {
				return err
			}
		}
		in := c.InOrStdin()
		switch {
		case file != "":
			opened, err := os.Open(file)
			if err != nil {
				return err
			}
			defer opened.Close()
			in = opened
		case g.shell != nil:
			return usagef("in the shell, import needs --file")
		}
		r, err := subtree.NewReader(in)
		if err != nil {
			return err
		}
		path := append(args, r.Root)[0]
		if dryRun {
			return checkExport(g.output, c, r, path)
		}
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if err := existing.prepare(ctx, cl, path); err != nil {
				return err
			}
			p := newProgress(c, "imported")
			n, err := subtree.Import(ctx, cl, r, path, choice, p.step)
			p.clear()
			return reportCount(g.output, c, "imported", path, n, err)
		})
	})
}

// checkExport reads an export to its end.
func checkExport(as output, c *cobra.Command, r *subtree.Reader, root string) error {
	for n := 0; ; n++ {
		_, err := r.Next(root)
		switch {
		case errors.Is(err, io.EOF) && as.json():
			return writeJSON(c.OutOrStdout(), map[string]any{"path": root, "znodes": n})
		case errors.Is(err, io.EOF):
			fmt.Fprintf(c.OutOrStdout(), "%d znodes for %s\n", n, root)
			return nil
		case err != nil:
			return err
		}
	}
}

// existingFlags are the flags of cp and import for znodes that exist already.
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

// reportCount reports what cp and import have done.
func reportCount(
	as output, c *cobra.Command, what, path string, n subtree.Count, err error,
) error {
	if n.Ephemerals > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%d ephemeral znodes were left out\n", n.Ephemerals)
	}
	if done := n.Created + n.Replaced; err != nil && (done > 0 || errors.Is(err, client.ErrNodeExists)) {
		return &partError{done, what, err, "to go on, repeat it with --skip-existing or --overwrite"}
	}
	if err != nil || !as.json() {
		return err
	}
	v := map[string]any{
		"path": path, "created": n.Created, "replaced": n.Replaced,
		"kept": n.Kept, "ephemerals": n.Ephemerals,
	}
	if n.Zxid != 0 {
		v["zxid"] = hexadecimal(n.Zxid)
	}
	return writeJSON(c.OutOrStdout(), v)
}
