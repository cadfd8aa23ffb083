package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

func (a *app) lockCommand() *cobra.Command {
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
holder, and the path of its znode in ZK_LITE_LOCK.

The lock is Curator's InterProcessMutex: programs in Java, Python (kazoo) and Go can
use the same one.`,
		Example: `  zk-lite lock /locks/backup -- ./backup.sh
  zk-lite lock --try /locks/cron-daily -- ./daily.sh
  zk-lite lock --wait 30s /locks/deploy -- sh -c 'deploy --fencing-token "$ZK_LITE_FENCING_TOKEN"'`,
		DisableFlagsInUseLine: true, // none may stand behind --
		Args:                  workArgs(1, true),
	}
	f := c.Flags()
	f.DurationVar(&wait, "wait", 0, "give up after waiting so long; 0 means never")
	f.BoolVar(&try, "try", false, "do not wait for others")
	o.bind(a, c, true)
	a.completePaths(c, 1)
	return a.command(c, func(c *cobra.Command, args []string) error {
		if wait < 0 || try && wait != 0 {
			return usagef("--wait %v: want more than 0, and not together with --try", wait)
		}
		return a.withSession(c, func(ctx context.Context, cl *client.Client) error {
			m := recipes.NewMutex(cl, args[0], o.recipe()...)
			g, err := a.acquire(ctx, cl, m, wait, try)
			if err != nil {
				return notAcquired(ctx, m, args[0], err)
			}
			err = o.runGranted(ctx, g, args[1:], lockVariable)
			release(ctx, c, g.Release)
			return err
		})
	})
}

func (a *app) acquire(
	ctx context.Context, cl *client.Client, m *recipes.Mutex, wait time.Duration, try bool,
) (g *recipes.Grant, err error) {
	if try { // the only one that does not wait for a connection either
		err = a.watched(ctx, cl, func(ctx context.Context, _ *client.Client) error {
			g, err = m.TryLock(ctx)
			return err
		})
		return g, err
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
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	holder := "others"
	if list, err := m.Participants(ctx); err == nil && len(list) > 0 {
		holder = fmt.Sprintf("%q (%s)", list[0].Data, list[0].Path)
	}
	return fmt.Errorf("%s was not acquired: it is held by %s: %w", path, holder, errConflict)
}
