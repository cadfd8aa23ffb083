package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/app/config"
)

// withSettings completes a command that has the flags of all settings: --help shows its own flags, and --help-settings
// the settings.
func withSettings(c *cobra.Command) *cobra.Command {
	show := c.Flags().Bool("help-settings", false, "help for the settings, each of which is a flag, by subject")
	help, run, args := c.HelpFunc(), c.RunE, c.Args
	c.SetHelpFunc(func(c *cobra.Command, words []string) {
		config.EachGroup(c.Flags(), func(_ string, flags []*pflag.Flag) {
			for _, f := range flags {
				f.Hidden = f.Name != "config"
			}
		})
		help(c, words)
		fmt.Fprintf(c.OutOrStdout(), "\nEvery setting is a flag, too: `%s --help-settings` shows them.\n",
			c.CommandPath())
	})
	c.Args = func(c *cobra.Command, words []string) error {
		if *show || args == nil {
			return nil
		}
		return args(c, words)
	}
	c.RunE = func(c *cobra.Command, words []string) error {
		if *show {
			return helpSettings(c)
		}
		return run(c, words)
	}
	return c
}

// plainWidth is for an output that is no terminal.
const plainWidth = 80

// helpSettings prints the settings by subject, as wide as the terminal.
func helpSettings(c *cobra.Command) error {
	var text bytes.Buffer
	width, out := plainWidth, c.OutOrStdout()
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		width = w
	}
	config.EachGroup(c.Flags(), func(title string, flags []*pflag.Flag) {
		fmt.Fprintf(&text, "%s:\n", title)
		for _, f := range flags {
			fmt.Fprintf(&text, "  --%s", f.Name)
			if f.NoOptDefVal == "" {
				fmt.Fprintf(&text, " %s", strings.Replace(f.Value.Type(), "stringArray", "text", 1))
			}
			if f.DefValue != "" && f.DefValue != "[]" {
				fmt.Fprintf(&text, " (default %s)", f.DefValue)
			}
			text.WriteString(wrapped(f.Usage, width) + "\n")
		}
		text.WriteString("\n")
	})
	_, err := text.WriteTo(out)
	return err
}

// settingIndent is that of what a setting means, below its name.
const settingIndent = "\n        "

// wrapped is a text in lines of a width, indented. A longer word has a line of its own.
func wrapped(text string, width int) string {
	var out strings.Builder
	column := width
	for word := range strings.FieldsSeq(text) {
		if length := utf8.RuneCountInString(word); column+1+length > width {
			out.WriteString(settingIndent + word)
			column = len(settingIndent) - 1 + length
		} else {
			out.WriteString(" " + word)
			column += 1 + length
		}
	}
	return out.String()
}
