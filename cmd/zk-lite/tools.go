package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/bench/benchcli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/manpage"
	"github.com/zk-lite/zk-lite/internal/sizing"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/ensemble"
	"github.com/zk-lite/zk-lite/lab/labcli"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// version is set at the build of a release (-ldflags "-X main.version=1.2.3").
var version = "1.0.0"

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

func sizeCommand() *cobra.Command {
	l := sizing.Load{Servers: 3, Bytes: 100}
	c := &cobra.Command{
		Use:   "size",
		Short: "Say how much memory, disk and network each server needs",
		Long: `Compute from measured figures what each server needs for a load, while one of the
others is down. Paths are reckoned with 32 bytes. docs/sizing.md says where the figures
come from, and how far they are off. Nothing is measured or asked.`,
		Example: `  zk-lite size --znodes 1000000 --sessions 5000 --writes 2000
  zk-lite size --znodes 50000 --bytes 4000 --sessions 200 --writes 50 --watches 20000 -o json`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.Int64Var(&l.Znodes, "znodes", 0, "znodes in the tree")
	f.Int64Var(&l.Bytes, "bytes", l.Bytes, "bytes of data in each")
	f.Int64Var(&l.Sessions, "sessions", 0, "sessions, each with a connection")
	f.Int64Var(&l.Watches, "watches", 0, "watches of all sessions")
	f.Float64Var(&l.Writes, "writes", 0, "writes a second")
	f.Float64Var(&l.Reads, "reads", 0, "reads a second")
	f.IntVar(&l.Servers, "servers", l.Servers, "servers that vote")
	output := f.StringP("output", "o", "text", "output format, text or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, name := range []string{"znodes", "sessions", "writes"} {
			if !f.Changed(name) {
				return cli.Usage(fmt.Errorf("--%s is missing: it may be 0", name))
			}
		}
		if err := l.Check(); err != nil {
			return cli.Usage(err)
		}
		e := l.Estimate()
		switch *output {
		case "json":
			return json.NewEncoder(c.OutOrStdout()).Encode(struct {
				Load sizing.Load     `json:"load"`
				Each sizing.Estimate `json:"each_server"`
			}{l, e})
		case "text":
			return printSizes(c.OutOrStdout(), &e)
		}
		return cli.Usage(fmt.Errorf("--output %q: want text or json", *output))
	}
	return c
}

func printSizes(out io.Writer, e *sizing.Estimate) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "memory\t%s\tin use %s, resident at most %s\n", inUnits(e.Memory),
		inUnits(e.Live), inUnits(e.Resident))
	fmt.Fprintf(w, "disk\t%s\ta log of %s, snapshots of %s each, and free room\n",
		inUnits(e.Disk), inUnits(e.Log), inUnits(e.Snapshot))
	fmt.Fprintf(w, "disk writes\t%s/s\tat most\n", inUnits(int64(e.DiskRate)))
	fmt.Fprintf(w, "network\t%.1f Mbit/s\tsent by the leader; it receives %.1f\n",
		megabits(e.LeaderOut), megabits(e.LeaderIn))
	fmt.Fprintf(w, "start\t%v\tcatching up from nothing, under load, %v\n",
		e.Start.Round(time.Second/10), e.CatchUp.Round(time.Second))
	return w.Flush()
}

func megabits(bytes float64) float64 { return bytes * 8 / 1e6 }

// inUnits writes a number of bytes with a unit, in three digits or so.
func inUnits(bytes int64) string {
	units, value := []string{"KiB", "MiB", "GiB", "TiB"}, float64(bytes)/1024
	for value >= 1000 && len(units) > 1 {
		units, value = units[1:], value/1024
	}
	if value >= 10 {
		return fmt.Sprintf("%.0f %s", value, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}

// benchCommand returns the command "bench", the load generator.
func benchCommand() *cobra.Command { return benchcli.Command(&cli.TLSFlags{}) }

// labCommand returns the command "lab", whose scenarios run on real servers too.
func labCommand() *cobra.Command {
	return labcli.Command(labcli.Options{
		Real: func(servers string) (election.Runner, error) {
			return reachable{ensemble.Runner{Servers: servers}}, nil
		},
		Ensemble: experiment,
		Usage:    cli.Usage,
	})
}

// reachable is a runner that looks first whether there is a server, as the other commands
// do: the candidates would wait for one as long as for anything else.
type reachable struct{ ensemble.Runner }

// KillLeader implements election.Runner.
func (r reachable) KillLeader(
	ctx context.Context, k election.KillLeader,
) (election.Outcome, error) {
	if err := cli.Reach(ctx, "--servers", r.Servers); err != nil {
		return election.Outcome{}, err
	}
	return r.Runner.KillLeader(ctx, k)
}

// experiment performs one on running servers, after it has looked whether there are any.
func experiment(ctx context.Context, servers string, words []string) (trace.Trace, error) {
	e, err := ensemble.ParseExperiment(words)
	if err != nil {
		return trace.Trace{}, cli.Usage(err)
	}
	if err := cli.Reach(ctx, "--servers", servers); err != nil {
		return trace.Trace{}, err
	}
	return ensemble.Runner{Servers: servers}.Trace(ctx, e)
}

// manCommand returns the command "man", with which packages make their manual pages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages of all commands",
		Long: `Write a manual page for each command into the directory, from the texts of --help.
Packages have them installed.`,
		Example: "  zk-lite man man1 && man man1/zk-lite-lock.1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return manpage.WriteAll(args[0], c.Root(), manpage.Source{Version: version, Date: readBuildInfo().built()})
		},
	}
}
