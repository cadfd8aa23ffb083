package labcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/lab/chart"
	"github.com/zk-lite/zk-lite/lab/play"
)

// traced is a result with its chart as one more key.
type traced struct {
	result any
	lines  []string
}

// MarshalJSON appends the chart to the keys of the result.
func (t traced) MarshalJSON() ([]byte, error) {
	object, err := json.Marshal(t.result)
	if err != nil {
		return nil, err
	}
	lines, err := json.Marshal(t.lines)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(object, []byte("}")), `,"trace":%s}`, lines), nil
}

// flagValue is an option as a flag of cobra's.
type flagValue struct{ option *play.Option }

// String implements pflag.Value.
func (v flagValue) String() string { return v.option.Default }

// Set implements pflag.Value.
func (v flagValue) Set(text string) error { return v.option.Set(text) }

// Type implements pflag.Value.
func (v flagValue) Type() string {
	if v.option.Value == "" {
		return "bool" // by this name the help leaves the value out
	}
	return v.option.Value
}

// addFlags makes flags of the options.
func addFlags(c *cobra.Command, options []*play.Option) {
	for _, o := range options {
		help := o.Help
		if len(o.Choices) > 0 {
			help += ": " + strings.Join(o.Choices, "|")
		}
		if o.Repeat {
			help += "; may be repeated"
		}
		f := c.Flags().VarPF(flagValue{o}, o.Name, "", help)
		if o.Value == "" {
			f.NoOptDefVal = "true"
		}
		if len(o.Choices) > 0 {
			completeWith(c, o.Name, o.Choices...)
		}
	}
}

// runCommand makes a command of the lab's runs.
func runCommand(o Options, name string) *cobra.Command {
	p := play.New(name)
	var f outputFlags
	c := &cobra.Command{Use: p.Name, Short: p.Short, Long: p.Long, Example: p.Example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return o.usage(err)
			}
			p.Keep = f.keep()
			outcome, err := p.Run()
			if err != nil {
				return o.usage(err) // all that it refuses is in the flags
			}
			for _, note := range outcome.Notes {
				fmt.Fprintln(c.ErrOrStderr(), note)
			}
			return f.finish(c.OutOrStdout(), outcome)
		}}
	addFlags(c, p.Options)
	f.register(c)
	return c
}

// finish writes pictures, chart and result, in JSON or in words.
func (f *outputFlags) finish(w io.Writer, o play.Outcome) error {
	run := chart.Run{Title: o.Title, Ring: o.Ring, Service: o.Service, Records: o.Records,
		Truncated: o.Truncated, End: o.End, Background: f.background, Round: o.Topology == "ring",
		Variables: f.variables}
	if err := f.pictures(run); err != nil {
		return err
	}
	var text bytes.Buffer
	if f.trace {
		if err := run.Text(&text, f.width, f.rows); err != nil {
			return err
		}
	}
	if f.json && f.trace {
		return writeJSON(w, traced{o.Result, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")})
	}
	if f.json {
		return writeJSON(w, o.Result)
	}
	if f.trace {
		text.WriteByte('\n')
	}
	o.Words(&text)
	_, err := w.Write(text.Bytes())
	return err
}
