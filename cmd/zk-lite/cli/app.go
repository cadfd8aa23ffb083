package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// DefaultServer is where the commands look for a server if they are not told.
const DefaultServer = "127.0.0.1:2181"

// serverVariable is the environment variable that replaces DefaultServer.
const serverVariable = "ZK_LITE_SERVER"

// timeoutFlag is the flag for how long a command does without an answer.
const timeoutFlag = "timeout"

// defaultTimeout is how long a command does without a server before it gives up.
const defaultTimeout = 10 * time.Second

// The output formats.
const (
	outputText = "text"
	outputJSON = "json"
)

// app is one command line: the flags that all commands share, and the shell
// within which the command runs, if any.
type app struct {
	server         string
	http           string
	auth           []string
	timeout        time.Duration // the flag of the command that runs
	sessionTimeout time.Duration
	output         string

	shell *shell // nil outside
}

// The groups of commands in the help.
const (
	groupData = "data"
	groupTree = "tree"
	groupWork = "work"
	groupHTTP = "http"
)

// AddCommands adds the commands of this package, and the shell, to root.
//
// Mistakes in the command line, also of root's other commands, become errors
// with ExitUsage.
func AddCommands(root *cobra.Command) {
	(&app{timeout: defaultTimeout}).addAll(root)
}

// addAll adds what there is outside of the shell.
func (a *app) addAll(root *cobra.Command) {
	a.addTo(root)
	for _, c := range []*cobra.Command{
		a.lockCommand(), a.electCommand(), a.joinCommand(), a.shellCommand(),
	} {
		c.GroupID = groupWork
		root.AddCommand(c)
	}
	root.AddGroup(&cobra.Group{ID: groupHTTP, Title: "Operation, over HTTP:"})
	for _, c := range []*cobra.Command{
		a.memberCommand(), a.transferCommand(), a.drainCommand(), a.backupCommand(), a.restoreCommand(),
	} {
		c.GroupID = groupHTTP
		root.AddCommand(c)
	}
	strictCompletion(root)
	strict(root)
}

// strictCompletion refuses shells that there are no scripts for: cobra's command would
// print its help and end well.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil || c == root {
		return // there are no commands to be completed
	}
	c.Args = noSuchCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

// strict makes root an error without a command, and mistakes in flags and
// arguments errors of usage.
func strict(root *cobra.Command) {
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see `%s --help`", err, strings.TrimSpace(c.CommandPath()))
	})
	root.Args = noSuchCommand
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	usageErrors(root)
}

// noSuchCommand refuses the arguments of a command that has others below it.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("there is no command %q", args[0])
	help := c.CommandPath() + " --help"
	if c.CommandPath() == "" {
		help = "help"
		switch args[0] {
		case "lock", "elect", "join", "member", "transfer", "drain", "backup", "restore":
			return usagef("%s in the shell: run `zk-lite %s` outside of it", text, args[0])
		}
	} else if args[0] == "addauth" {
		return usagef("%s outside of `zk-lite shell`; to prove an identity there is --auth scheme:data", text)
	}
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return usagef("%s; see `%s`", text, help)
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

// addTo adds what the shell has, too.
func (a *app) addTo(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupData, Title: "Znodes:"},
		&cobra.Group{ID: groupTree, Title: "Subtrees:"},
		&cobra.Group{ID: groupWork, Title: "Servers and processes:"},
	)
	group := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	group(groupData, a.lsCommand(), a.getCommand(), a.setCommand(), a.createCommand(),
		a.deleteCommand(), a.statCommand(), a.getACLCommand(), a.setACLCommand(),
		a.syncCommand(), a.watchCommand())
	group(groupTree, a.treeCommand(), a.findCommand(), a.deleteAllCommand(), a.cpCommand(),
		a.mvCommand(), a.exportCommand(), a.importCommand(), a.diffCommand())
	group(groupWork, a.statusCommand())
}

// command completes a command that talks to a server: flags, help, checks of
// the arguments.
func (a *app) command(c *cobra.Command, run func(*cobra.Command, []string) error) *cobra.Command {
	a.bind(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.check(c); err != nil {
			return err
		}
		return run(c, args)
	}
	return c
}

// bind defines the flags that all commands have. In the shell the connection is
// there already.
func (a *app) bind(c *cobra.Command) {
	f := c.Flags()
	a.bindOutput(c)
	if a.shell != nil {
		return
	}
	f.StringVar(&a.server, "server", defaultServer(),
		"servers and chroot, `host:port,...[/chroot]` ["+serverVariable+"]")
	f.StringArrayVar(&a.auth, "auth", nil, "prove an identity, `scheme:data`; may be repeated")
	f.Duration(timeoutFlag, defaultTimeout, "give up after so long without a server")
}

// bindOutput defines the flag for the output format.
func (a *app) bindOutput(c *cobra.Command) {
	c.Flags().StringVarP(&a.output, "output", "o", cmp.Or(a.output, outputText),
		"output format, text or json")
	err := c.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{outputText, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(fmt.Sprintf("cli: invariant broken: %v", err)) // there is no such flag
	}
}

// bindSession is for commands whose session means something to others.
func (a *app) bindSession(c *cobra.Command) {
	if a.shell == nil {
		c.Flags().DurationVar(&a.sessionTimeout, "session-timeout", client.DefaultSessionTimeout,
			"silence after which the servers take this client for dead")
	}
}

func defaultServer() string {
	if s := os.Getenv(serverVariable); s != "" {
		return s
	}
	return DefaultServer
}

// check looks at the flags of the command that is to run, and takes its timeout, whose
// default is another one for each command: a variable that several flags share keeps the
// default of the last.
func (a *app) check(c *cobra.Command) error {
	if a.shell == nil {
		d, err := c.Flags().GetDuration(timeoutFlag)
		if err != nil {
			panic(fmt.Sprintf("cli: invariant broken: %v", err)) // it has no such flag
		}
		a.timeout = d
	}
	switch {
	case a.output != outputText && a.output != outputJSON:
		return usagef("--output %q: want text or json", a.output)
	case a.timeout <= 0:
		return usagef("--timeout %v: want more than 0", a.timeout)
	}
	return nil
}

func (a *app) json() bool { return a.output == outputJSON }

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

// interrupted reports whether an error only says that the user has ended what
// has no other end.
func interrupted(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil && ExitCode(err) == ExitInterrupted
}
