// Command zk-lite is a coordination service that speaks ZooKeeper's protocol: the
// server, an ensemble for development, and tools. The commands for clients and operators
// are in package cli.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
)

// version is set at the build of a release (-ldflags "-X main.version=1.2.3").
var version = "1.0.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, out := rootCommand(), &standardOutput{File: os.Stdout}
	root.SetOut(out)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("writing the output: %w", out.err)
	}
	if err != nil {
		if text := cli.Message(err); text != "" {
			fmt.Fprintln(os.Stderr, "zk-lite:", text)
		}
		os.Exit(cli.ExitCode(err))
	}
}

// standardOutput remembers that it could not be written: half a list must not pass for a whole one.
type standardOutput struct {
	*os.File
	err error // the first
}

// Write implements io.Writer.
func (o *standardOutput) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "zk-lite",
		Short:         "A coordination service that speaks ZooKeeper's protocol",
		Long:          "A coordination service that speaks ZooKeeper's protocol.\n\n" + cli.ExitHelp,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cli.AddCommands(root,
		[]*cobra.Command{
			serverCommand(), doctorCommand(), supportCommand(), recoverCommand(), formCommand(), devCommand(),
		},
		[]*cobra.Command{sizeCommand(), benchCommand(), labCommand(), manCommand(), versionCommand()})
	return root
}

// buildInfo is what identifies a build.
type buildInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`      // empty if it was not built in a Git repository
	Time      string `json:"commit_time,omitempty"` // RFC 3339
	Modified  bool   `json:"modified"`              // there were changes that are not in the commit
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{
		Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// built is the time of the commit, the zero time if it is not known.
func (b buildInfo) built() time.Time {
	t, _ := time.Parse(time.RFC3339, b.Time) // empty without a Git repository
	return t
}

// full is the version with the build in it, as semantic versioning has it: 1.2.3+0123456789ab, and .modified if there
// were changes that are not in the commit.
func (b buildInfo) full() string {
	if b.Commit == "" {
		return b.Version
	}
	text := b.Version + "+" + b.Commit[:min(len(b.Commit), 12)]
	if b.Modified {
		text += ".modified"
	}
	return text
}

func versionCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go version of this program",
		Args:  cobra.NoArgs,
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "output format, text or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		b := readBuildInfo()
		switch output {
		case "json":
			return json.NewEncoder(c.OutOrStdout()).Encode(b)
		case "text":
		default:
			return cli.Usage(fmt.Errorf("--output %q: want text or json", output))
		}
		commit := "unknown"
		if b.Commit != "" {
			commit = b.Commit + " of " + b.Time
		}
		if b.Modified {
			commit += ", with changes"
		}
		fmt.Fprintf(c.OutOrStdout(), "zk-lite %s\ncommit %s\n%s %s\n", b.Version, commit,
			b.GoVersion, b.Platform)
		return nil
	}
	return c
}
