package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
)

func (a *app) exportCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "export [PATH]",
		Short: "Write a subtree as lines of JSON",
		Long: `Write a subtree as lines of JSON, on standard output or into a file: a header,
a line for every znode, and a last line with their number. Data that is not UTF-8
is written as base64; the field "encoding" says which. ACLs are in it, /zookeeper
is not, nor does it say which znodes are containers or have a time to live. It is
not a snapshot of one moment: a subtree that changes meanwhile is seen as it was
when each znode's turn came. Znodes that may not be read are left out with all below
them, and named on standard error; the exit code is 7 then.`,
		Example: `  zk-lite export /app > app.jsonl
  zk-lite export / --file all.jsonl
  zk-lite export /app | zk-lite import --server other:2181 /app`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().StringVarP(&file, "file", "f", "", "write into a file")
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		path := append(args, "/")[0]
		if err := checkPath(path); err != nil {
			return err
		}
		return a.withClient(c, func(ctx context.Context, cl *client.Client) error {
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
