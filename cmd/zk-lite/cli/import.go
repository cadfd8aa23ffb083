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
)

func (a *app) importCommand() *cobra.Command {
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
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
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
		case a.shell != nil:
			return usagef("in the shell, import needs --file")
		}
		r, err := subtree.NewReader(in)
		if err != nil {
			return err
		}
		path := append(args, r.Root)[0]
		if dryRun {
			return a.checkExport(c, r, path)
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
			if err := existing.prepare(ctx, cl, path); err != nil {
				return err
			}
			p := newProgress(c, "imported")
			n, err := subtree.Import(ctx, cl, r, path, choice, p.step)
			p.clear()
			return a.reportCount(c, "imported", path, n, err)
		})
	})
}

// checkExport reads an export to its end.
func (a *app) checkExport(c *cobra.Command, r *subtree.Reader, root string) error {
	for n := 0; ; n++ {
		_, err := r.Next(root)
		switch {
		case errors.Is(err, io.EOF) && a.json():
			return writeJSON(c.OutOrStdout(), map[string]any{"path": root, "znodes": n})
		case errors.Is(err, io.EOF):
			fmt.Fprintf(c.OutOrStdout(), "%d znodes for %s\n", n, root)
			return nil
		case err != nil:
			return err
		}
	}
}
