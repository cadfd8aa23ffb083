package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// putCleanUp bounds how long an interrupted put deletes what it has written.
const putCleanUp = 3 * time.Second

// maxGets bounds how often a value is read from its beginning because others replace it.
const maxGets = 5

func putCommand(g *globals) *cobra.Command {
	var version int32
	var onlyNew bool
	c := &cobra.Command{
		Use:   "put PATH {FILE | -} [ACL]",
		Short: "Write a file of up to 1 GiB as one value, in parts",
		Long: `Write a file, or what comes on standard input (-), as one value of up to 1 GiB: in
parts, which others see all at once when the last is there. The znode has a manifest,
the parts are below it; get --to reads them, and deleteall deletes them. Parts of the
value before the last one, and of writers that died, are deleted. It takes twice its
size in the memory of every server.

Missing znodes above PATH are made as containers. The ACL is that of the znode if it
exists, unless one is given. A znode with data that put has not written is not replaced.`,
		Example: `  zk-lite put /models/ranking ranking.bin
  zk-lite get /models/ranking --to ranking.bin
  tar c conf | zk-lite put /app/conf - && zk-lite get /app/conf --to - | tar t`,
		Args: argCount(2, 3, 1),
	}
	c.Flags().Int32VarP(&version, "version", "v", int32(client.AnyVersion), "only if the znode has this version")
	c.Flags().BoolVar(&onlyNew, "new", false, "only if there is no value yet")
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if onlyNew && c.Flags().Changed("version") {
			return usagef("--new goes without -v: what is not there has no version")
		}
		if onlyNew {
			version = int32(recipes.NoBlobYet)
		}
		if err := checkPath(args[0]); err != nil {
			return err
		}
		var opts []recipes.Option
		if len(args) == 3 {
			acl, err := parseACL(args[2])
			if err != nil {
				return err
			}
			opts = append(opts, recipes.WithACL(acl...))
		}
		content, size, err := openContent(c, g.shell != nil, args[1])
		if err != nil {
			return err
		}
		defer content.Close()
		return g.withClient(c, func(ctx context.Context, cl *client.Client) error {
			b := recipes.NewBlob(cl, args[0], opts...)
			info, err := put(ctx, c, b, &shown{r: content, total: size}, client.Version(version))
			if errors.Is(err, recipes.ErrNoBlob) {
				return &conflictError{args[0] + " has data that put has not written: `delete` or `set` it to '' first"}
			}
			if err != nil {
				return err
			}
			return printValue(g.output, c.OutOrStdout(), args[0], "", &info)
		})
	})
}

// openContent opens a file, or standard input, whose size is not known.
func openContent(c *cobra.Command, inShell bool, name string) (io.ReadCloser, int64, error) {
	switch {
	case name != "-":
		f, err := os.Open(name)
		if err != nil {
			return nil, 0, err
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory; `tar c %s | zk-lite put PATH -` writes one", name, name)
		}
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, info.Size(), nil
	case inShell:
		return nil, 0, usagef("in the shell, - is not possible: name a file")
	}
	return io.NopCloser(c.InOrStdin()), 0, nil
}

// put writes a value. When ctx ends the content does, so that there is time to delete its parts.
func put(
	ctx context.Context, c *cobra.Command, b *recipes.Blob, content *shown, version client.Version,
) (recipes.BlobInfo, error) {
	content.ctx, content.note = ctx, newNote(c)
	defer content.note.clear()
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(putCleanUp, cancel) })()
	return b.Write(longer, content, version)
}

// getTo is where get writes the data rather than printing it.
type getTo struct {
	file  string
	force bool
}

func (t *getTo) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.file, "to", "", "write into a `file`, and what put has written as a whole; - is standard output")
	f.BoolVar(&t.force, "force", false, "with --to: replace the file if it is there")
}

// get writes the data of a znode, or the value that put has written.
func (t *getTo) get(ctx context.Context, g *globals, c *cobra.Command, cl *client.Client, path string) error {
	if t.file == "-" {
		_, err := copyValue(ctx, c, cl, path, c.OutOrStdout())
		return err
	}
	if err := mayWrite(t.file, t.force); err != nil {
		return err
	}
	for try := 1; ; try++ {
		var info recipes.BlobInfo
		err := writeNew(t.file, t.force, func(out io.Writer) (err error) {
			info, err = copyValue(ctx, c, cl, path, out)
			return err
		})
		switch {
		case err == nil:
			return printValue(g.output, c.OutOrStdout(), path, t.file, &info)
		case !errors.Is(err, recipes.ErrBlobReplaced) || try == maxGets:
			return err
		}
	}
}

// copyValue copies the data of a znode, or the value that put has written, whose checksum must be right.
func copyValue(
	ctx context.Context, c *cobra.Command, cl *client.Client, path string, out io.Writer,
) (recipes.BlobInfo, error) {
	r, err := recipes.NewBlob(cl, path).Open(ctx)
	if errors.Is(err, recipes.ErrNoBlob) {
		data, stat, err := cl.Get(ctx, path)
		if err == nil {
			_, err = out.Write(data)
		}
		sum := sha256.Sum256(data)
		return recipes.BlobInfo{Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Stat: stat}, err
	}
	if err != nil {
		return recipes.BlobInfo{}, err
	}
	content := &shown{ctx: ctx, r: r, total: r.Info().Size, note: newNote(c)}
	defer content.note.clear()
	_, err = io.Copy(out, content)
	return r.Info(), err
}

// printValue says what has been written: into a file, or at the path.
func printValue(as output, out io.Writer, path, file string, info *recipes.BlobInfo) error {
	if as.json() {
		return writeJSON(out, struct {
			Path   string    `json:"path"`
			File   string    `json:"file,omitempty"`
			Size   int64     `json:"size"`
			SHA256 string    `json:"sha256"`
			Stat   *statJSON `json:"stat"`
		}{path, file, info.Size, info.SHA256, newStatJSON(info.Stat)})
	}
	if file != "" {
		path = file
	}
	_, err := fmt.Fprintf(out, "%s: %s, sha256 %s\n", path, sizeText(info.Size), info.SHA256)
	return err
}

// shown is a reader that shows how far it is. Once the command is interrupted it has an error, even at its end: the
// program before it in a pipe was interrupted, too.
type shown struct {
	ctx         context.Context
	r           io.Reader
	note        *note
	done, total int64 // total 0: not known
}

func (s *shown) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.ctx.Err() != nil {
		return n, s.ctx.Err()
	}
	if s.done += int64(n); s.total > 0 {
		s.note.show("%s of %s", sizeText(s.done), sizeText(s.total))
	} else {
		s.note.show("%s", sizeText(s.done))
	}
	return n, err
}
