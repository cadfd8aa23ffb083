package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/backupfile"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// backupTimeout is how long to wait for a backup to begin, or to go on.
const backupTimeout = time.Minute

func backupCommand(g *globals) *cobra.Command {
	var force, local bool
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save the whole state at one moment",
		Long: `Save the whole state of the ensemble as it is at one moment: all znodes with their
ACLs, versions and times. All that was acknowledged before is in it, unless --local is
given, which also works where there is no majority any more. FILE is there when it is whole and on the disk, or not at
all; - is standard output. What is already there is not replaced without --force.
A FILE named as one of the commands below is written ./ls.
` + "`zk-lite restore`" + ` brings it back.`,
		Example: `  zk-lite backup zk-$(date +%F).backup
  zk-lite backup - | gpg -e -r ops > zk.backup.gpg`,
		Args: argCount(1, 1, 0),
	}
	g.add(c, "", backupListCommand, backupVerifyCommand, backupDiffCommand)
	c.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	c.Flags().BoolVar(&local, "local", false, "what this server knows, however old")
	return g.operation(c, backupTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		name := args[0]
		if name == "-" {
			if isTerminal(c.OutOrStdout()) {
				return usagef("a backup is not for terminals: give a file, or put standard output somewhere")
			}
			s, size, err := download(c, api, local, c.OutOrStdout())
			if err == nil {
				err = printBackup(g.output, c.ErrOrStderr(), "standard output", &s, size)
			}
			return err
		}
		if err := mayWrite(name, force); err != nil {
			return err
		}
		var s backupfile.Summary
		var size int64
		err := writeNew(name, force, func(out io.Writer) (err error) {
			s, size, err = download(c, api, local, out)
			return err
		})
		if err != nil {
			return err
		}
		return printBackup(g.output, c.OutOrStdout(), name, &s, size)
	})
}

func printBackup(
	as output, out io.Writer, name string, s *backupfile.Summary, size int64,
) error {
	if as.json() {
		return writeJSON(out, backupJSON{name, hexadecimal(s.Zxid), s.Znodes, size})
	}
	_, err := fmt.Fprintf(out, "%s: %d znodes at zxid %v, %s\n",
		name, s.Znodes, hexadecimal(s.Zxid), sizeText(size))
	return err
}

// download writes a backup as it comes, and makes sure that it is whole.
func download(
	c *cobra.Command, api *httpapi.Client, local bool, out io.Writer,
) (backupfile.Summary, int64, error) {
	resp, err := askBackup(c.Context(), api, local)
	if err != nil {
		return backupfile.Summary{}, 0, err
	}
	defer resp.Body.Close()
	in := &counter{r: io.TeeReader(resp.Body, out)}
	note, znodes := newNote(c), 0
	s, err := backupfile.Check(in, func() {
		znodes++
		note.show("%d znodes, %s", znodes, sizeText(in.n))
	})
	note.clear()
	if c.Context().Err() != nil {
		return s, in.n, c.Context().Err()
	}
	if err != nil {
		err = fmt.Errorf("what %s sent is no whole backup: %w; try again, or at another server with --http",
			resp.Request.URL.Host, err)
	}
	return s, in.n, err
}

// existsError reports that a file would be replaced.
func existsError(name string) error {
	return &conflictError{fmt.Sprintf("%s is there already; --force replaces it", name)}
}

// mayWrite reports before the work whether a file cannot be written.
func mayWrite(name string, force bool) error {
	if dir, err := os.Stat(filepath.Dir(name)); err != nil || !dir.IsDir() {
		return fmt.Errorf("%s is no directory that is there; make it first", filepath.Dir(name))
	}
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file that could be replaced; - is standard output", name)
	case !force:
		return existsError(name)
	}
	return nil
}

// writeNew writes a file that is there as a whole and on the disk or, after an error,
// not at all; an earlier one of the same name stays until then.
func writeNew(name string, force bool, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if !force {
		// Unlike a renaming this replaces nothing that has come meanwhile. Where there
		// are no links, the look before has to do.
		switch err := os.Link(f.Name(), name); {
		case errors.Is(err, fs.ErrExist):
			return existsError(name)
		case err == nil:
			return errors.Join(os.Remove(f.Name()), syncDir(dir))
		}
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("making %s durable: %w", dir, err)
	}
	return nil
}
