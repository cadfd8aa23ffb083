package cli

import (
	"encoding/json"
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

func (a *app) upgradeCommand() *cobra.Command {
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
	c.AddCommand(a.upgradeStatusCommand(), a.upgradeFinalizeCommand())
	return c
}

func (a *app) upgradeStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the ensemble's feature level, and the release of each server",
		Args:  argCount(0, 0, 0),
	}
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
		now, err := cluster(c.Context(), api)
		switch {
		case err != nil:
			return err
		case a.json():
			return writeJSON(c.OutOrStdout(), &now)
		}
		return printUpgrade(c.OutOrStdout(), &now)
	})
}

func printUpgrade(out io.Writer, now *clusterJSON) error {
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
func nextStep(now *clusterJSON) string {
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
func releases(now *clusterJSON) (all []string) {
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

func (a *app) upgradeFinalizeCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "finalize",
		Short: "Raise the feature level to the highest that all servers speak, for good",
		Long: `Raise the ensemble's feature level to the highest one that all servers speak. The new
release's features work from then on, and no server can go back to the release before.`,
		Args: argCount(0, 0, 0),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return a.operation(c, defaultTimeout, func(c *cobra.Command, _ []string, api *httpapi.Client) error {
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
		if a.json() {
			return writeJSON(c.OutOrStdout(), &done)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "the ensemble is at feature level %d\n", done.Level)
		return err
	})
}
