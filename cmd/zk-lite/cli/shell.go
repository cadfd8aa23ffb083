package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/lineedit"
)

// maxScriptLine bounds a line that comes through a pipe; data goes into it.
const maxScriptLine = 4 << 20

func shellCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "shell",
		Short: "Type commands on one connection, with completion and history",
		Long: `Type commands on one connection and one session: ephemerals live as long as the
shell, watches (-w) report while other commands are typed. On a terminal, the
prompt shows the server and the state of the connection, TAB completes commands,
flags and paths, and the arrow keys bring back earlier lines, which are kept in
$XDG_STATE_HOME/zk-lite/history, but for those that begin with a blank or with
addauth.

Through a pipe, it runs the lines of its input without a prompt, and exits with the
code of the last line that failed.`,
		Example: `  zk-lite shell
  zk-lite shell --server zk1:2181,zk2:2181/app
  printf 'create /a\nls /\n' | zk-lite shell`,
		Args: argCount(0, 0, 0),
	}
	g.bindSession(c)
	return g.command(c, func(c *cobra.Command, _ []string) error {
		cl, err := g.connect(c.Context())
		if err != nil {
			return err
		}
		s := &shell{flags: g, client: cl, out: &lineTracker{w: c.OutOrStdout()}, err: c.ErrOrStderr()}
		defer s.wg.Wait()
		defer hangUp(cl)
		if isTerminal(c.InOrStdin()) && isTerminal(c.OutOrStdout()) {
			return s.interactive(c.Context())
		}
		return s.script(c.Context(), c.InOrStdin())
	})
}

// shell runs lines as commands on one client.
type shell struct {
	flags  *globals // of the shell
	client *client.Client
	out    *lineTracker
	err    io.Writer

	terminal *lineedit.Terminal // nil with a pipe
	history  *lineedit.History
	wg       sync.WaitGroup // of watches and of the one that follows the state
}

// errQuit ends the shell.
var errQuit = errors.New("quit")

// script runs the lines of a pipe.
func (s *shell) script(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxScriptLine)
	code := ExitOK
	for n := 1; ; n++ {
		line, err := next(ctx, func() (string, error) {
			if lines.Scan() {
				return lines.Text(), nil
			}
			return "", cmpError(lines.Err(), errQuit)
		})
		if err == nil {
			err = s.execute(ctx, line)
		} else if ctx.Err() == nil && !errors.Is(err, errQuit) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errQuit):
			if code != ExitOK {
				return &exitError{code: code}
			}
			return nil
		case err != nil:
			code = ExitCode(err)
			if text := Message(err); text != "" {
				fmt.Fprintf(s.err, "zk-lite: line %d: %s\n", n, text)
			}
		}
	}
}

func cmpError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// interactive runs what is typed. Ctrl-C ends a command and not the shell, so
// the context of the program, which it would end, is not used.
func (s *shell) interactive(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := s.openTerminal(); err != nil {
		return err
	}
	defer s.terminal.Restore()
	states := s.client.States()
	defer states.Cancel()
	s.showState(<-states.C())
	s.wg.Go(func() {
		for change := range states.C() {
			s.notifyState(change)
		}
	})
	for {
		s.out.endLine()
		line, err := next(ctx, s.terminal.ReadLine)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			fmt.Fprintln(s.out)
			return nil
		case err != nil:
			return fmt.Errorf("reading from the terminal: %w", err)
		}
		err = s.interruptible(ctx, line)
		if errors.Is(err, errQuit) {
			return nil
		}
		if text := Message(err); text != "" {
			s.out.endLine()
			fmt.Fprintln(s.err, text)
		}
	}
}

// openTerminal prepares the terminal and the history. A history that cannot be
// kept is no reason not to work.
func (s *shell) openTerminal() error {
	dir, err := lineedit.StateDir("zk-lite")
	if err != nil {
		return err
	}
	if s.history, err = lineedit.OpenHistory(filepath.Join(dir, "history")); err != nil {
		return err
	}
	s.history.Secret = func(line string) bool { return strings.Contains(line, "addauth") }
	s.terminal = lineedit.NewTerminal(os.Stdin, os.Stdout, s.history, s.complete)
	return nil
}

func (s *shell) interruptible(ctx context.Context, line string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return s.execute(ctx, line)
}

// execute runs a line. An empty one, or a comment, does nothing.
func (s *shell) execute(ctx context.Context, line string) error {
	words, err := lineedit.Split(line)
	if err != nil {
		return Usage(err)
	}
	if len(words) == 0 {
		return nil
	}
	root := s.commands()
	root.SetArgs(words)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetIn(strings.NewReader("")) // the input is the shell's
	err = root.ExecuteContext(ctx)
	s.out.endLine()
	return err
}

// commands are those of the shell, new for every line, for cobra keeps the
// values of flags.
func (s *shell) commands() *cobra.Command {
	root := &cobra.Command{
		Short: "Commands on one connection", SilenceErrors: true, SilenceUsage: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetUsageTemplate(shellUsage(root.UsageTemplate()))
	g := &globals{
		server: s.flags.server, auth: s.flags.auth, timeout: s.flags.timeout, output: s.flags.output,
		shell: &host{s.client, s.await},
	}
	addData(root, g)
	addOperation(root, g)
	root.AddCommand(s.addAuthCommand(), s.historyCommand(), s.quitCommand(), s.sessionCommand())
	strict(root)
	return root
}

// addData adds the commands for znodes and subtrees, which the shell has, too.
func addData(root *cobra.Command, g *globals) {
	root.AddGroup(&cobra.Group{ID: groupData, Title: "Data:"})
	g.add(root, groupData, lsCommand, getCommand, setCommand, putCommand, createCommand, deleteCommand, statCommand,
		getACLCommand, setACLCommand, syncCommand, watchCommand, treeCommand, findCommand, deleteAllCommand, cpCommand,
		mvCommand, exportCommand, importCommand, diffCommand)
}

// addOperation adds the one command for operators that the shell has, too.
func addOperation(root *cobra.Command, g *globals) {
	root.AddGroup(&cobra.Group{ID: groupOperation, Title: "Operation:"})
	g.add(root, groupOperation, statusCommand)
}

// shellUsage is cobra's template for the help of a program that has no name.
func shellUsage(template string) string {
	return strings.NewReplacer(
		"{{if .Runnable}}\n  {{.UseLine}}", "{{if and .Runnable .HasParent}}\n  {{trim .UseLine}}",
		"{{.CommandPath}} [command] --help", "COMMAND --help",
		"{{.CommandPath}} [command]", "COMMAND [FLAGS] [ARGUMENTS]",
	).Replace(template)
}

// notify prints something that is not the output of a command.
func (s *shell) notify(text string) {
	if s.terminal == nil {
		s.out.endLine()
		fmt.Fprintln(s.out, text)
		return
	}
	if err := s.terminal.Notify(text); err != nil {
		fmt.Fprintln(s.err, text)
	}
}

// await prints the event of a one-shot watch when it comes.
func (s *shell) await(w *client.Watch) {
	s.wg.Go(func() {
		e := <-w.C()
		switch {
		case errors.Is(e.Err, client.ErrClosed):
		case e.Type == client.EventEnded:
			s.notify(fmt.Sprintf("WATCHER: the watch on %s has ended: %v", e.Path, e.Err))
		default:
			s.notify(fmt.Sprintf("WATCHER: %v %s", e.Type, e.Path))
		}
	})
}

// showState puts the state into the prompt.
func (s *shell) showState(c client.StateChange) {
	server, state := hostsOf(s.flags.server), c.State.String()
	if c.State.Connected() {
		server, state = c.Server, "connected"
	}
	s.terminal.SetPrompt(fmt.Sprintf("[zk %s (%s)] ", server, state))
}

// notifyState prints a change at once, above the line that is being typed.
func (s *shell) notifyState(c client.StateChange) {
	s.showState(c)
	switch c.State {
	case client.StateSuspended:
		s.notify(fmt.Sprintf("the connection is lost; the session ends at %s if no server is reached",
			c.Deadline.Format("15:04:05")))
	case client.StateReconnected:
		s.notify("connected again, to " + c.Server)
	case client.StateExpired:
		s.notify("the session is lost, with its ephemerals and watches")
	case client.StateConnected:
		s.notify("a new session, at " + c.Server)
	}
}
