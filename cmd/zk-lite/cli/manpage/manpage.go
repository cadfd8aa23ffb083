// Package manpage writes manual pages, in the macros of man(7), from what commands say of themselves: the text of
// --help. It knows no command.
package manpage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Source is what all pages say.
type Source struct {
	Version string    // of the program
	Date    time.Time // zero: not known
}

// WriteAll writes a page for root and each command below it that --help shows into a directory, which it makes:
// program.1, program-command.1, and so on.
func WriteAll(dir string, root *cobra.Command, s Source) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	var errs []error
	walk(root, func(c *cobra.Command) {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name(c)+".1"), Page(c, s), 0o644))
	})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	return nil
}

func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			walk(below, visit)
		}
	}
}

// name is that of a command's page.
func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Page is the page of a command.
func Page(c *cobra.Command, s Source) []byte {
	c.InitDefaultHelpFlag()
	var p page
	date := ""
	if !s.Date.IsZero() {
		date = s.Date.UTC().Format(time.DateOnly)
	}
	p.line(".TH %s 1 %q %q", escape(strings.ToUpper(name(c))), date, c.Root().Name()+" "+s.Version)
	p.line(".SH NAME\n%s \\- %s", escape(name(c)), escape(c.Short))
	p.line(".SH SYNOPSIS\n.B %s", escape(c.UseLine()))
	p.line(".SH DESCRIPTION")
	if c.Long == "" {
		p.text(c.Short + ".")
	}
	p.text(c.Long)
	if c.HasAvailableSubCommands() {
		p.line(".SH COMMANDS")
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			p.line(".TP\n.BR %s (1)\n%s", escape(name(below)), escape(below.Short))
		}
	}
	p.line(".SH OPTIONS")
	c.Flags().VisitAll(p.flag)
	if c.Example != "" {
		p.line(".SH EXAMPLES\n.nf")
		for line := range strings.SplitSeq(c.Example, "\n") {
			p.line("%s", escape(line))
		}
		p.line(".fi")
	}
	if c.HasParent() {
		p.line(".SH SEE ALSO\n.BR %s (1)", escape(name(c.Parent())))
	}
	return p.Bytes()
}

type page struct{ bytes.Buffer }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text writes paragraphs. Lines that begin with a space stay as they are.
func (p *page) text(s string) {
	asIs := false
	for line := range strings.SplitSeq(s, "\n") {
		if indented := strings.HasPrefix(line, " "); indented != asIs {
			p.line(map[bool]string{true: ".nf", false: ".fi"}[indented])
			asIs = indented
		}
		if line == "" {
			line = ".PP"
		} else {
			line = escape(line)
		}
		p.line("%s", line)
	}
	if asIs {
		p.line(".fi")
	}
}

// flag is one of the options.
func (p *page) flag(f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	option := `\fB` + escape("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		option = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + option
	}
	if value != "" {
		option += ` \fI` + escape(value) + `\fR`
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" {
		usage += " (default " + d + ")"
	}
	p.line(".TP\n%s\n%s", option, escape(usage))
}

// escape keeps troff from reading commands in a text.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return strings.ReplaceAll(s, "\n", " ")
}
