package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

// promoteTimeout is how long to wait for a server to catch up.
const promoteTimeout = time.Minute

func (a *app) memberPromoteCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "promote ID",
		Short: "Give a member a vote, and wait until it has it",
		Long: `Wait until a server that joins votes, for --timeout at most. It gets its vote by
itself, as soon as it is started and has caught up: then the others would not have to
wait for it, and there is no faster way. An observer becomes a joining server.`,
		Example: `  zk-lite member promote 4
  zk-lite member promote 4 --timeout 10m`,
		Args: argCount(1, 1, 0),
	}
	return a.operation(c, promoteTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		id, err := parseServerID(args[0])
		if err != nil {
			return err
		}
		now, err := cluster(c.Context(), api)
		if err != nil {
			return err
		}
		m := now.member(id)
		switch {
		case m == nil:
			return &noMemberError{id, now.ids()}
		case m.votes() && now.Leader == noServer:
			return errNoLeader
		case m.votes() && m.Connected != nil && !*m.Connected:
			return &conflictError{fmt.Sprintf("server %d votes already, but is not connected: start it; if it is lost "+
				"for good: `zk-lite member remove %d`", id, id)}
		case m.votes() && !a.json():
			fmt.Fprintf(c.OutOrStdout(), "server %d votes already: %s\n", id, m.Role)
			return nil
		case m.votes():
			return writeJSON(c.OutOrStdout(), m)
		case m.Role != roleJoining:
			if m.Peer == "" {
				return fmt.Errorf("the address of server %d is unknown: start it, or give its address "+
					"with `zk-lite member add %d ADDRESS`", id, id)
			}
			address := m.Peer
			if m.Client != "" {
				address += ";" + m.Client
			}
			if err := api.JSON(c.Context(), addRequest(id, address, true), nil); err != nil {
				return err
			}
		}
		return a.awaitVote(c, api, id)
	})
}

// awaitVote waits until a server votes.
func (a *app) awaitVote(c *cobra.Command, api *httpapi.Client, id int) error {
	note := newNote(c)
	defer note.clear()
	var m *memberJSON
	begin := time.Now()
	done, err := a.until(c.Context(), func(ctx context.Context) (bool, error) {
		now, err := cluster(ctx, api)
		if err != nil {
			return false, err
		}
		if m = now.member(id); m == nil {
			return false, &noMemberError{id, now.ids()}
		}
		note.show("server %d is catching up, %v", id, time.Since(begin).Round(time.Second))
		return m.votes(), nil
	})
	note.clear()
	switch {
	case err != nil:
		return err
	case !done:
		return fmt.Errorf("server %d has not caught up within %v and has no vote yet: is it running, with all "+
			"members in its configuration? It gets its vote by itself; `zk-lite member promote %d` waits on",
			id, a.timeout, id)
	case a.json():
		return writeJSON(c.OutOrStdout(), m)
	}
	fmt.Fprintf(c.OutOrStdout(), "server %d votes\n", id)
	return nil
}
