package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/docs"
	"github.com/zk-lite/zk-lite/internal/site"
	"github.com/zk-lite/zk-lite/lab/serve"
)

// docsCommand returns the command "docs".
func docsCommand() *cobra.Command {
	var port int
	var out, clone string
	c := &cobra.Command{
		Use:   "docs",
		Short: "Read the documentation of this version in a browser",
		Long: `Serve the pages for users and operators, with a search, on this machine, and open them
if this is a terminal. They are part of the program: no network is needed. Ctrl-C stops it.`,
		Example: "  zk-lite docs\n  zk-lite docs --out /var/www/zk-lite",
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	f.IntVar(&port, "port", 0, "port on 127.0.0.1; 0 is any free one")
	f.StringVar(&out, "out", "", "write the pages into this `DIRECTORY` and serve nothing")
	f.StringVar(&clone, "clone", "", "take all pages, with their pictures, from this `DIRECTORY` with the source code")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if port < 0 || port > maxPort {
			return cli.Usage(fmt.Errorf("--port %d: want 0 to %d", port, maxPort))
		}
		source := site.Source{Files: docs.Files, Folder: "docs", Version: version}
		if clone != "" {
			source.Files, source.Folder = os.DirFS(clone), ""
		}
		files, err := site.Build(source)
		if err != nil {
			return err
		}
		if out != "" {
			fmt.Fprintf(c.OutOrStdout(), "%s: %d files\n", filepath.Join(out, "index.html"), len(files))
			return writeSite(out, files)
		}
		l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("--port %d: %w", port, err)
		}
		address := "http://" + l.Addr().String() + "/"
		fmt.Fprintf(c.OutOrStdout(), "the documentation is on %s (Ctrl-C stops it)\n", address)
		if term.IsTerminal(int(os.Stdout.Fd())) {
			go cli.Open(c.Context(), address) // which is printed as well
		}
		return serve.Serve(c.Context(), l, site.Handler(files))
	}
	return c
}

// writeSite writes the files of a site below a directory. Files that are not the site's are left as they are.
func writeSite(dir string, files map[string][]byte) error {
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err := errors.Join(err, os.WriteFile(file, data, fs.FileMode(0o644))); err != nil {
			return err
		}
	}
	return nil
}
