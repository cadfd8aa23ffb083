package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// DefaultServer is the default of --server.
const DefaultServer = "127.0.0.1:2181"

// serverVariable is the environment variable that replaces DefaultServer.
const serverVariable = "ZK_LITE_SERVER"

// timeoutFlag is the flag for how long a command waits for a server.
const timeoutFlag = "timeout"

// defaultTimeout is its default.
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
	passwordFile   string
	tokenFile      string
	tls            TLSFlags
	timeout        time.Duration // the flag of the command that runs
	sessionTimeout time.Duration
	output         string

	shell *shell // nil outside
}

// The groups of commands in the help.
const (
	groupServers      = "servers"
	groupData         = "data"
	groupCoordination = "coordination"
	groupOperation    = "operation"
	groupTools        = "tools"
)

// AddCommands adds the commands of this package, the shell, and the commands that run
// servers and tools, to root.
//
// Mistakes in the command line, also of root's other commands, become errors
// with ExitUsage.
func AddCommands(root *cobra.Command, servers, tools []*cobra.Command) {
	root.SetHelpCommandGroupID(groupTools)
	root.SetCompletionCommandGroupID(groupTools)
	root.AddGroup(&cobra.Group{ID: groupServers, Title: "Servers:"})
	addGroup(root, groupServers, servers...)
	(&app{timeout: defaultTimeout}).addAll(root)
	root.AddGroup(&cobra.Group{ID: groupTools, Title: "Tools:"})
	addGroup(root, groupTools, tools...)
}

func addGroup(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// addAll adds what there is outside of the shell.
func (a *app) addAll(root *cobra.Command) {
	a.addData(root)
	root.AddGroup(&cobra.Group{ID: groupCoordination, Title: "Coordination:"})
	addGroup(root, groupCoordination, a.lockCommand(), a.electCommand(), a.joinCommand())
	a.addOperation(root)
	addGroup(root, groupData, a.shellCommand())
	addGroup(root, groupOperation, a.memberCommand(), a.transferCommand(), a.drainCommand(), a.upgradeCommand(),
		a.backupCommand(), a.restoreCommand(), a.digestCommand(), a.tlsCommand(), a.slowCommand(), a.expiredCommand(),
		a.topCommand())
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
	c.SuggestionsMinimumDistance = 2
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

// addData adds the commands for znodes and subtrees, which the shell has, too.
func (a *app) addData(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: groupData, Title: "Data:"})
	addGroup(root, groupData, a.lsCommand(), a.getCommand(), a.setCommand(), a.createCommand(),
		a.deleteCommand(), a.statCommand(), a.getACLCommand(), a.setACLCommand(),
		a.syncCommand(), a.watchCommand(), a.treeCommand(), a.findCommand(), a.deleteAllCommand(), a.cpCommand(),
		a.mvCommand(), a.exportCommand(), a.importCommand(), a.diffCommand())
}

// addOperation adds the one command for operators that the shell has, too.
func (a *app) addOperation(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: groupOperation, Title: "Operation:"})
	addGroup(root, groupOperation, a.statusCommand())
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
	a.bindPasswordFile(c)
	a.tls.Bind(f)
	f.Duration(timeoutFlag, defaultTimeout, "give up when no server has been connected for so long; "+
		"it does not bound the command")
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
			"silence after which the servers end this client's session")
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
	if a.timeout <= 0 {
		return usagef("--timeout %v: want more than 0", a.timeout)
	}
	return a.checkOutput()
}

func (a *app) checkOutput() error {
	if a.output != outputText && a.output != outputJSON {
		return usagef("--output %q: want text or json", a.output)
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
