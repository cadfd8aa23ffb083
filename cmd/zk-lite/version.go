package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
)

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
