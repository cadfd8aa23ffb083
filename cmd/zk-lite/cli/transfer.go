package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func (a *app) transferCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "transfer [ID]",
		Short: "Hand leadership to another server",
		Long: `Hand leadership to the server ID or, without an ID, to the voter that is most up to
date. Clients keep their connections and sessions.`,
		Example: `  zk-lite transfer
  zk-lite transfer 2`,
		Args: argCount(0, 1, 0),
	}
	return a.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		to := noServer
		if len(args) == 1 {
			var err error
			if to, err = parseServerID(args[0]); err != nil {
				return err
			}
		}
		before, err := a.led(c.Context(), api)
		if err != nil {
			return err
		}
		if to != noServer && before.member(to) == nil {
			return &noMemberError{to, before.ids()}
		}
		// A repetition without an id would take leadership from the next leader, too.
		r := &httpapi.Request{
			Method: http.MethodPost, Target: clusterPath + "/transfer", Repeatable: to != noServer,
		}
		if to != noServer {
			if r.Body, err = json.Marshal(map[string]int{"to": to}); err != nil {
				return err
			}
		}
		sent := api.JSON(c.Context(), r, nil)
		if sent != nil && !errors.Is(sent, httpapi.ErrUnknown) {
			return notVoter(sent, &before, to)
		}
		now, err := a.awaitLeader(c, api, before.Leader, to)
		if err != nil {
			return errors.Join(sent, err)
		}
		if a.json() {
			return writeJSON(c.OutOrStdout(), map[string]any{"leader": now.Leader, "term": now.Term})
		}
		fmt.Fprintf(c.OutOrStdout(), "server %d leads, in term %d\n", now.Leader, now.Term)
		return nil
	})
}

// led reads the state of the ensemble when the server reports a leader.
func (a *app) led(ctx context.Context, api *httpapi.Client) (now clusterJSON, err error) {
	done, err := a.until(ctx, func(ctx context.Context) (bool, error) {
		var err error
		now, err = cluster(ctx, api)
		return now.Leader != noServer, err
	})
	if err == nil && !done {
		err = errNoLeader
	}
	return now, err
}

// notVoter returns why a member cannot lead, if that is so.
func notVoter(err error, before *clusterJSON, to int) error {
	var p *httpapi.Problem
	m := before.member(to)
	if !errors.As(err, &p) || p.Status != http.StatusNotFound || m == nil || m.votes() {
		return err
	}
	return &conflictError{fmt.Sprintf("server %d does not vote (%s), and so cannot lead; "+
		"`zk-lite member promote %d` gives it a vote", to, m.Role, to)}
}

// awaitLeader waits until a server leads: this one or, with noServer, another than before.
func (a *app) awaitLeader(
	c *cobra.Command, api *httpapi.Client, before, to int,
) (now clusterJSON, err error) {
	done, err := a.until(c.Context(), func(ctx context.Context) (bool, error) {
		var err error
		now, err = cluster(ctx, api)
		return now.Leader != noServer && (now.Leader == to || to == noServer && now.Leader != before), err
	})
	if err == nil && !done {
		err = fmt.Errorf("server %d leads, in term %d; `zk-lite member list` shows how it goes on",
			now.Leader, now.Term)
	}
	return now, err
}
