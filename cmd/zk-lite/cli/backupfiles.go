package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/backupfile"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/subtree"
	"github.com/zk-lite/zk-lite/consensus/state/backup"
)

// backupSuffix is what the names of backups end with, in a directory.
const backupSuffix = ".backup"

// backupJSON is the contents of a backup in numbers.
type backupJSON struct {
	File   string      `json:"file"`
	Zxid   hexadecimal `json:"zxid"`
	Znodes uint64      `json:"znodes"`
	Bytes  int64       `json:"bytes"`
}

// fileJSON is a backup that is a file.
type fileJSON struct {
	backupJSON
	Ensemble string    `json:"ensemble,omitempty"` // empty: the backup does not say
	Time     time.Time `json:"time"`
	Problem  string    `json:"problem,omitempty"` // empty: none was found
}

func backupListCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "ls FILE|DIRECTORY...",
		Short: "List backups, the oldest first",
		Long: `List backups, the oldest first: files, and those in directories whose names end with
` + backupSuffix + `. Each is read to its end; that does not show every damage: verify does. The exit code
is 1 if one of them is no whole backup.`,
		Example: `  zk-lite backup ls /var/backups/zk-lite`,
		Args:    argCount(1, -1, 0),
	}
	return offline(c, &g.output, func(c *cobra.Command, args []string) error {
		return eachBackup(g.output, c, args, func(in io.Reader, f *fileJSON) error {
			s, err := backupfile.Check(in, func() {})
			f.fill(s.Ensemble, s.Zxid, s.Time, s.Znodes)
			return err
		})
	})
}

func backupVerifyCommand(g *globals) *cobra.Command {
	var ensemble string
	c := &cobra.Command{
		Use:   "verify FILE|DIRECTORY...",
		Short: "Restore backups in memory, and compare their digests",
		Long: `Restore backups in memory, one after the other, and compare the digest of the state that
this makes with the one that was written with the backup: what passes can be restored. It
takes as much memory as the znodes do in a server. With --ensemble, a backup has to be
of this ensemble: ` + "`zk-lite member list -o json`" + ` shows its id. The exit code is 1 if
one of them does not pass.`,
		Example: `  zk-lite backup verify /var/backups/zk-lite
  aws s3 cp s3://backups/zk.backup - | gpg -d | zk-lite backup verify -`,
		Args: argCount(1, -1, 0),
	}
	c.Flags().StringVar(&ensemble, "ensemble", "", "`id` of the ensemble that they have to be of")
	return offline(c, &g.output, func(c *cobra.Command, args []string) error {
		return eachBackup(g.output, c, args, func(in io.Reader, f *fileJSON) error {
			b, of, err := backupfile.Restore(in)
			if err != nil {
				return err
			}
			f.fill(of, int64(b.Zxid()), time.UnixMilli(b.TimeMillis()), uint64(b.Size().Znodes))
			if ensemble != "" && of.String() != ensemble {
				return fmt.Errorf("it is of another ensemble: %v", of)
			}
			return nil
		})
	})
}

func (f *fileJSON) fill(of backupfile.Ensemble, zxid int64, at time.Time, znodes uint64) {
	if of != (backupfile.Ensemble{}) {
		f.Ensemble = of.String()
	}
	f.Zxid, f.Time, f.Znodes = hexadecimal(zxid), at.UTC(), znodes
}

// eachBackup reads backups, and prints what look finds of each.
func eachBackup(as output, c *cobra.Command, args []string, look func(io.Reader, *fileJSON) error) error {
	names, err := backupNames(args)
	if err != nil {
		return err
	}
	note := newNote(c)
	var all []fileJSON
	for _, name := range names {
		note.show("%s", name)
		f := fileJSON{backupJSON: backupJSON{File: name}}
		in, err := openInput(c, name)
		if err == nil {
			counted := &counter{r: &contextReader{c.Context(), in}}
			err = look(counted, &f)
			f.Bytes = counted.n
			_ = in.Close() // it was only read
		}
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if err != nil {
			f.Problem = err.Error()
		}
		all = append(all, f)
	}
	note.clear()
	slices.SortStableFunc(all, func(x, y fileJSON) int {
		return cmp.Or(x.Time.Compare(y.Time), cmp.Compare(x.File, y.File))
	})
	if err := showNewest(as, c.OutOrStdout(), all, len(all), printBackups); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(f fileJSON) bool { return f.Problem != "" }) {
		return &exitError{code: ExitFailed}
	}
	return nil
}

// backupNames are the files that arguments mean.
func backupNames(args []string) (names []string, err error) {
	for _, arg := range args {
		if info, err := os.Stat(arg); arg == "-" || err != nil || !info.IsDir() {
			names = append(names, arg) // an error comes with the file
			continue
		}
		in, err := fs.Glob(os.DirFS(arg), "*"+backupSuffix)
		if err != nil {
			return nil, err
		}
		for _, name := range in {
			names = append(names, filepath.Join(arg, name))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no file there has a name that ends with %s; name the files", backupSuffix)
	}
	return names, nil
}

func printBackups(out io.Writer, all []fileJSON) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tTIME\tZXID\tZNODES\tSIZE\tENSEMBLE\tPROBLEM")
	for i := range all {
		f := &all[i]
		at := "-"
		if !f.Time.IsZero() {
			at = f.Time.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%d\t%s\t%s\t%s\n", f.File, at, f.Zxid, f.Znodes, sizeText(f.Bytes),
			orDash(f.Ensemble), orDash(f.Problem))
	}
	return w.Flush()
}

func backupDiffCommand(g *globals) *cobra.Command {
	var o diffOptions
	var local bool
	c := &cobra.Command{
		Use:   "diff FILE [FILE]",
		Short: "Compare two backups, or one with the ensemble as it is now",
		Long: `Compare two backups by path, or one with the ensemble as it is now: data, ACLs and kinds,
but not versions and times. A line for each znode that differs:

  - PATH   only in the first
  + PATH   only in the second, or now
  ~ PATH   in both; then what differs: data, acl, ephemeral

The exit code is 0 if there is no difference and 1 if there is. Both are held in memory.`,
		Example: `  zk-lite backup diff monday.backup tuesday.backup
  zk-lite backup diff --no-ephemerals monday.backup`,
		Args: argCount(1, 2, 0),
	}
	f := c.Flags()
	f.BoolVar(&o.noACL, "no-acl", false, "do not compare ACLs")
	f.BoolVar(&o.noEphem, "no-ephemerals", false, "leave out ephemerals")
	f.BoolVar(&local, "local", false, "compare with what this server knows, however old")
	return g.operation(c, backupTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		left, err := restoreFile(c, args[0])
		if err != nil {
			return err
		}
		var right *backup.Backup
		if len(args) == 2 {
			right, err = restoreFile(c, args[1])
		} else {
			right, err = restoreLive(c, api, local)
		}
		if err != nil {
			return err
		}
		return showDiff(g.output, c, backup.Diff(left, right), &o)
	})
}

func showDiff(as output, c *cobra.Command, all []backup.Difference, o *diffOptions) error {
	out := newBuffered(c.OutOrStdout())
	differ := false
	for _, x := range all {
		node := &subtree.Node{}
		if x.Ephemeral {
			node.Stat = client.Stat{EphemeralOwner: 1}
		}
		d := subtree.Difference{Rel: x.Path, Data: x.Data, ACL: x.ACL, Ephemeral: x.Kind}
		if x.Left {
			d.Left = node
		}
		if x.Right {
			d.Right = node
		}
		if o.ignores(&d) {
			continue
		}
		differ = true
		if err := printDifference(as, out, &d, o); err != nil {
			return err
		}
	}
	if err := out.done(nil); err != nil || !differ {
		return err
	}
	return &exitError{code: ExitFailed}
}

func restoreFile(c *cobra.Command, name string) (*backup.Backup, error) {
	in, err := openInput(c, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, _, err := backupfile.Restore(&contextReader{c.Context(), in})
	if err != nil {
		return nil, cmp.Or(c.Context().Err(), fmt.Errorf("%s: %w", name, err))
	}
	return b, nil
}

func restoreLive(c *cobra.Command, api *httpapi.Client, local bool) (*backup.Backup, error) {
	resp, err := askBackup(c.Context(), api, local)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, _, err := backupfile.Restore(resp.Body)
	return b, cmp.Or(c.Context().Err(), err)
}

// openInput opens a file, or standard input for -.
func openInput(c *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.InOrStdin()), nil
	}
	return os.Open(name)
}

// snapshotPath is the resource of backups.
const snapshotPath = "/v1/snapshot"

// askBackup asks for a backup; local: of what the server knows, however old.
func askBackup(ctx context.Context, api *httpapi.Client, local bool) (*http.Response, error) {
	target := snapshotPath + "?consistency=linearizable"
	if local {
		target = snapshotPath + "?consistency=local"
	}
	return api.Do(ctx, &httpapi.Request{Method: http.MethodGet, Target: target, Repeatable: true})
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// contextReader ends reading when the command is interrupted.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
