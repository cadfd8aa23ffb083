package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/supervise"
	"github.com/zk-lite/zk-lite/recipes"
)

// defaultGrace is how long a command may take to end after SIGTERM.
const defaultGrace = 10 * time.Second

// releaseTimeout bounds how long a release may take; after that it is left to the
// session, which ends with the program.
const releaseTimeout = 5 * time.Second

// The environment of the commands that are run.
const (
	tokenVariable    = "ZK_LITE_FENCING_TOKEN" // fencing token, a decimal number
	lockVariable     = "ZK_LITE_LOCK"          // znode of the holder
	electionVariable = "ZK_LITE_ELECTION"      // znode of the candidate
	memberVariable   = "ZK_LITE_MEMBER"        // znode of the member
)

// workOptions are the flags of the commands that run others.
type workOptions struct {
	data   string
	grace  time.Duration
	strict bool
}

func (o *workOptions) bind(a *app, c *cobra.Command, strict bool) {
	f := c.Flags()
	f.StringVar(&o.data, "data", "", "data of the znode, which others can read (default host:pid)")
	f.DurationVar(&o.grace, "grace", defaultGrace, "time from SIGTERM to SIGKILL when the command must end")
	if strict {
		f.BoolVar(&o.strict, "strict", false,
			"stop the command when the connection is lost, not only when the session is lost")
	}
	a.bindSession(c)
}

// recipe are the flags as options of a recipe.
func (o *workOptions) recipe() []recipes.Option {
	opts := []recipes.Option{recipes.WithData([]byte(o.name()))}
	if o.strict {
		opts = append(opts, recipes.WithLossOnSuspension())
	}
	return opts
}

// name is the data of the znode: --data, or host:pid.
func (o *workOptions) name() string {
	if o.data != "" {
		return o.data
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// workArgs checks arguments of the form PATH... -- COMMAND ARGS...
func workArgs(paths int, needCommand bool) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		dash := c.ArgsLenAtDash()
		switch {
		case dash < 0 && !needCommand && len(args) == paths:
		case dash < 0 && needCommand:
			return usagef("missing command: put it after `--`; usage: %s", c.UseLine())
		case dash != paths || len(args) == paths:
			return usagef("usage: %s", c.UseLine())
		}
		return checkPath(args[0])
	}
}

// withSession runs f with a connection that it may keep for long: the loss of
// the connection is the business of f.
func (a *app) withSession(
	c *cobra.Command, f func(context.Context, *client.Client) error,
) error {
	cl, err := a.connect(c.Context())
	if err != nil {
		return err
	}
	defer hangUp(cl)
	return a.chrootError(c.Context(), cl, "--server", a.server, f(c.Context(), cl))
}

// run runs a command and returns nil or its exit code.
func (o *workOptions) run(ctx context.Context, args []string, env ...string) error {
	code, err := supervise.Run(ctx, &supervise.Command{
		Args: args, Env: env, Grace: o.grace,
		OwnGroup: !term.IsTerminal(int(os.Stdin.Fd())),
		Files:    [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	switch {
	case err != nil:
		return &exitError{code, err.Error()}
	case code != 0:
		return &exitError{code: code}
	}
	return nil
}

// runGranted runs a command while a grant is held. If it is lost, the error says
// so, whatever the command's exit code was.
func (o *workOptions) runGranted(
	ctx context.Context, g *recipes.Grant, args []string, variable string,
) error {
	ctx, cancel := g.Context(ctx)
	defer cancel()
	err := o.run(ctx, args, fmt.Sprintf("%s=%d", tokenVariable, g.FencingToken()), variable+"="+g.Path())
	if cause := g.Err(); errors.Is(cause, recipes.ErrLost) {
		return &lostError{cause}
	}
	return err
}

// lostError reports that a command was stopped because it was not entitled to run
// any more.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return fmt.Sprintf("the command was stopped: %v", e.cause)
}

func (e *lostError) Unwrap() []error { return []error{errNoServer, e.cause} }

// release runs the end of a recipe, also after an interruption. If that fails, the command
// that has run has not failed: the end of the session does the same.
func release(ctx context.Context, c *cobra.Command, end func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := end(ctx); err != nil && !errors.Is(err, recipes.ErrLost) {
		fmt.Fprintf(c.ErrOrStderr(), "zk-lite: not released (%v); the end of the session releases it\n", err)
	}
}
