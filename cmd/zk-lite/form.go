package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli"
	"github.com/zk-lite/zk-lite/consensus/founding"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
)

// formCommand is run beside a server's files, with that server's configuration.
func formCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "form --without ID[,ID]",
		Short: "Form a new ensemble although some of its voters are missing",
		Long: `Say that a new ensemble is to be formed although some of its voters are missing, which it
otherwise waits for. A majority has to be there. Say it once, as the server's user, with the
server's own configuration, on the machine of the voter with the lowest id that is not
missing. That server may run or not.

A missing server gets no vote until it has come and has caught up. It may come with an empty
data directory; it needs the token that ` + "`zk-lite member token ID`" + ` makes, unless servers need
none.

IF THE ENSEMBLE EVER EXISTED, AND A MISSING SERVER HAS ITS DATA, THESE ARE GIVEN UP: an
empty ensemble begins, and that server cannot come into it. Start it instead, or let
` + "`zk-lite recover`" + ` go on with its data.`,
		Example: `  zk-lite form --without 3 --config /etc/zookeeper/zoo.cfg`,
		Args:    noConfigArgument,
	}
	config.BindFlags(c.Flags())
	missing := c.Flags().IntSlice("without", nil, "the `IDs` of the voters that are missing, separated by commas")
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var without []state.ServerID
		for _, id := range *missing {
			if id < 0 || id > state.MaxServerID {
				return cli.Usage(fmt.Errorf("--without: %d is not a server id from 0 to %d", id, state.MaxServerID))
			}
			without = append(without, state.ServerID(id))
		}
		s, notices, err := config.Load(c.Flags(), os.LookupEnv)
		if err != nil {
			return err
		}
		for _, n := range notices {
			fmt.Fprintln(c.ErrOrStderr(), n)
		}
		logger := newLogger(c.ErrOrStderr(), false, slog.LevelWarn)
		plan, peers, err := app.PlanFounding(c.Context(), app.Options{Settings: s, Logger: logger}, without)
		if err != nil {
			return adviseForm(err)
		}
		printPlan(c.ErrOrStderr(), plan, peers)
		if err := plan.Check(peers); err != nil {
			return adviseForm(err)
		}
		if err := confirm(c, *yes, "form"); err != nil {
			return err
		}
		if err := plan.Write(); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "server %d forms the ensemble as soon as it and all that are not missing run\n"+
			"next: start those that do not; when a missing server can be started, make its token\n", s.MyID)
		return nil
	}
	return withSettings(c)
}

func adviseForm(err error) error {
	switch {
	case errors.Is(err, founding.ErrHasData):
		return fmt.Errorf("%w: nothing was done. Start it; the ensemble goes on as soon as a majority runs. If a "+
			"majority is lost for good, `zk-lite recover` goes on with these data", err)
	case errors.Is(err, founding.ErrExists):
		return fmt.Errorf("%w: nothing was done. If this server is new in it, add it (`zk-lite member add`); if it "+
			"has lost its disk, let it in (`zk-lite member token`)", err)
	case errors.Is(err, founding.ErrAnswers):
		return fmt.Errorf("%w: nothing was done. The ensemble forms by itself when all its voters run; name only "+
			"those that cannot", err)
	}
	return err
}

// printPlan prints what there is, and what may be lost.
func printPlan(w io.Writer, plan *founding.Plan, peers []membership.Peer) {
	fmt.Fprintln(w, "The others:")
	for _, p := range peers {
		answer, named := "runs, and belongs to no ensemble", ""
		switch {
		case p.Err != nil:
			answer = p.Err.Error()
		case p.Member:
			answer = "RUNS, AND BELONGS TO AN ENSEMBLE"
		}
		if plan.Named(p.ID) {
			named = ", named as missing"
		}
		fmt.Fprintf(w, "  server %d (%s)%s: %s\n", p.ID, p.Addr, named, answer)
	}
	fmt.Fprint(w, `What will be done: the voters that are not named form an ensemble, without data unless
  some were imported.
What may be lost: if a named server has data of this ensemble, ALL OF THEM. It cannot come into the new one, and nobody
  can see from here whether it has any. If the ensemble ever existed, start that server instead.
`)
}
