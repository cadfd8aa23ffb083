package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/httpapi"
)

func transferCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "transfer [ID]",
		Short: "Hand leadership to another server",
		Long: `Hand leadership to the server ID or, without an ID, to the voter that is most up to
date. Clients keep their connections and sessions.`,
		Example: `  zk-lite transfer
  zk-lite transfer 2`,
		Args: argCount(0, 1, 0),
	}
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		to := noServer
		if len(args) == 1 {
			var err error
			if to, err = parseServerID(args[0]); err != nil {
				return err
			}
		}
		before, err := led(c.Context(), g, api)
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
		now, err := awaitLeader(g, c, api, before.Leader, to)
		if err != nil {
			return errors.Join(sent, err)
		}
		if g.output.json() {
			return writeJSON(c.OutOrStdout(), map[string]any{"leader": now.Leader, "term": now.Term})
		}
		fmt.Fprintf(c.OutOrStdout(), "server %d leads, in term %d\n", now.Leader, now.Term)
		return nil
	})
}

// led reads the state of the ensemble when the server reports a leader.
func led(ctx context.Context, g *globals, api *httpapi.Client) (now ensemble, err error) {
	done, err := g.until(ctx, func(ctx context.Context) (bool, error) {
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
func notVoter(err error, before *ensemble, to int) error {
	var p *httpapi.Problem
	m := before.member(to)
	if !errors.As(err, &p) || p.Status != http.StatusNotFound || m == nil || votes(m) {
		return err
	}
	return &conflictError{fmt.Sprintf("server %d does not vote (%s), and so cannot lead; "+
		"`zk-lite member promote %d` gives it a vote", to, m.Role, to)}
}

// awaitLeader waits until a server leads: this one or, with noServer, another than before.
func awaitLeader(
	g *globals, c *cobra.Command, api *httpapi.Client, before, to int,
) (now ensemble, err error) {
	done, err := g.until(c.Context(), func(ctx context.Context) (bool, error) {
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

func drainCommand(g *globals) *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "drain [ID]",
		Short: "Make a server ready to be stopped",
		Long: `Make the server ID ready to be stopped: it accepts no new clients, hands over
leadership and sends its clients to the other servers, with their sessions. Without
the server the ensemble must still have a majority; otherwise the command changes
nothing and fails. --undo makes the server accept clients again.

ID may be left out for a server that stands alone, or if --http names one server.`,
		Example: `  zk-lite drain 1
  zk-lite drain 1 --undo`,
		Args: argCount(0, 1, 0),
	}
	c.Flags().BoolVar(&undo, "undo", false, "accept clients again")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, args []string, api *httpapi.Client) error {
		id := 0
		var err error
		if len(args) == 1 {
			id, err = parseServerID(args[0])
		} else {
			id, err = g.onlyServer(c.Context(), api)
		}
		if err != nil {
			return err
		}
		return drain(g.output, c, api, id, undo)
	})
}

// onlyServer is the id of the only server that is named.
func (g *globals) onlyServer(ctx context.Context, api *httpapi.Client) (int, error) {
	which := usagef("which server? Name its ID, or one URL in --http")
	if len(api.URLs) > 1 {
		return 0, which
	}
	now, err := cluster(ctx, api)
	if err == nil && g.http == "" && len(now.Members) > 1 {
		err = which
	}
	return now.Server.ID, err
}

// drain asks server id, through another one if need be.
func drain(as output, c *cobra.Command, api *httpapi.Client, id int, undo bool) error {
	r := &httpapi.Request{
		Method: http.MethodPost, Target: fmt.Sprintf("%s/drain?server=%d", clusterPath, id), Repeatable: true,
	}
	if undo {
		r.Method = http.MethodDelete
	}
	err := api.JSON(c.Context(), r, nil)
	var p *httpapi.Problem
	switch {
	case errors.As(err, &p) && p.Status == http.StatusConflict:
		return &conflictError{fmt.Sprintf("server %d was not drained: %s", id, p.Detail)}
	case errors.As(err, &p) && p.Status == http.StatusNotFound:
		now, lookErr := cluster(c.Context(), api)
		return cmp.Or(lookErr, error(&noMemberError{id, now.ids()}))
	case errors.As(err, &p) && p.Reason != "":
		return &noServerError{fmt.Sprintf("server %d was not drained: %s", id, p.Reason)}
	case err != nil:
		return err
	case as.json():
		return writeJSON(c.OutOrStdout(), map[string]any{
			"server": id, "draining": !undo, "safe_to_stop": !undo,
		})
	case undo:
		fmt.Fprintf(c.OutOrStdout(), "server %d accepts clients again\n", id)
	default:
		fmt.Fprintf(c.OutOrStdout(), "server %d is drained and can be stopped; `zk-lite drain %d --undo` "+
			"makes it accept clients again\n", id, id)
	}
	return nil
}

func upgradeCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Show which releases the servers run, and finish an upgrade",
		Long: `Show which releases the servers run, and finish an upgrade. Servers of two neighbouring
releases run together. When all run the new one, finalize turns its features on; until
then every server can go back.`,
		Example: `  zk-lite upgrade status
  zk-lite upgrade finalize`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	g.add(c, "", upgradeStatusCommand, upgradeFinalizeCommand)
	return c
}

func upgradeStatusCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the ensemble's feature level, and the release of each server",
		Args:  argCount(0, 0, 0),
	}
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		now, err := cluster(c.Context(), api)
		switch {
		case err != nil:
			return err
		case g.output.json():
			return writeJSON(c.OutOrStdout(), &now)
		}
		return printUpgrade(c.OutOrStdout(), &now)
	})
}

func printUpgrade(out io.Writer, now *ensemble) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tVERSION\tCOMMIT\tLEVELS")
	for _, m := range now.Members {
		levels := "-"
		if len(m.Levels) == 2 {
			levels = fmt.Sprintf("%d-%d", m.Levels[0], m.Levels[1])
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", m.ID, orDash(m.Version), orDash(m.Commit), levels)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "the ensemble is at feature level %d; %s\n", now.Level, nextStep(now))
	return err
}

// nextStep says what an upgrade waits for.
func nextStep(now *ensemble) string {
	highest := 0
	for _, m := range now.Members {
		if len(m.Levels) != 2 {
			return fmt.Sprintf("server %d has not said which levels it speaks: start it", m.ID)
		}
		highest = max(highest, m.Levels[1])
	}
	switch {
	case now.HighestLevel > now.Level:
		return fmt.Sprintf("all servers speak level %d: `zk-lite upgrade finalize` raises it, and then none can "+
			"go back",
			now.HighestLevel)
	case highest > now.Level:
		return fmt.Sprintf("not all servers speak level %d yet: upgrade the others", highest)
	}
	if runs := releases(now); len(runs) > 1 {
		return "several releases run that speak the same levels: " + strings.Join(runs, ", ") +
			"; give all servers one of them"
	}
	return "no upgrade is under way"
}

// releases are the releases that run, each with its servers.
func releases(now *ensemble) (all []string) {
	servers := map[string][]string{}
	for _, m := range now.Members {
		release := strings.TrimSpace(m.Version + " " + m.Commit)
		servers[release] = append(servers[release], strconv.Itoa(m.ID))
	}
	for _, release := range slices.Sorted(maps.Keys(servers)) {
		noun := "server"
		if len(servers[release]) > 1 {
			noun = "servers"
		}
		all = append(all, fmt.Sprintf("%s on %s %s", orDash(release), noun, strings.Join(servers[release], ", ")))
	}
	return all
}

func upgradeFinalizeCommand(g *globals) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "finalize",
		Short: "Raise the feature level to the highest that all servers speak, for good",
		Long: `Raise the ensemble's feature level to the highest one that all servers speak. The new
release's features work from then on, and no server can go back to the release before.`,
		Args: argCount(0, 0, 0),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return g.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		if !yes && !isTerminal(c.InOrStdin()) {
			return usagef("there is no terminal to ask at: --yes raises the level, for good")
		}
		now, err := cluster(c.Context(), api)
		if err != nil {
			return err
		}
		if now.HighestLevel <= now.Level {
			return &conflictError{fmt.Sprintf("the ensemble is at feature level %d; %s", now.Level, nextStep(&now))}
		}
		if !yes {
			err := askYes(c, fmt.Sprintf("Raise the level from %d to %d? No server can go back to an older "+
				"release then.",
				now.Level, now.HighestLevel))
			if err != nil {
				return err
			}
		}
		body, err := json.Marshal(map[string]int{"level": now.HighestLevel})
		if err != nil {
			return err
		}
		var done struct {
			Level int `json:"level"`
		}
		r := &httpapi.Request{Method: http.MethodPut, Target: clusterPath + "/level", Body: body, Repeatable: true}
		if err := api.JSON(c.Context(), r, &done); err != nil {
			return err
		}
		if g.output.json() {
			return writeJSON(c.OutOrStdout(), &done)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "the ensemble is at feature level %d\n", done.Level)
		return err
	})
}
