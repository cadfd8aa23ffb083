package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/znode"
)

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// Usage makes a mistake in the command line of an error.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// strict makes root an error without a command, and mistakes in flags and
// arguments errors of usage.
func strict(root *cobra.Command) {
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if like := likeFlag(c, err); like != "" {
			return usagef("%w; did you mean --%s?", err, like)
		}
		return usagef("%w; see `%s`", err, strings.TrimSpace(c.CommandPath()+" --help"))
	})
	root.Args = noSuchCommand
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	usageErrors(root)
}

// likeFlag is the name of a command's flag that is like the unknown one; empty if none is.
func likeFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var name strings.Builder // as flags are written: clientPort is a key of zoo.cfg
	for _, r := range unknown.GetSpecifiedName() {
		switch {
		case unicode.IsUpper(r):
			name.WriteRune('-')
			r = unicode.ToLower(r)
		case r == '_' || r == '.':
			r = '-'
		}
		name.WriteRune(r)
	}
	flags := cobra.Command{SuggestionsMinimumDistance: 2} // cobra compares names of commands
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if like := flags.SuggestionsFor(name.String()); len(like) > 0 {
		return like[0]
	}
	return ""
}

// noSuchCommand refuses the arguments of a command that has others below it.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", args[0])
	help := c.CommandPath() + " --help"
	if c.CommandPath() == "" {
		help = "help"
		switch args[0] {
		case "lock", "elect", "join", "member", "transfer", "drain", "backup", "restore", "digest", "tls":
			return usagef("%s in the shell: run `zk-lite %s` outside of it", text, args[0])
		}
	} else if args[0] == "addauth" {
		return usagef("%s outside of `zk-lite shell`; prove an identity with --auth scheme:data", text)
	}
	if like := likeCommands(c, args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return usagef("%s; see `%s`", text, help)
}

// maxGuesses is how many commands may be meant, before guessing is of no help.
const maxGuesses = 2

// likeCommands are the names of the commands that are most like an unknown one.
func likeCommands(c *cobra.Command, name string) []string {
	for _, c.SuggestionsMinimumDistance = range []int{1, 2} {
		if like := c.SuggestionsFor(name); len(like) > 0 {
			return like[:min(len(like), maxGuesses)]
		}
	}
	return nil
}

// usageErrors makes what the arguments' checks find errors of usage, at all depths.
func usageErrors(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error { return Usage(check(c, args)) }
		}
		usageErrors(c)
	}
}

// argCount checks how many arguments there are, max < 0 for any number, and
// that the first paths of them are paths.
func argCount(min, max, paths int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < min || max >= 0 && len(args) > max {
			return usagef("%d arguments; usage: %s", len(args), strings.TrimSpace(c.UseLine()))
		}
		for _, p := range args[:paths] {
			if err := checkPath(p); err != nil {
				return err
			}
		}
		return nil
	}
}

func checkPath(p string) error {
	if err := znode.ValidatePath(p); err != nil {
		return Usage(err)
	}
	return nil
}
