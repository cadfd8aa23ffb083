package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/znode"
)

func joinCommand(g *globals) *cobra.Command {
	var o workOptions
	var h healthCheck
	c := &cobra.Command{
		Use:   "join [flags] PATH NAME [-- COMMAND [ARGS...]]",
		Short: "Be a member of a group, while a command runs",
		Long: `Be the member NAME of the group PATH while the command runs; without a command, until
interrupted. The member is the ephemeral znode PATH/NAME with the data of --data; it
is created again when the session is lost. While another session has a member of that
name, join waits. The exit code is the command's, which finds the path of the member
in ZK_LITE_MEMBER.

With --check or --check-http the command starts at once, and the member joins when the
first check succeeds, leaves when one fails, and joins again. With --keep it stays, and
its data become JSON: "healthy": false, the "reason", which is the end of the check's
output, and the "data".

Groups are Curator's GroupMember.`,
		Example: `  zk-lite join /app/workers "$HOSTNAME"
  zk-lite join /app/web w1 --data http://10.0.0.1:8080 -- ./serve
  zk-lite join /app/web w1 --data 10.0.0.1:8080 --check-http http://localhost:8080/health -- ./serve
  zk-lite join /app/db d1 --data 10.0.0.2:5432 --check 'pg_isready -q' --every 2s --failures 2`,
		DisableFlagsInUseLine: true, // none may follow --
		Args:                  workArgs(2, false),
	}
	o.bind(g, c, false)
	h.bind(c)
	g.completePaths(c, 1)
	return g.command(c, func(c *cobra.Command, args []string) error {
		path := znode.Join(args[0], args[1])
		if err := checkPath(path); err != nil {
			return err
		}
		if znode.Parent(path) != args[0] {
			return usagef("NAME %q: want a name, not a path", args[1])
		}
		if err := h.validate(c); err != nil {
			return err
		}
		return g.withSession(c, func(ctx context.Context, cl *client.Client) error {
			if h.wanted() {
				return o.runChecked(ctx, &checkedMember{
					healthCheck: h, group: recipes.NewGroup(cl, args[0]), name: args[1], data: []byte(o.name()),
					say: func(format string, args ...any) { fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...) },
				}, path, args[2:])
			}
			m, err := recipes.NewGroup(cl, args[0]).Join(ctx, args[1], []byte(o.name()))
			if err != nil {
				if interrupted(ctx, err) {
					return nil
				}
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "joined: %s\n", m.Path())
			err = o.runJoined(ctx, m, args[2:])
			release(ctx, c, m.Leave)
			return err
		})
	})
}

// runJoined runs the command, or waits, while the membership is kept.
func (o *workOptions) runJoined(ctx context.Context, m *recipes.Membership, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if len(args) == 0 {
		select {
		case <-ctx.Done():
		case <-m.Done():
		}
	} else {
		go func() {
			select {
			case <-m.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
		err = o.run(ctx, args, memberVariable+"="+m.Path())
	}
	return cmp.Or(notMember(m), err)
}

// runChecked runs the command, or waits, while the member comes and goes. It leaves while the command ends.
func (o *workOptions) runChecked(ctx context.Context, k *checkedMember, path string, args []string) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() {
		defer cancel()
		kept <- k.run(ctx)
	}()
	if len(args) > 0 {
		err = o.run(ctx, args, memberVariable+"="+path)
		cancel()
	}
	return cmp.Or(<-kept, err)
}

// notMember is why a membership is no longer kept; nil if it is, or after Leave.
func notMember(m *recipes.Membership) error {
	if lost := m.Err(); lost != nil {
		return fmt.Errorf("%s is not a member any more: %w", m.Path(), lost)
	}
	return nil
}
