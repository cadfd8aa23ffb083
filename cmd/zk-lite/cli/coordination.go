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

func lockCommand(g *globals) *cobra.Command {
	var o workOptions
	var wait time.Duration
	var try bool
	c := &cobra.Command{
		Use:   "lock [flags] PATH -- COMMAND [ARGS...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for the lock PATH, run the command, and release the lock when it has ended.
The exit code is that of the command; 4 if the lock was not acquired (--try,
--wait), and 5 if it was lost.

If the session is lost, so is the lock: the command gets SIGTERM, and SIGKILL after
--grace. A process can be paused for longer than that, so the resource that the lock
protects should refuse a holder that is too late. For that the command finds a
fencing token in ZK_LITE_FENCING_TOKEN, a decimal number that grows from holder to
holder, and the path of its znode in ZK_LITE_LOCK. With --lock-delay others also wait for
that time after a loss; Curator and kazoo do not.

The lock is Curator's InterProcessMutex: programs in Java, Python (kazoo) and Go can
use the same one.`,
		Example: `  zk-lite lock /locks/backup -- ./backup.sh
  zk-lite lock --try /locks/cron-daily -- ./daily.sh
  zk-lite lock --wait 30s /locks/deploy -- sh -c 'deploy --fencing-token "$ZK_LITE_FENCING_TOKEN"'`,
		DisableFlagsInUseLine: true, // none may follow --
		Args:                  workArgs(1, true),
	}
	f := c.Flags()
	f.DurationVar(&wait, "wait", 0, "give up after waiting so long; 0 means never")
	f.BoolVar(&try, "try", false, "do not wait for others")
	o.bind(g, c, true)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if wait < 0 || try && wait != 0 {
			return usagef("--wait %v: want more than 0, and not together with --try", wait)
		}
		if err := o.checkDelay(); err != nil {
			return err
		}
		return g.withSession(c, func(ctx context.Context, cl *client.Client) error {
			m := recipes.NewMutex(cl, args[0], o.recipe()...)
			grant, err := acquire(ctx, g, cl, m, wait, try)
			if err != nil {
				return notAcquired(ctx, m, args[0], err)
			}
			err = o.runGranted(ctx, grant, args[1:], lockVariable)
			release(ctx, c, grant.Release)
			return err
		})
	})
}

func acquire(
	ctx context.Context, g *globals, cl *client.Client, m *recipes.Mutex, wait time.Duration, try bool,
) (grant *recipes.Grant, err error) {
	if try { // the only one that does not wait for a connection either
		err = g.watched(ctx, cl, func(ctx context.Context, _ *client.Client) error {
			grant, err = m.TryLock(ctx)
			return err
		})
		return grant, err
	}
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	return m.Lock(ctx)
}

// notAcquired names the holder of the lock, if that is why there was no grant.
func notAcquired(ctx context.Context, m *recipes.Mutex, path string, err error) error {
	late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if !late && !errors.Is(err, recipes.ErrNotAcquired) {
		return err
	}
	if delay, ok := errors.AsType[*recipes.DelayError](err); ok {
		return fmt.Errorf("%s was not acquired: %w: %w", path, delay, errConflict)
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	holder := "others"
	if list, err := m.Participants(ctx); err == nil && len(list) > 0 {
		holder = fmt.Sprintf("%q (%s)", list[0].Data, list[0].Path)
	}
	return fmt.Errorf("%s was not acquired: it is held by %s: %w", path, holder, errConflict)
}

func electCommand(g *globals) *cobra.Command {
	var o workOptions
	c := &cobra.Command{
		Use:   "elect [flags] PATH -- COMMAND [ARGS...]",
		Short: "Run a command only where it is elected",
		Long: `Be a candidate in the election PATH, and run the command while elected: of all
candidates one at a time runs its command. When the command ends, elect ends with its
exit code, and the next candidate is elected.

If leadership is lost with the session, the command gets SIGTERM, and SIGKILL after
--grace; then elect is a candidate again. The command finds a fencing token in
ZK_LITE_FENCING_TOKEN, a decimal number that grows from leader to leader, and the path
of its znode in ZK_LITE_ELECTION. Other programs can read --data, for example the
leader's address.

The election is Curator's LeaderLatch.`,
		Example: `  zk-lite elect /app/scheduler -- ./scheduler
  zk-lite elect /app/master --data "$HOSTNAME:8080" -- ./serve --port 8080`,
		DisableFlagsInUseLine: true, // none may follow --
		Args:                  workArgs(1, true),
	}
	o.bind(g, c, true)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		if err := o.checkDelay(); err != nil {
			return err
		}
		return g.withSession(c, func(ctx context.Context, cl *client.Client) error {
			e := recipes.NewElection(cl, args[0], o.recipe()...)
			for {
				term, err := e.Campaign(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.ErrOrStderr(), "elected: %s, fencing token %d\n", term.Path(), term.FencingToken())
				err = o.runGranted(ctx, term.Grant, args[1:], electionVariable)
				release(ctx, c, term.Resign)
				var lost *lostError
				if errors.As(err, &lost) && ctx.Err() == nil {
					fmt.Fprintf(c.ErrOrStderr(), "%v; candidate again\n", lost)
					continue
				}
				return err
			}
		})
	})
}

// workOptions are the flags of the commands that run others.
type workOptions struct {
	data   string
	grace  time.Duration
	strict bool
	delay  time.Duration
}

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

func (o *workOptions) bind(g *globals, c *cobra.Command, strict bool) {
	f := c.Flags()
	f.StringVar(&o.data, "data", "", "data of the znode, which others can read (default host:pid)")
	f.DurationVar(&o.grace, "grace", defaultGrace, "time from SIGTERM to SIGKILL when the command must end")
	if strict {
		f.BoolVar(&o.strict, "strict", false,
			"stop the command when the connection is lost, not only when the session is lost")
		f.DurationVar(&o.delay, "lock-delay", 0,
			"after a loss, not after a release, keep others waiting for so long (at most 1h)")
	}
	g.bindSession(c)
}

func (o *workOptions) checkDelay() error {
	if o.delay < 0 || o.delay > time.Hour {
		return usagef("--lock-delay %v: want 0 to 1h", o.delay)
	}
	return nil
}

// recipe are the flags as options of a recipe.
func (o *workOptions) recipe() []recipes.Option {
	opts := []recipes.Option{recipes.WithData([]byte(o.name()))}
	if o.strict {
		opts = append(opts, recipes.WithLossOnSuspension())
	}
	if o.delay != 0 {
		opts = append(opts, recipes.WithLockDelay(o.delay))
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
	ctx context.Context, grant *recipes.Grant, args []string, variable string,
) error {
	ctx, cancel := grant.Context(ctx)
	defer cancel()
	err := o.run(ctx, args, fmt.Sprintf("%s=%d", tokenVariable, grant.FencingToken()), variable+"="+grant.Path())
	if cause := grant.Err(); errors.Is(cause, recipes.ErrLost) {
		return &lostError{cause}
	}
	return err
}

// lostError reports that a command was stopped because it was no longer entitled to run.
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
