package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func memberCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "member",
		Short: "List, add, remove and promote servers of the ensemble",
		Long:  `List, add, remove and promote servers of a running ensemble, and let in new keys, over the HTTP API.`,
		Example: `  zk-lite member list
  zk-lite member add 4 "zk4.example:2888:3888;2181"
  zk-lite member promote 4
  zk-lite member remove 1`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	g.add(c, "", memberListCommand, memberAddCommand, memberRemoveCommand, memberPromoteCommand, memberTokenCommand)
	return c
}

func memberAddCommand(g *globals) *cobra.Command {
	var observer bool
	c := &cobra.Command{
		Use:   "add ID ADDRESS",
		Short: "Add a server to the running ensemble",
		Long: `Add a server to the running ensemble, before or after it is started. ADDRESS is the
value of server.ID in a configuration, without the role: host:peerPort or
host:peerPort:electionPort, optionally followed by ;clientPort or
;clientHost:clientPort (quote the semicolon).

The server gets its vote when it has caught up; until then the ensemble does not wait
for it. ` + "`zk-lite member promote ID`" + ` waits for the vote. To add a member again is harmless.`,
		Example: `  zk-lite member add 4 "zk4.example:2888:3888;2181"
  zk-lite member add 5 zk5.example:2888 --observer`,
		Args: argCount(2, 2, 0),
	}
	c.Flags().BoolVar(&observer, "observer", false, "the server gets no vote")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		id, err := parseServerID(args[0])
		if err != nil {
			return err
		}
		var m body.Member
		if err := api.JSON(c.Context(), addRequest(id, args[1], !observer), &m); err != nil {
			return err
		}
		if g.output.json() {
			return writeJSON(c.OutOrStdout(), &m)
		}
		if t := m.Token; t != nil {
			fmt.Fprintf(c.OutOrStdout(), "It joins with this one-time token, which is good until %s. Write it to "+
				"a file that only its user can read, and name that in its setting peer.joinSecretFile:\n%s\n",
				t.Until.Local().Format(time.DateTime), t.Token)
		}
		switch {
		case m.Role == roleJoining:
			fmt.Fprintf(c.OutOrStdout(), "server %d joins and gets its vote when it has caught up: start it; "+
				"`zk-lite member promote %d` waits for its vote\n", id, id)
		default:
			fmt.Fprintf(c.OutOrStdout(), "server %d is a member: %s\n", id, m.Role)
		}
		return nil
	})
}

// addRequest adds a server, or changes whether it is to vote.
func addRequest(id int, address string, vote bool) *httpapi.Request {
	role := "observer"
	if vote {
		role = "voter"
	}
	text, err := json.Marshal(map[string]any{"id": id, "address": address, "role": role})
	if err != nil {
		panic(fmt.Sprintf("cli: invariant broken: a string is no JSON: %v", err))
	}
	return &httpapi.Request{
		Method: http.MethodPost, Target: clusterPath + "/members", Body: text, Repeatable: true,
	}
}

// promoteTimeout is how long to wait for a server to catch up.
const promoteTimeout = time.Minute

func memberPromoteCommand(g *globals) *cobra.Command {
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
	return g.operation(c, promoteTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
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
		case votes(m) && now.Leader == noServer:
			return errNoLeader
		case votes(m) && m.Known != nil && !m.Connected:
			return &conflictError{fmt.Sprintf("server %d votes already, but is not connected: start it; if it is lost "+
				"for good: `zk-lite member remove %d`", id, id)}
		case votes(m) && !g.output.json():
			fmt.Fprintf(c.OutOrStdout(), "server %d votes already: %s\n", id, m.Role)
			return nil
		case votes(m):
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
		return awaitVote(g, c, api, id)
	})
}

// awaitVote waits until a server votes.
func awaitVote(g *globals, c *cobra.Command, api *httpapi.Client, id int) error {
	note := newNote(c)
	defer note.clear()
	var m *body.Member
	begin := time.Now()
	done, err := g.until(c.Context(), func(ctx context.Context) (bool, error) {
		now, err := cluster(ctx, api)
		if err != nil {
			return false, err
		}
		if m = now.member(id); m == nil {
			return false, &noMemberError{id, now.ids()}
		}
		note.show("server %d is catching up, %v", id, time.Since(begin).Round(time.Second))
		return votes(m), nil
	})
	note.clear()
	switch {
	case err != nil:
		return err
	case !done:
		return fmt.Errorf("server %d has not caught up within %v and has no vote yet: is it running, with all "+
			"members in its configuration? It gets its vote by itself; `zk-lite member promote %d` waits on",
			id, g.timeout, id)
	case g.output.json():
		return writeJSON(c.OutOrStdout(), m)
	}
	fmt.Fprintf(c.OutOrStdout(), "server %d votes\n", id)
	return nil
}

func memberRemoveCommand(g *globals) *cobra.Command {
	var force, yes bool
	var from int
	c := &cobra.Command{
		Use:   "remove ID | --from ID",
		Short: "Take a server out of the ensemble",
		Long: `Take a server out of the ensemble; a leader hands over first. Refused if the voters
that are connected would be no majority of those left, unless --force is given. The
server keeps its data and cannot come back by itself, unless it has a join secret: stop
it afterwards. Drain it before, so that its clients go elsewhere at once.

--from removes all members with this number or a higher one, the highest first; it is
no error if there are none.

On a terminal it asks; --yes does not ask, nor do scripts.`,
		Example: `  zk-lite drain 1 && zk-lite member remove 1
  zk-lite member remove 3 --force   # it is lost for good
  zk-lite member remove --from 3    # before pods 3 and 4 go`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().BoolVar(&force, "force", false, "also if too few of those left are connected")
	c.Flags().IntVar(&from, "from", 0, "instead of an ID: all members from this `ID` on")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		if (len(args) == 1) == c.Flags().Changed("from") {
			return usagef("want either an ID or --from; usage: %s", c.UseLine())
		}
		var ids []int
		if len(args) == 1 {
			id, err := parseServerID(args[0])
			if err != nil {
				return err
			}
			ids = append(ids, id)
		} else {
			if from < 1 {
				return usagef("--from: %d would remove all; want 1 or more", from)
			}
			now, err := cluster(c.Context(), api)
			if err != nil {
				return err
			}
			for _, m := range slices.Backward(now.Members) {
				if m.ID >= from {
					ids = append(ids, m.ID)
				}
			}
		}
		if !yes && len(ids) > 0 && isTerminal(c.InOrStdin()) {
			err := askYes(c, fmt.Sprintf("Remove %s? Coming back takes an empty dataDir.", servers(ids)))
			if err != nil {
				return err
			}
		}
		for _, id := range ids {
			if err := removeMember(g.output, c, api, id, force); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeMember takes one server out of the ensemble.
func removeMember(as output, c *cobra.Command, api *httpapi.Client, id int, force bool) error {
	target := fmt.Sprintf("%s/members/%d", clusterPath, id)
	if force {
		target += "?force=true"
	}
	err := api.JSON(c.Context(),
		&httpapi.Request{Method: http.MethodDelete, Target: target, Repeatable: true}, nil)
	var p *httpapi.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		if errors.Is(err, httpapi.ErrUnknown) {
			err = nil // an attempt before has done it
		} else if now, lookErr := cluster(c.Context(), api); lookErr == nil {
			err = &noMemberError{id, now.ids()}
		}
	}
	switch {
	case errors.As(err, &p) && p.Status == http.StatusConflict && !force:
		return &conflictError{p.Detail + "; --force removes it nevertheless"}
	case err != nil:
		return err
	case as.json():
		return writeJSON(c.OutOrStdout(), map[string]any{"id": id, "removed": true})
	}
	fmt.Fprintf(c.OutOrStdout(), "server %d is removed: stop it; it comes back with an empty dataDir only, after "+
		"`zk-lite member add %d ADDRESS`\n", id, id)
	return nil
}

func memberTokenCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "token ID",
		Short: "Make a one-time token with which a member joins with a new key",
		Long: `Make a one-time token with which the server ID joins the ensemble with a key that the others
do not know: it is new, its disk was replaced, or its key is to be changed (stop it and remove
peer.key from its dataDir before). Write the token to a file that only its user can read, name
the file in its setting peer.joinSecretFile, and start it. An earlier token becomes worthless.`,
		Example: `  (umask 077; zk-lite member token 4 > token)`,
		Args:    argCount(1, 1, 0),
	}
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		id, err := parseServerID(args[0])
		if err != nil {
			return err
		}
		var t body.Token
		err = api.JSON(c.Context(), &httpapi.Request{
			Method: http.MethodPost, Target: fmt.Sprintf("%s/members/%d/token", clusterPath, id), Repeatable: true,
		}, &t)
		if err != nil {
			return err
		}
		if g.output.json() {
			return writeJSON(c.OutOrStdout(), &t)
		}
		fmt.Fprintln(c.OutOrStdout(), t.Token)
		fmt.Fprintf(c.ErrOrStderr(), "good once, for server %d, until %s\n", id, t.Until.Local().Format(time.DateTime))
		return nil
	})
}
