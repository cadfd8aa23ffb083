package labcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/chart"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/play"
	"github.com/zk-lite/zk-lite/lab/story"
	"github.com/zk-lite/zk-lite/lab/trace"
)

// Options connects the lab to packages that it must not import.
type Options struct {
	// Real returns a runner that performs scenarios on the running ensemble at
	// the addresses given. Nil leaves the flag --servers out.
	Real func(servers string) (election.Runner, error)
	// Ensemble performs an experiment on the ensemble at the given addresses, and returns its
	// trace. Nil leaves experiments out.
	Ensemble func(ctx context.Context, servers string, words []string) (trace.Trace, error)
	// Usage marks an error as a mistake in the command line, for the exit code. Nil
	// leaves errors as they are.
	Usage func(error) error
}

// usage marks a mistake in the command line.
func (o Options) usage(err error) error {
	if err == nil || o.Usage == nil {
		return err
	}
	return o.Usage(err)
}

// Command returns the command "lab" with its subcommands.
func Command(o Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Run and count the algorithms of the lectures on a simulator",
		Long: "The lab runs the algorithms of the lectures on a deterministic simulator and counts\n" +
			"their messages. The same flags and the same seed give the same output. Times are in\n" +
			"units: one unit is one message time at the default delay.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, p := range play.Commands() {
		c.AddCommand(runCommand(o, p.Name))
	}
	c.AddCommand(tableCommand(o), scenarioCommand(o), storiesCommand(), throughputCommand(), judgeCommand(o),
		serveCommand(o))
	if o.Ensemble != nil {
		c.AddCommand(ensembleCommand(o))
	}
	return c
}

// storiesCommand returns the command that lists the stories.
func storiesCommand() *cobra.Command {
	return &cobra.Command{Use: "stories", Args: cobra.NoArgs,
		Short: "List the stories of the page by lecture, each with its algorithm and length",
		RunE: func(c *cobra.Command, _ []string) error {
			stories, err := story.All()
			if err != nil {
				return err
			}
			story.List(c.OutOrStdout(), stories)
			_, err = fmt.Fprintln(c.OutOrStdout(),
				"On the page of `zk-lite lab serve`, a link ends in #s=NAME; &present puts it on a wall.")
			return err
		}}
}

// writeJSON writes one indented object.
func writeJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// writeFile draws into a file, which is complete or an error.
func writeFile(name string, draw func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("creating the picture: %w", err)
	}
	if err := draw(f); err != nil {
		return fmt.Errorf("writing %s: %w", name, errors.Join(err, f.Close()))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// completeWith offers the values of a flag.
func completeWith(c *cobra.Command, flag string, values ...string) {
	err := c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(fmt.Sprintf("labcli: invariant broken: %v", err)) // there is no such flag
	}
}

// outputFlags choose the output of a run.
type outputFlags struct {
	json, trace, background bool
	variables               bool
	svg, html               string
	width, rows             int
}

func (f *outputFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false,
		"print the result as JSON; with --trace, the chart is its key trace")
	flags.BoolVar(&f.trace, "trace", false, "draw the run as a message-sequence chart")
	flags.BoolVar(&f.variables, "variables", false, "draw the variables of processes when they change")
	flags.BoolVar(&f.background, "all-messages", false, "draw heartbeats and pings as well")
	flags.IntVar(&f.width, "width", 100, "greatest width of the chart in characters")
	flags.IntVar(&f.rows, "rows", 200, "greatest number of rows of the chart")
	flags.StringVar(&f.svg, "svg", "", "write the run as a picture to this `file`")
	flags.StringVar(&f.html, "html", "", "write a page that steps through the run to this `file`")
}

func (f *outputFlags) check() error {
	if f.width < chart.MinWidth {
		return fmt.Errorf("--width %d: want %d or more", f.width, chart.MinWidth)
	}
	if f.rows < 1 {
		return fmt.Errorf("--rows %d: want 1 or more", f.rows)
	}
	return nil
}

// keep reports whether the records of the run are needed.
func (f *outputFlags) keep() bool { return f.trace || f.svg != "" || f.html != "" }

// pictures writes the files asked for.
func (f *outputFlags) pictures(run chart.Run) error {
	if f.svg != "" {
		if err := writeFile(f.svg, run.SVG); err != nil {
			return err
		}
	}
	if f.html != "" {
		return writeFile(f.html, run.HTML)
	}
	return nil
}
