package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/app/doctor"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
	"github.com/zk-lite/zk-lite/internal/process"
)

// diagnosis is what doctor prints with -o json.
type diagnosis struct {
	Running  *bool            `json:"running"` // a server with this configuration runs; nil: that is not known
	Errors   int              `json:"errors"`
	Warnings int              `json:"warnings"`
	Findings []doctor.Finding `json:"findings"`
}

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with a server, before it starts or while it runs",
		Long: `Read the configuration as "zk-lite server" does, with the same flags and variables, and
say what is wrong with it, with this machine, and with the other servers; each with
what to do. Run it on the server's machine, as the server's user. A server that runs
is asked over HTTP, and the others at the same port, or at --http.
It writes one file of 4 KiB into the log's directory, to measure the disk, and removes
it. The exit code is 1 if there is an error; warnings alone are 0.`,
		Example: `  zk-lite doctor --config /etc/zk-lite/zoo.cfg
  zk-lite doctor --config zoo.cfg --http http://zk2:8080,http://zk3:8080
  zk-lite doctor --config zoo.cfg -o json | jq -r '.findings[] | select(.severity == "error") | .do'`,
		Args: noConfigArgument,
	}
	config.BindFlags(c.Flags())
	output := c.Flags().StringP("output", "o", "text", "output format, text or json")
	others := c.Flags().String("http", "", "HTTP API of the other servers, `URL[,URL]`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *output != "text" && *output != "json" {
			return cli.Usage(fmt.Errorf("--output %q: want text or json", *output))
		}
		var urls []string
		if *others != "" {
			var err error
			if urls, err = httpapi.ParseURLs(*others); err != nil {
				return cli.Usage(fmt.Errorf("--http: %w", err))
			}
		}
		d := diagnose(c, urls)
		if err := d.print(c.OutOrStdout(), *output); err != nil {
			return err
		}
		if d.Errors > 0 {
			return cli.Failed()
		}
		return nil
	}
	return withSettings(c)
}

func diagnose(c *cobra.Command, urls []string) diagnosis {
	s, notices, err := config.Load(c.Flags(), os.LookupEnv)
	d := diagnosis{Findings: doctor.Configuration(err, append(notices, config.UnknownVariables(os.Environ())...))}
	o := doctor.Options{
		Settings: s, Version: readBuildInfo().full(), Memory: process.Memory(),
		HTTP: urls, Limits: doctor.DefaultLimits(),
	}
	if err == nil {
		d.Findings = append(d.Findings, doctor.Examine(c.Context(), o)...)
	}
	if running, unknown := doctor.Runs(c.Context(), o); running || err == nil && unknown == nil {
		d.Running = &running
	}
	for _, f := range d.Findings {
		if f.Severity == doctor.Error {
			d.Errors++
		} else {
			d.Warnings++
		}
	}
	return d
}

func (d *diagnosis) print(w io.Writer, output string) error {
	if output == "json" {
		return json.NewEncoder(w).Encode(d)
	}
	for _, severity := range []doctor.Severity{doctor.Error, doctor.Warning} {
		for _, f := range d.Findings {
			if f.Severity == severity {
				fmt.Fprintf(w, "%s: %s: %s\n    do: %s\n", f.Severity, f.Check, f.Problem, f.Do)
			}
		}
	}
	state := "whether it runs is not known"
	switch {
	case d.Running == nil:
	case *d.Running:
		state = "it runs"
	default:
		state = "it does not run"
	}
	_, err := fmt.Fprintf(w, "errors: %d, warnings: %d; %s\n", d.Errors, d.Warnings, state)
	return err
}
